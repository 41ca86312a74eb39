"""Trains and tests on the real files of four tasks, and writes one table: `make tasks`.

    python research/tasks/task_table.py --data path/to/data

runs programs of this folder, three trainings each of the preset and of the same architecture from
scratch, and puts their metrics beside those of a simple baseline: a dictionary of names, shared
words, BM25, or TF-IDF with a linear model. It writes table.md, and what each example writes, to
runs/tasks. What is finished is not run again, so a command that was killed goes on. All of it takes
many hours on 2 cores. Parts of it:

    python research/tasks/task_table.py --data data --tasks wikiqa,wnut17 --runs 1
    python research/tasks/task_table.py --data data --num_examples 500

--data has the folder `tasks`, and in it wnut17, race, wikiqa and imdb, as in docs/tasks.md. Tasks
whose folders are not there are left out. Single sentences and pairs: results.py.
"""

import dataclasses
import json
import pathlib
import shlex
import subprocess
import sys

from absl import app, flags

PROGRAMS = pathlib.Path(__file__).parent
KINDS = {"preset": [], "from scratch": ["--from_scratch"]}


@dataclasses.dataclass(frozen=True)
class Task:
    """A task.

    Args:
        title: String, what the table calls it.
        example: Name of the example.
        files: Dict from flags to files in the folder of the task.
        metric: Name of the metric of the example.
        baseline: Name of the baseline of the example.
        flags: Other flags.
        num_examples: Rows to train on and to test, at most. `None`: all.
    """

    title: str
    example: str
    files: dict
    metric: str
    baseline: str
    flags: tuple = ()
    num_examples: int | None = None


TASKS = {
    "wnut17": Task(
        "WNUT-17",
        "ner",
        {"data": "wnut17train.conll", "test": "emerging.test.annotated"},
        "f1",
        "dictionary",
        ("--epochs=3", "--sequence_length=128"),
    ),
    "race": Task(
        "RACE-middle",
        "multiple_choice",
        {"data": "train.middle.jsonl", "test": "test.middle.jsonl"},
        "accuracy",
        "word_overlap",
        num_examples=2000,
    ),
    "wikiqa": Task("WikiQA", "ranking", {"data": "."}, "map", "bm25"),
    "imdb": Task(
        "IMDb, windows",
        "long_documents",
        {"data": "train.jsonl", "test": "test.jsonl"},
        "accuracy",
        "tfidf",
        ("--long_document=windows", "--max_length=1024", "--batch_size=16"),
        num_examples=2000,
    ),
}

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Folder with tasks/.", required=True)
flags.DEFINE_string("output_dir", "runs/tasks", "Where everything is written.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or location of the preset.")
flags.DEFINE_list("tasks", list(TASKS), f"Some of {', '.join(TASKS)}.")
flags.DEFINE_integer("runs", 3, "Trainings of each kind.", lower_bound=1)
flags.DEFINE_integer(
    "num_examples",
    None,
    "Rows to train on and to test. [all; 2,000 of RACE and IMDb]",
    lower_bound=10,
)


def main(arguments):
    if arguments[1:]:
        sys.exit(f"error: arguments that are no flags: {' '.join(arguments[1:])}")
    unknown = [name for name in FLAGS.tasks if name not in TASKS]
    if unknown or not FLAGS.tasks:
        sys.exit(f"error: --tasks must be some of {', '.join(TASKS)}. Received: {FLAGS.tasks}")
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    lines = [
        f"| task | metric | examples | {' | '.join(KINDS)} | baseline |",
        f"| --- | --- | --- | {' | '.join('---:' for _ in KINDS)} | ---: |",
    ]
    for name in FLAGS.tasks:
        folder = pathlib.Path(FLAGS.data) / "tasks" / name
        if not folder.is_dir():
            print(f"{TASKS[name].title} is left out: no {folder}")
            continue
        lines.append(f"| {' | '.join([TASKS[name].title, *row_of(name, output_dir)])} |")
        # After each task: a command that is killed leaves what it had.
        (output_dir / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n" + "\n".join(lines) + f"\nWritten to {output_dir}")


def run(name, command):
    """Runs an example, unless it fails."""
    print(f"\n{shlex.join(command)}", flush=True)
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"error: {TASKS[name].title}: the example failed")


def cell(mean, deviation, count):
    """A metric in percent."""
    return f"{mean:.1f} ± {deviation:.1f}" if count > 1 else f"{mean:.1f}"


def row_of(name, output_dir):
    """The cells of a task, without its title."""
    task = TASKS[name]
    reports = {kind: finished(name, kind, output_dir) for kind in KINDS}
    cells = [of_runs(task, report) for report in reports.values()]
    baseline = 100 * of_baseline(task, reports["preset"])
    number = FLAGS.num_examples or task.num_examples
    size = "all" if number is None else f"{number:,}"
    return task.metric, size, *cells, f"{baseline:.1f} ({task.baseline})"


def finished(name, kind, output_dir):
    """Returns what metrics.json of an example has, which is run unless it is there."""
    task = TASKS[name]
    folder = output_dir / f"{name}_{kind.replace(' ', '_')}"
    data = pathlib.Path(FLAGS.data) / "tasks" / name
    flags = {flag: data / file for flag, file in task.files.items()}
    flags |= {"preset": FLAGS.preset, "runs": FLAGS.runs}
    if size := FLAGS.num_examples or task.num_examples:
        flags["num_examples"] = size
    command = [sys.executable, str(PROGRAMS / f"{task.example}.py")]
    command += [f"--{flag}={value}" for flag, value in flags.items()]
    command += [*task.flags, *KINDS[kind]]
    # Beside the folder, which the example replaces.
    record, written = folder.with_suffix(".command"), shlex.join(command[1:])
    if not (folder / "metrics.json").exists():
        run(name, [*command, f"--output_dir={folder}"])
        record.write_text(written, encoding="utf-8")
    elif not record.exists() or record.read_text(encoding="utf-8") != written:
        sys.exit(f"error: {folder} is of other flags: use another --output_dir, or remove it")
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


def of_runs(task, report):
    """The mean and the deviation of the runs of a task."""
    runs = report["all_runs"]
    if task.example == "long_documents":
        (runs,) = runs.values()
    mean, deviation = (runs[key][task.metric] for key in ("mean", "deviation"))
    return cell(100 * mean, 100 * (deviation or 0.0), len(runs["runs"]))


def of_baseline(task, report):
    if task.example == "long_documents":
        return report["accuracy"][task.baseline]
    baseline = report["baselines"][task.baseline]
    return baseline[task.metric] if isinstance(baseline, dict) else baseline


if __name__ == "__main__":
    app.run(main)

"""Trains and tests on the real files of nine tasks, and writes one table: `make tasks`.

    python examples/task_table.py --data path/to/data

runs the other examples, three trainings each of the preset and of the same architecture from
scratch, and puts their metrics beside those of a simple baseline: TF-IDF with a linear model, a
dictionary of names, BM25, or shared words. It writes table.md, and what each example writes, to
runs/tasks. What is finished is not run again, so a command that was killed goes on. All of it takes
many hours on 2 cores. Parts of it:

    python examples/task_table.py --data data --tasks rte,wnut17 --runs 1
    python examples/task_table.py --data data --num_examples 1000
    python examples/task_table.py --data data --more "--lora_rank 8" --output_dir runs/tasks_lora

--data has the folders sst2, cola, mrpc, rte, stsb, wnut17, race, wikiqa and imdb, as in
docs/results.md and docs/tasks.md. Tasks whose folders are not there are left out.
"""

import dataclasses
import json
import pathlib
import shlex
import subprocess
import sys

from absl import app, flags

EXAMPLES = pathlib.Path(__file__).parent
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
    """

    title: str
    example: str
    files: dict
    metric: str
    baseline: str
    flags: tuple = ()


def _glue(title, train, test, columns, metric, *more):
    files = {"data": train, "test": test}
    names = [f"--{name}={column}" for name, column in columns.items()]
    return Task(title, "glue", files, metric, "tfidf", (*names, f"--metric={metric}", *more))


PAIR = {"text": 0, "pair": 1, "label": 2}
TASKS = {
    "sst2": _glue("SST-2", "train.tsv", "test.tsv", {"text": 0, "label": 1}, "accuracy"),
    "cola": _glue(
        "CoLA", "raw_in_domain_train.tsv", "raw_in_domain_dev.tsv", {"text": 3, "label": 1}, "mcc"
    ),
    "mrpc": _glue(
        "MRPC",
        "msr_paraphrase_train.txt",
        "msr_paraphrase_test.txt",
        {"text": "#1 String", "pair": "#2 String", "label": "Quality"},
        "f1",
    ),
    "rte": _glue("RTE", "train.tsv", "dev.tsv", PAIR, "accuracy", "--sequence_length=208"),
    "stsb": _glue(
        "STS-B",
        "sts-train.csv",
        "sts-test.csv",
        {"text": 5, "pair": 6, "label": 4},
        "pearson",
        "--delimiter=tab",
    ),
    "wnut17": Task(
        "WNUT-17",
        "ner",
        {"data": "wnut17train.conll", "test": "emerging.test.annotated"},
        "f1",
        "dictionary",
        ("--epochs=3",),
    ),
    "race": Task(
        "RACE-middle",
        "multiple_choice",
        {"data": "train.middle.jsonl", "test": "test.middle.jsonl"},
        "accuracy",
        "word_overlap",
    ),
    "wikiqa": Task("WikiQA", "ranking", {"data": "."}, "map", "bm25"),
    "imdb": Task(
        "IMDb, windows",
        "long_documents",
        {"data": "train.jsonl", "test": "test.jsonl"},
        "accuracy",
        "tfidf",
        ("--long_document=windows", "--max_length=1024", "--batch_size=16"),
    ),
}

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Folder with a folder for each task.", required=True)
flags.DEFINE_string("output_dir", "runs/tasks", "Where everything is written.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or location of the preset.")
flags.DEFINE_list("tasks", list(TASKS), f"Some of {', '.join(TASKS)}.")
flags.DEFINE_integer("runs", 3, "Trainings of each kind.", lower_bound=1)
flags.DEFINE_integer("num_examples", None, "Rows to train on and to test. [all]", lower_bound=1)
flags.DEFINE_string("more", "", "Other flags for the examples.")


def main(arguments):
    if arguments[1:]:
        sys.exit(f"error: arguments that are no flags: {' '.join(arguments[1:])}")
    unknown = [name for name in FLAGS.tasks if name not in TASKS]
    if unknown or not FLAGS.tasks:
        sys.exit(f"error: --tasks must be some of {', '.join(TASKS)}. Received: {FLAGS.tasks}")
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    rows = {}
    for name in FLAGS.tasks:
        if not (pathlib.Path(FLAGS.data) / name).is_dir():
            print(f"{TASKS[name].title} is left out: no {pathlib.Path(FLAGS.data) / name}")
            continue
        rows[name] = {kind: finished(name, kind, output_dir) for kind in KINDS}
        # After each task: a command that is killed leaves what it had.
        (output_dir / "table.md").write_text(table(rows), encoding="utf-8")
    print(f"\n{table(rows)}\nWritten to {output_dir}")


def finished(name, kind, output_dir):
    """Returns what metrics.json of an example has, which is run unless it is there."""
    task = TASKS[name]
    folder = output_dir / f"{name}_{kind.replace(' ', '_')}"
    command = [sys.executable, str(EXAMPLES / f"{task.example}.py"), f"--preset={FLAGS.preset}"]
    data = pathlib.Path(FLAGS.data) / name
    command += [f"--{flag}={data / file}" for flag, file in task.files.items()]
    command += [*task.flags, *KINDS[kind], f"--runs={FLAGS.runs}", *shlex.split(FLAGS.more)]
    if FLAGS.num_examples is not None:
        command.append(f"--num_examples={FLAGS.num_examples}")
    # Beside the folder, which the example replaces.
    record = folder.with_suffix(".command")
    written = shlex.join(command[1:])
    if not (folder / "metrics.json").exists():
        print(f"\n{shlex.join(command)}", flush=True)
        completed = subprocess.run([*command, f"--output_dir={folder}"], check=False)
        if completed.returncode:
            sys.exit(f"error: {task.title}, {kind}: the example failed")
        record.write_text(written, encoding="utf-8")
    elif not record.exists() or record.read_text(encoding="utf-8") != written:
        sys.exit(f"error: {folder} is of other flags: use another --output_dir, or remove it")
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


# === The table ===


def table(rows):
    """Returns the results of the tasks as a table in Markdown, in percent."""
    lines = [
        f"| task | metric | {' | '.join(KINDS)} | baseline |",
        f"| --- | --- | {' | '.join('---:' for _ in KINDS)} | ---: |",
    ]
    for name, found in rows.items():
        task = TASKS[name]
        cells = [of_runs(task, report) for report in found.values()]
        value = 100 * of_baseline(task, next(iter(found.values())))
        cells.append(f"{value:.1f} ({task.baseline})")
        lines.append(f"| {task.title} | {task.metric} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def of_runs(task, report):
    """The mean and the deviation of the runs of a task."""
    runs = report["all_runs"]
    if task.example == "long_documents":
        (runs,) = runs.values()
    mean, deviation = (runs[key][task.metric] for key in ("mean", "deviation"))
    found = f"{100 * mean:.1f}"
    return found if deviation is None else f"{found} ± {100 * deviation:.1f}"


def of_baseline(task, report):
    if task.example == "long_documents":
        return report["accuracy"][task.baseline]
    baseline = report["baselines"][task.baseline]
    return baseline[task.metric] if isinstance(baseline, dict) else baseline


if __name__ == "__main__":
    app.run(main)

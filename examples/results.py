"""What a preset is good for: fine-tuned, against the same model from scratch and against TF-IDF.

    python examples/results.py --data path/to/data

trains on SMS spam, SST-2, CoLA, MRPC, RTE, STS-B and query well-formedness, with several numbers of
training examples and five seeds each, and writes a table and a picture to runs/results. The SMS
messages are in this repository; tasks that are not in the folder are left out. A task is in
`tasks/NAME` as its authors publish it: docs/results.md. The whole command takes hours on 2 cores. A
command that was killed continues where it was: each finished run is a line of results.jsonl, and is
not run again unless the preset or the recipe of its task changes. Parts of it:

    python examples/results.py                                       # SMS spam alone
    python examples/results.py --data data --tasks sst2,sms --seeds 2 --sizes 100,all
    python examples/results.py --data data --split validation        # to choose recipes
    python examples/results.py --data data --preset runs/pretrain/preset
"""

import quiet_start  # noqa: F401

# isort: split
import dataclasses
import json
import pathlib
import sys
import time

import fast_dtype
import results_report
import tfidf
from absl import app, flags
from results_tasks import METRICS, RECIPES, TASKS, draw_subset, read_tasks

METHODS = ("tfidf", "from_scratch", "fine_tuned")

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Folder with tasks/ and sms_spam_collection/. [only SMS spam]")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or location of the preset.")
flags.DEFINE_string("output_dir", "runs/results", "Where everything is written.")
flags.DEFINE_list("tasks", list(TASKS), f"Some of {', '.join(TASKS)}.")
flags.DEFINE_list("methods", list(METHODS), f"Some of {', '.join(METHODS)}.")
flags.DEFINE_integer("seeds", 5, "Runs of each kind; 5 are a cross-validation.", lower_bound=1)
flags.DEFINE_list("sizes", None, 'Numbers of training examples, "all" for all. [of the task]')
flags.DEFINE_enum("split", "test", ["test", "validation"], "What to report on.")
flags.DEFINE_enum("dtype", "auto", fast_dtype.DTYPES, "Policy of the models. [the faster one]")


def main(arguments):
    if len(arguments) > 1:
        sys.exit(f"error: unexpected arguments: {' '.join(arguments[1:])}")
    try:
        run_all()
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


def run_all():
    """Runs what is not in the file of results, and writes the table and the picture."""
    _check_names("--tasks", FLAGS.tasks, TASKS)
    _check_names("--methods", FLAGS.methods, METHODS)
    sizes = None if FLAGS.sizes is None else [_parse_size(size) for size in FLAGS.sizes]
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    data, missing = read_tasks(FLAGS.tasks, FLAGS.data)
    data |= {name: None for name in data if FLAGS.split == "validation" and not data[name].test}
    missing |= {name: "no part to choose recipes with" for name, found in data.items() if not found}
    for name, reason in missing.items():
        print(f"{TASKS[name].title} is left out: {reason}")
    data = {name: found for name, found in data.items() if found}

    trainer = None
    if set(FLAGS.methods) - {"tfidf"}:
        from results_models import Trainer  # TensorFlow: some seconds.

        trainer = Trainer(FLAGS.preset, fast_dtype.choose(FLAGS.dtype))
    runs = plan(data, FLAGS.methods, sizes, FLAGS.seeds, FLAGS.split, trainer)
    results = Results(output_dir / "results.jsonl")
    todo = [run for run in runs if run.key not in results.rows]
    print(f"{len(runs)} runs, {len(runs) - len(todo)} of them finished before", flush=True)
    for number, run in enumerate(todo, 1):
        start = time.perf_counter()
        found = run.execute(data[run.task], trainer)
        results.add(run, found, time.perf_counter() - start)
        left = results_report.format_time(remaining_seconds(todo[number:], results.rows.values()))
        print(f"[{number}/{len(todo)}] {run.describe(found)}; {left} left", flush=True)

    rows = [results.rows[run.key] for run in runs]
    table = results_report.format_report(rows, FLAGS.preset, FLAGS.split)
    (output_dir / "results.md").write_text(table, encoding="utf-8")
    results_report.draw(rows, output_dir / "results.png")
    print(f"\n{table}\nWritten to {output_dir}: results.jsonl, results.md, results.png")


@dataclasses.dataclass(frozen=True)
class Run:
    """One training and its test.

    Args:
        task: Name in `TASKS`.
        method: Name in `METHODS`.
        size: Number of training examples, or `"all"`.
        seed: Seed of the weights, the order, the dropout, the subset, and the fold if there are
            folds.
        split: `"test"` or `"validation"`.
        settings: String with all else that the result depends on.
        work: What the run costs, compared with others of its method.
    """

    task: str
    method: str
    size: int | str
    seed: int
    split: str
    settings: str
    work: float = dataclasses.field(compare=False, default=1.0)

    @property
    def key(self):
        """What a run is found by in the file of results."""
        return self.task, self.method, self.size, self.seed, self.split, self.settings

    def execute(self, data, trainer):
        """Trains and tests, and returns the metrics of the task, in percent."""
        train, test = data.parts(self.seed, self.split)
        train = draw_subset(train, self.size, self.seed)
        names = TASKS[self.task].metrics
        if self.method == "tfidf":
            predict = tfidf.fit_tuned(
                train.texts, train.labels, METRICS[names[0]], self.seed
            ).predict
        else:
            from_scratch = self.method == "from_scratch"
            predict = trainer.train(train, RECIPES[self.task], self.seed, from_scratch)
        predictions = predict(test.texts)
        return {name: METRICS[name](test.labels, predictions) for name in names}

    def describe(self, found):
        """Returns the run and its metrics as a line."""
        metrics = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
        return f"{self.task} {self.method}, {self.size} examples, seed {self.seed}: {metrics}"


def plan(data, methods, sizes, seeds, split, trainer):
    """Returns all runs: first everything with the first seed, then with the second.

    Args:
        data: Dict of `results_tasks.Data` by task.
        methods: Names in `METHODS`.
        sizes: Numbers of training examples, or `None` for those of each task.
        seeds: Int, the number of seeds.
        split: `"test"` or `"validation"`.
        trainer: A `results_models.Trainer`, or `None` if `methods` need none.
    """
    runs = []
    for seed in range(seeds):
        for task, found in data.items():
            train, _ = found.parts(seed, split)
            for size in sizes or TASKS[task].sizes:
                if size != "all" and size >= len(train):
                    continue
                count = len(train) if size == "all" else size
                for method in methods:
                    described = _describe(task, method, count, trainer)
                    runs.append(Run(task, method, size, seed, split, *described))
    return runs


def _describe(task, method, examples, trainer):
    """The settings and the work of a run."""
    if method == "tfidf":
        return f"{tfidf.TEXT_GRID} {tfidf.PAIR_GRID} {tfidf.RIDGE_GRID}", float(examples)
    from_scratch, recipe = method == "from_scratch", RECIPES[task]
    work = recipe.steps(examples, from_scratch) * recipe.batch_size * recipe.sequence_length
    return f"{trainer.identity(from_scratch)} {trainer.dtype} {recipe}", float(work)


class Results:
    """The file of finished runs, a line of JSON each.

    Args:
        path: `pathlib.Path` of the file.
    """

    def __init__(self, path):
        self.path = path
        self.rows = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        complete = text[: text.rfind("\n") + 1]
        if complete != text:  # The command was killed while it wrote a line.
            path.write_text(complete, encoding="utf-8")
        for line in complete.splitlines():
            row = json.loads(line)
            self.rows[Run(**row["run"]).key] = row

    def add(self, run, found, seconds):
        """Adds a run and its metrics."""
        row = {"run": dataclasses.asdict(run), "metrics": found, "seconds": round(seconds, 1)}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.rows[run.key] = row


def remaining_seconds(todo, rows):
    """Estimates the time of runs from that of finished ones, or returns `None`.

    Args:
        todo: `Run`s.
        rows: Rows of `Results`.
    """
    work, seconds = {}, {}
    for row in rows:
        kind = _kind(row["run"]["method"])
        work[kind] = work.get(kind, 0.0) + row["run"]["work"]
        seconds[kind] = seconds.get(kind, 0.0) + row["seconds"]
    if {_kind(run.method) for run in todo} - set(work):
        return None
    return sum(run.work * seconds[_kind(run.method)] / work[_kind(run.method)] for run in todo)


def _kind(method):
    return "tfidf" if method == "tfidf" else "model"


def _check_names(flag, given, known):
    unknown = [name for name in given if name not in known]
    if unknown or not given:
        raise ValueError(f"{flag} must be some of {', '.join(known)}. Received: {','.join(given)}")


def _parse_size(size):
    if size == "all":
        return size
    if not size.isdecimal() or int(size) < 10:
        raise ValueError(f'--sizes must be numbers of at least 10, or "all". Received: {size}')
    return int(size)


if __name__ == "__main__":
    app.run(main)

"""Compares fine-tuned presets on seven tasks with tuned TF-IDF and a linear model.

    python research/tasks/results.py --data path/to/data

trains on SMS spam, SST-2, CoLA, MRPC, RTE, STS-B and query well-formedness, with several numbers of
training examples and three seeds each, and writes a table and a picture to runs/results. The SMS
messages are in this repository; tasks whose files are missing are left out. A task is in
`tasks/NAME` as its authors publish it: docs/results.md. The whole command takes hours on 2 cores.
After an interruption it continues: each finished run is a line of results.jsonl,
and is repeated only if the preset or the recipe of its task changes. The table has all runs of that
file. Parts of it:

    python research/tasks/results.py                                       # only SMS spam
    python research/tasks/results.py --data data --tasks sst2,sms --seeds 2 --sizes 100,all
    python research/tasks/results.py --data data --split validation        # to choose recipes
    python research/tasks/results.py --data data --methods tfidf,xlnet_small_en,runs/pretrain/preset
"""

import functools
import itertools
import pathlib
import sys
import time

import results_report
import tfidf
from absl import app, flags
from finished_runs import FinishedRuns
from results_tasks import METRICS, RECIPES, TASKS, draw_subset, read_tasks

from keras_xlnet.training import fastest_dtype

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Folder with tasks/ and sms_spam_collection/. [only SMS spam]")
flags.DEFINE_string("output_dir", "runs/results", "Where everything is written.")
flags.DEFINE_list("tasks", list(TASKS), f"Some of {', '.join(TASKS)}.")
flags.DEFINE_list("methods", ["tfidf", "xlnet_mini_en"], "tfidf, and names or paths of presets.")
flags.DEFINE_integer("seeds", 3, "Runs of each kind; 5 are a cross-validation.", lower_bound=1)
flags.DEFINE_list("sizes", None, 'Numbers of training examples, "all" for all. [of the task]')
flags.DEFINE_enum("split", "test", ["test", "validation"], "What to report on.")
flags.DEFINE_enum(
    "dtype", "auto", ["auto", "float32", "mixed_bfloat16"], "Policy of the models. [the faster one]"
)


def main(arguments):
    if len(arguments) > 1:
        sys.exit(f"error: unexpected arguments: {' '.join(arguments[1:])}")
    try:
        run_all()
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


def run_all():
    """Executes the runs that are not in the file, and writes the table and the picture."""
    unknown = [name for name in FLAGS.tasks if name not in TASKS]
    if unknown or not FLAGS.tasks:
        raise ValueError(f"--tasks must be some of {', '.join(TASKS)}. Received: {FLAGS.tasks}")
    sizes = None if FLAGS.sizes is None else [_parse_size(size) for size in FLAGS.sizes]
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    data, missing = read_tasks(FLAGS.tasks, FLAGS.data)
    data |= {name: None for name in data if FLAGS.split == "validation" and not data[name].test}
    missing |= {name: "no part to choose recipes with" for name, found in data.items() if not found}
    for name, reason in missing.items():
        print(f"{TASKS[name].title} is left out: {reason}")
    data = {name: found for name, found in data.items() if found}

    dtype = fastest_dtype() if FLAGS.dtype == "auto" else FLAGS.dtype
    runs = plan(data, FLAGS.methods, sizes, FLAGS.seeds, FLAGS.split, dtype)
    results = FinishedRuns(output_dir / "results.jsonl")
    todo = [run for run in runs if run not in results]
    print(f"{len(runs)} runs, {len(runs) - len(todo)} of them finished before", flush=True)
    for number, run in enumerate(todo, 1):
        start = time.perf_counter()
        found = execute(run, data[run["task"]], dtype)
        results.add(run, found, time.perf_counter() - start)
        metrics = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
        described = "{task} {method}, {size} examples, seed {seed}".format(**run)
        print(f"[{number}/{len(todo)}] {described}: {metrics}", flush=True)

    rows = [row for row in results.rows.values() if row["run"]["split"] == FLAGS.split]
    table = results_report.format_report(rows, FLAGS.split)
    (output_dir / "results.md").write_text(table, encoding="utf-8")
    results_report.draw(rows, output_dir / "results.png")
    print(f"\n{table}\nWritten to {output_dir}: results.jsonl, results.md, results.png")


def execute(run, data, dtype):
    """Trains and tests, and returns the metrics of the task, in percent."""
    train, test = data.parts(run["seed"], run["split"])
    train, seed = draw_subset(train, run["size"], run["seed"]), run["seed"]
    names = TASKS[run["task"]].metrics
    if run["method"] == "tfidf":
        predict = tfidf.fit_tuned(train.texts, train.labels, METRICS[names[0]], seed).predict
    else:
        from results_models import fine_tune  # TensorFlow: some seconds.

        predict = fine_tune(run["method"], train, RECIPES[run["task"]], seed, dtype)
    predictions = predict(test.texts)
    return {name: METRICS[name](test.labels, predictions) for name in names}


def plan(data, methods, sizes, seeds, split, dtype):
    """Returns all runs, dicts: first all runs with the first seed, then with the second.

    The seed determines the weights, the order, the dropout, the subset, and the fold, if any.

    Args:
        data: Dict of `results_tasks.Data` by task.
        methods: `"tfidf"` and names or locations of presets.
        sizes: Numbers of training examples, or `None` for the numbers of each task.
        seeds: Int, the number of seeds.
        split: `"test"` or `"validation"`.
        dtype: String, the dtype policy of the models.
    """
    runs = []
    for seed, (task, found) in itertools.product(range(seeds), data.items()):
        train, _ = found.parts(seed, split)
        for size, method in itertools.product(sizes or TASKS[task].sizes, methods):
            if size == "all" or size < len(train):
                run = {"task": task, "method": method, "size": size, "seed": seed, "split": split}
                runs.append({**run, "settings": _settings(task, method, dtype)})
    return runs


def _settings(task, method, dtype):
    """Returns a string with everything else that a result depends on."""
    if method == "tfidf":
        return f"{tfidf.TEXT_GRID} {tfidf.PAIR_GRID} {tfidf.RIDGE_GRID}"
    return f"{_digest_of(method)} {dtype} {RECIPES[task]}"


@functools.cache
def _digest_of(preset):
    from results_models import digest_of  # TensorFlow: some seconds.

    return digest_of(preset)


def _parse_size(size):
    if size == "all":
        return size
    if not size.isdecimal() or int(size) < 10:
        raise ValueError(f'--sizes must be numbers of at least 10, or "all". Received: {size}')
    return int(size)


if __name__ == "__main__":
    app.run(main)

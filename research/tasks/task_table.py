"""Trains and tests on the real files of tasks, and writes one table: `make tasks`.

    python research/tasks/task_table.py --data path/to/data
    python research/tasks/task_table.py --data data --tasks wikiqa wnut17 --runs 1
    python research/tasks/task_table.py --data data --kinds preset --runs 1 \\
        --tasks mc500 mc160 squad1 squad2

compares three runs each of the preset and of the same architecture from scratch with a simple
baseline: a dictionary of names, shared words, BM25, or TF-IDF with a linear model. It prints all
metrics, and writes table.md and runs.jsonl to runs/tasks. Finished runs are not repeated, so the
command continues after an interruption. All tasks take many hours on 2 cores.

--data has the folders `tasks` and `squad`, as in docs/tasks.md. Tasks whose files are missing are
left out. For single sentences and pairs: results.py.
"""

import argparse
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from finished_runs import FinishedRuns
from real_tasks import TASKS, rows_of

from keras_xlnet.training import fastest_dtype

KINDS = ("preset", "from scratch")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--output_dir", type=pathlib.Path, default=pathlib.Path("runs/tasks"))
    parser.add_argument("--preset", default="xlnet_small_en", help="name or location")
    tasks = ["wnut17", "race", "wikiqa", "imdb_windows"]
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=tasks)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of weights")
    parser.add_argument("--runs", type=int, default=3, help="trainings of each kind")
    parser.add_argument("--num_examples", type=int, help="to train on and to test [of the task]")
    parser.add_argument("--epochs", type=int, help="instead of the number of the task")
    arguments = parser.parse_args()
    arguments.output_dir.mkdir(parents=True, exist_ok=True)
    runs = FinishedRuns(arguments.output_dir / "runs.jsonl")
    table = [["task", "metric", "examples", *arguments.kinds, "baseline"]]
    table.append(["---"] * 3 + ["---:"] * (len(table[0]) - 3))
    for name in arguments.tasks:
        try:
            parts = read_parts(TASKS[name], arguments.data)
            if parts is not None:
                table.append(row_of(name, parts, runs, arguments))
        except (ImportError, OSError, ValueError) as error:
            sys.exit(f"error: {' '.join(str(error).split())}")
        # After each task, so that a killed command leaves the finished rows.
        text = "".join(f"| {' | '.join(cells)} |\n" for cells in table)
        (arguments.output_dir / "table.md").write_text(text, encoding="utf-8")
    print(f"\n{text}\nWritten to {arguments.output_dir}")


def read_parts(task, data):
    """Returns the parts of a task, or `None` with a message if its files are missing."""
    try:
        return task.read(data)
    except FileNotFoundError as error:
        print(f"{task.title} is left out: {error}")
        return None


def row_of(name, parts, runs, arguments):
    """Executes the unfinished runs of a task, and returns the cells of its row."""
    task = TASKS[name]
    task.epochs = arguments.epochs or task.epochs
    number = arguments.num_examples or task.num_examples
    rng = np.random.default_rng(1)
    train, test = (draw(part, number, rng) for part in parts)
    print(f"\n{task.title}: {len(train[task.label]):,} rows to train on, ", end="")
    print(f"{len(test[task.label]):,} to test", flush=True)
    cells = []
    for kind in (*arguments.kinds, "baseline"):
        found = []
        for seed in range(1, 1 + arguments.runs if kind != "baseline" else 2):
            preset = arguments.preset if kind != "baseline" else None
            run = {"task": name, "kind": kind, "seed": seed, "preset": preset}
            run |= {"num_examples": number, "epochs": task.epochs}
            if run not in runs:
                start = time.perf_counter()
                predicted = predictions(task, kind, train, test, seed, preset)
                runs.add(run, task.score(test, predicted), time.perf_counter() - start)
            found.append(runs.rows[tuple(run.values())])
        means = {
            metric: 100 * np.mean([row["metrics"][metric] for row in found])
            for metric in found[0]["metrics"]
        }
        values = [100 * row["metrics"][task.metric] for row in found]
        deviation = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
        baseline = f" ({task.baseline})" if kind == "baseline" else ""
        cells.append(f"{means[task.metric]:.1f}{deviation}{baseline}")
        printed = ", ".join(f"{metric} {value:.1f}" for metric, value in means.items())
        print(f"{kind}: {printed}; {found[0]['seconds']:.0f} s a run", flush=True)
    return [task.title, task.metric, f"{number:,}" if number else "all", *cells]


def draw(columns, number, rng):
    """Returns random rows of columns, in their order."""
    total = len(next(iter(columns.values())))
    if number is None or number >= total:
        return columns
    return rows_of(columns, np.sort(rng.choice(total, number, replace=False)))


def predictions(task, kind, train, test, seed, preset):
    if kind == "baseline":
        return task.baseline_predictions(train, test)
    is_pretrained = kind == "preset"
    model = task.new_model(preset, train, seed, is_pretrained, dtype=fastest_dtype())
    task.fit(model, train, seed)
    return task.predict(model, test)


if __name__ == "__main__":
    main()

"""Compares settings of `fit` on validation examples of several tasks.

    python research/tasks/fit_settings.py --data path/to/data
    python research/tasks/fit_settings.py --data path/to/data --examples 1000 --epochs 4 \
        --settings "random head,head first,half rate"

Runs with the same seed have the same training examples and 500 validation examples. It writes a
line for each run to `--output_dir`, continues after an interruption, and prints a table. The tasks
are laid out as for results.py. No test example is read.
"""

import pathlib
import time

import numpy as np
from absl import app, flags
from finished_runs import FinishedRuns
from results_models import columns_of, make_model
from results_tasks import METRICS, RECIPES, TASKS, draw_subset, read_tasks

from keras_xlnet.training import FineTuningAdamW, fastest_dtype

# The arguments of `fit`, and the factor of the default learning rate.
SETTINGS = {
    "random head": ({"head_first": False}, 1.0),
    "head first": ({"head_first": True}, 1.0),
    "half rate": ({"head_first": False}, 0.5),
    "head first at half rate": ({"head_first": True}, 0.5),
}
FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Folder with tasks/.", required=True)
flags.DEFINE_string("output_dir", "runs/fit_settings", "Where the runs are written.")
flags.DEFINE_list("tasks", ["sst2", "cola", "mrpc", "stsb", "qwf"], "Tasks of results.py.")
flags.DEFINE_string("preset", "xlnet_mini_en", "Name or location of the preset.")
flags.DEFINE_integer("seeds", 5, "Runs of each setting.", lower_bound=1)
flags.DEFINE_integer("examples", 300, "Training examples.", lower_bound=1)
flags.DEFINE_integer("epochs", 2, "Passes over them.", lower_bound=1)
flags.DEFINE_list("settings", ["random head", "head first"], f"Of {', '.join(SETTINGS)}.")
flags.register_validator("settings", lambda names: SETTINGS.keys() >= set(names))
_VALIDATED = 500


def main(arguments):
    del arguments
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    finished = FinishedRuns(output_dir / "fit_settings.jsonl")
    data, _ = read_tasks(FLAGS.tasks, FLAGS.data)
    common = {"preset": FLAGS.preset, "examples": FLAGS.examples, "epochs": FLAGS.epochs}
    for seed in range(FLAGS.seeds):
        for task in FLAGS.tasks:
            for setting in FLAGS.settings:
                run = {**common, "task": task, "seed": seed, "setting": setting}
                if run not in finished:
                    start = time.perf_counter()
                    found = execute(data[task], **run)
                    finished.add(run, found, time.perf_counter() - start)
                    print(run, found, flush=True)
    rows = [row for row in finished.rows.values() if common.items() <= row["run"].items()]
    print(table(rows, FLAGS.settings))


def execute(data, preset, examples, epochs, task, seed, setting):
    """Returns the metric of a task in percent, and the seconds of `fit`."""
    train, validation = data.parts(seed, "validation")
    train = draw_subset(train, examples, seed)
    validation = draw_subset(validation, _VALIDATED, 0)
    model, labels, decode = make_model(preset, train, RECIPES[task], seed, fastest_dtype())
    options, factor = SETTINGS[setting]
    model.compile(FineTuningAdamW(factor * model.optimizer.schedule.highest))
    start = time.perf_counter()
    model.fit(columns_of(train.texts), labels, epochs=epochs, verbose=0, **options)
    seconds = time.perf_counter() - start
    outputs = model.predict(columns_of(validation.texts), verbose=0)
    value = METRICS[TASKS[task].metrics[0]](validation.labels, decode(outputs))
    return {"value": value, "seconds": seconds}


def table(rows, settings):
    """Returns a table of Markdown: means over the seeds, and the worst seed of each."""
    titles = [f"{setting} (worst seed)" for setting in settings]
    lines = [["task", "metric", *titles, "seconds"], ["---"] * (len(settings) + 3)]
    for task in dict.fromkeys(row["run"]["task"] for row in rows):
        cells, seconds = [], []
        for setting in settings:
            found = [
                row["metrics"]
                for row in rows
                if (row["run"]["task"], row["run"]["setting"]) == (task, setting)
            ]
            values = [x["value"] for x in found]
            cells.append(f"{np.mean(values):.1f} ({min(values):.1f})" if values else "")
            seconds.append(f"{np.median([x['seconds'] for x in found]):.0f}" if found else "")
        lines.append([TASKS[task].title, TASKS[task].metrics[0], *cells, " : ".join(seconds)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    app.run(main)

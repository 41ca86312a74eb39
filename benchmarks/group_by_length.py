"""Accuracy with and without batches of like length: three tasks, several seeds.

    python benchmarks/group_by_length.py --data ../shared/data

Each pair of runs has the same seed, rows and number of steps; only the batches differ. A run that
is in the output file is not repeated. It prints the mean of each task and of the differences.
"""

import json
import pathlib
import time

import keras
import numpy as np
from absl import app, flags

from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.task_files import read_table

FLAGS = flags.FLAGS
flags.DEFINE_string("data", "../shared/data", "The folder with sms_spam_collection and tasks.")
flags.DEFINE_string("output", "runs/group_by_length.jsonl", "Where runs are written.")
flags.DEFINE_integer("seeds", 5, "Runs of each task.")
flags.DEFINE_integer("rows", 1500, "Rows to train on.")
flags.DEFINE_integer("epochs", 2, "Epochs of a run.")


def sms(folder):
    path = folder / "sms_spam_collection" / "SMSSpamCollection"
    columns = read_table(path, {"label": 0, "text": 1}, has_header=False)
    return columns["text"], np.array([label == "spam" for label in columns["label"]], "int32")


def sst2(folder):
    path = folder / "tasks" / "sst2" / "train.tsv"
    columns = read_table(path, {"text": 0, "label": 1}, has_header=False)
    return columns["text"], np.array([int(label) for label in columns["label"]], "int32")


def stsb(folder):
    lines = (folder / "tasks" / "stsb" / "sts-train.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(row[5], row[6]) for row in rows], np.array([float(row[4]) / 5 for row in rows])


TASKS = {"sms": sms, "sst2": sst2, "stsb": stsb}


def run(task, texts, labels, seed, group_by_length):
    """Returns the score of a run, and its seconds of training."""
    keras.utils.set_random_seed(seed)
    order = np.random.default_rng(seed).permutation(len(texts))
    train, test = order[: FLAGS.rows], order[-1000:]
    model_class = XLNetTextRegressor if task == "stsb" else XLNetTextClassifier
    arguments = {"pooling": "pair"} if task == "stsb" else {"num_classes": 2, "pooling": "mean"}
    model = model_class.from_preset("xlnet_small_en", sequence_length=128, seed=seed, **arguments)
    model.compile(keras.optimizers.AdamW(5e-4, weight_decay=0.01, global_clipnorm=1.0))
    begin = time.process_time()
    model.fit(
        [texts[i] for i in train],
        labels[train],
        epochs=FLAGS.epochs,
        group_by_length=group_by_length,
        verbose=0,
    )
    seconds = time.process_time() - begin
    outputs = model.predict([texts[i] for i in test], verbose=0)
    if task == "stsb":
        return float(np.corrcoef(outputs[:, 0], labels[test])[0, 1]), seconds
    return float((outputs.argmax(axis=1) == labels[test]).mean()), seconds


def main(_):
    output = pathlib.Path(FLAGS.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    lines = output.read_text().splitlines() if output.exists() else []
    found = {tuple(row[:3]): row[3:] for row in map(json.loads, lines)}
    for task, read in TASKS.items():
        texts, labels = read(pathlib.Path(FLAGS.data))
        for seed in range(FLAGS.seeds):
            for flag in (True, False):
                if (task, seed, flag) not in found:
                    found[task, seed, flag] = run(task, texts, labels, seed, flag)
                    with output.open("a") as file:
                        print(json.dumps([task, seed, flag, *found[task, seed, flag]]), file=file)
        scores = np.array([[found[task, s, f] for f in (True, False)] for s in range(FLAGS.seeds)])
        grouped, single = scores[..., 0].T
        difference = grouped - single
        print(
            f"{task}: grouped {grouped.mean():.4f}, one length {single.mean():.4f}, difference "
            f"{difference.mean():+.4f} +- {difference.std(ddof=1) / FLAGS.seeds**0.5:.4f}; CPU s "
            f"{scores[:, 0, 1].mean():.0f} and {scores[:, 1, 1].mean():.0f}"
        )


if __name__ == "__main__":
    app.run(main)

"""Compares accuracy with and without batches of similar length: three tasks, several seeds.

    python -m benchmarks.group_by_length --data ../shared/data

Each pair of runs has the same seed, rows and number of steps; only the batches differ. It prints
the mean of each task and of the differences.
"""

import itertools
import time

import keras
import numpy as np
from absl import app, flags

from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.task_files import read_table

FLAGS = flags.FLAGS
flags.DEFINE_string("data", "../shared/data", "The folder with sms_spam_collection and tasks.")
flags.DEFINE_integer("seeds", 5, "Runs of each task.")
flags.DEFINE_integer("rows", 1500, "Rows to train on.")
flags.DEFINE_integer("epochs", 2, "Epochs of a run.")

# The file of each task, and its columns of texts and labels.
TASKS = {
    "sms": ("sms_spam_collection/SMSSpamCollection", [1], 0),
    "sst2": ("tasks/sst2/train.tsv", [0], 1),
    "stsb": ("tasks/stsb/sts-train.csv", [5, 6], 4),
}


def read(task):
    """Returns texts or pairs of texts, and labels."""
    file, texts, label = TASKS[task]
    columns = {"label": label} | {f"text {i}": i for i in texts}
    table = read_table(f"{FLAGS.data}/{file}", columns, has_header=False, delimiter="\t")
    labels = table.pop("label")
    if task == "stsb":
        return [*zip(*table.values(), strict=True)], np.array(labels, float) / 5
    return table[f"text {texts[0]}"], np.isin(labels, ["spam", "1"]).astype("int32")


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
    options = {"epochs": FLAGS.epochs, "group_by_length": group_by_length, "verbose": 0}
    model.fit([texts[i] for i in train], labels[train], **options)
    seconds = time.process_time() - begin
    outputs = model.predict([texts[i] for i in test], verbose=0)
    if task == "stsb":
        return float(np.corrcoef(outputs[:, 0], labels[test])[0, 1]), seconds
    return float((outputs.argmax(axis=1) == labels[test]).mean()), seconds


def main(_):
    found = {}
    for task in TASKS:
        texts, labels = read(task)
        for key in itertools.product([task], range(FLAGS.seeds), (True, False)):
            found[key] = run(task, texts, labels, *key[1:])
        scores = np.array([[found[task, s, f] for f in (True, False)] for s in range(FLAGS.seeds)])
        (grouped, single), seconds = scores[..., 0].T, scores[..., 1].mean(axis=0)
        difference = grouped - single
        error = difference.std(ddof=1) / FLAGS.seeds**0.5
        print(f"{task}: grouped {grouped.mean():.4f}, one length {single.mean():.4f}, ", end="")
        print(f"difference {difference.mean():+.4f} +- {error:.4f}; ", end="")
        print("CPU s {:.0f} and {:.0f}".format(*seconds))


if __name__ == "__main__":
    app.run(main)

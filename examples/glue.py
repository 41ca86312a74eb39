"""Classes or numbers of texts, or of pairs of texts, from any table.

    python examples/glue.py                        # which of 400 questions are well-formed English
    python examples/glue.py --label rating --numbers                      # how well-formed they are
    python examples/glue.py --label rating --numbers --ratings           # as ratings by five people
    python examples/glue.py --data mrpc_train.txt --test mrpc_test.txt \\
        --text "#1 String" --pair "#2 String" --label Quality
    python examples/glue.py --data sst2/train.tsv --test sst2/test.tsv --text 0 --label 1

Ratings, such as scores of essays, are the different numbers of the training examples. Predictions
become ratings by thresholds that are fitted to a quarter of these examples, without training on it.

Columns are named by the header, or by numbers from 0 in files without a header, as in GLUE. It
prints the metrics beside those of a model that always gives the most frequent class or the mean,
and the examples where model and label differ most, and writes the model, `metrics.json` and
`predictions.tsv` to runs/glue. The questions are a part of this repository (examples/data).
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from absl import app, flags
from scipy import stats
from sklearn import metrics

from keras_xlnet.evaluation import QuadraticWeightedKappa, fit_rating_thresholds
from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_table
from keras_xlnet.training import fastest_dtype

DATA = pathlib.Path(__file__).parent / "data"
FLAGS = flags.FLAGS
flags.DEFINE_string("data", str(DATA / "questions_sample.tsv"), "TSV or CSV file to train on.")
flags.DEFINE_string("test", str(DATA / "questions_sample_test.tsv"), "The same to test on.")
flags.DEFINE_string("text", "question", "Column of the texts: its name, or its number.")
flags.DEFINE_string("pair", None, "Column of the second texts of pairs.")
flags.DEFINE_string("label", "is_well_formed", "Column of the classes or numbers.")
flags.DEFINE_bool("numbers", False, "The labels are numbers, not classes.")
flags.DEFINE_bool("ratings", False, "Numbers are ratings: predict these, by fitted thresholds.")
flags.DEFINE_string("preset", "xlnet_mini_en", "Name or path of the preset to fine-tune.")
flags.DEFINE_integer("sequence_length", 64, "Tokens that an example is cut to.", lower_bound=5)
flags.DEFINE_integer("epochs", 4, "Passes over the training examples.", lower_bound=1)
flags.DEFINE_string("output_dir", "runs/glue", "Where everything is written.")


def main(arguments):
    try:
        train, labels = read(FLAGS.data)
        test, test_labels = read(FLAGS.test)
        print(f"{len(labels)} examples to train on, {len(test_labels)} to test")
        with replace_files(FLAGS.output_dir) as folder:  # Nothing is left there if the run fails.
            found = run(train, labels, test, folder)
            report(folder, test, test_labels, found, labels)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


def read(path):
    """Returns the texts, a dict of `text` and perhaps `pair`, and the labels."""
    columns = {"text": FLAGS.text, "pair": FLAGS.pair, "label": FLAGS.label}
    columns = {name: column for name, column in columns.items() if column is not None}
    has_header = not all(column.isdecimal() for column in columns.values())
    if not has_header:
        columns = {name: int(column) for name, column in columns.items()}
    table = read_table(path, columns, has_header=has_header, numeric=["label"] * FLAGS.numbers)
    return table, table.pop("label")


def run(train, labels, test, folder):
    """Trains and saves a model, and returns what it finds for the test examples."""
    keras.utils.set_random_seed(1)
    arguments = {"sequence_length": FLAGS.sequence_length, "dtype": fastest_dtype()}
    arguments["pooling"] = "pair" if FLAGS.pair else "mean"
    if FLAGS.numbers:
        model = XLNetTextRegressor.from_preset(FLAGS.preset, **arguments)
    else:
        names = sorted(set(labels))
        arguments |= {"num_classes": len(names), "class_names": names}
        model = XLNetTextClassifier.from_preset(FLAGS.preset, **arguments)
    count = len(labels) // 4 if FLAGS.ratings else 0
    held_out = {name: column[:count] for name, column in train.items()}
    train = {name: column[count:] for name, column in train.items()}
    model.fit(train, labels[count:], epochs=FLAGS.epochs)
    model.save(folder / "model.keras")
    if not FLAGS.numbers:
        return [found.label for found in model.classify(test, verbose=0)]
    found = model.predict(test, verbose=0)[:, 0]
    if FLAGS.ratings:
        ratings, places = np.unique(labels, return_inverse=True)
        thresholds = fit_rating_thresholds(model.predict(held_out, verbose=0), places[:count])
        found = ratings[places[:count].min() + np.digitize(found, thresholds)]
    return found.tolist()


def report(folder, test, labels, found, train_labels):
    """Prints and writes the metrics, and the predictions."""
    if FLAGS.numbers:
        scores = {
            "pearson": float(stats.pearsonr(labels, found).statistic),
            "spearman": float(stats.spearmanr(labels, found).statistic),
        }
        if FLAGS.ratings:
            kappa = QuadraticWeightedKappa(0, len(set(train_labels)) - 1)
            places = np.searchsorted(np.unique(train_labels), [labels, found])
            scores["kappa"] = float(kappa(*places))
        worst = np.argsort(-np.abs(np.subtract(found, labels)))
    else:
        baseline = max(set(train_labels), key=train_labels.count)
        scores = {
            "accuracy": metrics.accuracy_score(labels, found),
            "mcc": metrics.matthews_corrcoef(labels, found),
            "f1_macro": metrics.f1_score(labels, found, average="macro"),
            "accuracy_of_most_frequent": labels.count(baseline) / len(labels),
        }
        worst = np.flatnonzero(np.not_equal(found, labels))
    print(json.dumps(scores, indent=2), "\nSome examples where model and label differ:")
    for row in worst[:3]:
        print(f"  label {labels[row]}, model {found[row]}: {test['text'][row]}")
    (folder / "metrics.json").write_text(json.dumps({"model": scores}), encoding="utf-8")
    lines = [f"{label}\t{value}\n" for label, value in zip(labels, found, strict=True)]
    (folder / "predictions.tsv").write_text("".join(["label\tprediction\n", *lines]), "utf-8")


if __name__ == "__main__":
    app.run(main)

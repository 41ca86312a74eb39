"""Documents of many pages, read whole, by windows or with memory, or in part.

    python examples/long_documents.py
    python examples/long_documents.py --long_document truncate,memory
    python examples/long_documents.py --data train.jsonl --test test.jsonl --epochs 2

fine-tunes a preset to tell who wrote a piece of a novel (Burroughs, Dickens, Doyle or Hardy). It
trains on 64 pieces of half a page to five pages, and tests on 40 pieces of other novels. "truncate"
and "head_tail" keep 256 tokens of a piece, "windows" and "memory" read all of it. It prints the
accuracy by the length of the pieces, and writes the models, `metrics.json` and a plot to
runs/long_documents. It takes about five minutes and needs no network.

40 pieces are too few to compare methods: docs/long_sequences.md has the four ways on movie reviews,
and what they cost. The texts are in the public domain.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import matplotlib
import numpy as np
from absl import app, flags

from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_json_lines
from keras_xlnet.training import FineTuningAdamW, fastest_dtype

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

DATA = pathlib.Path(__file__).parent / "data"
FLAGS = flags.FLAGS
flags.DEFINE_string("data", str(DATA / "authors_sample.jsonl"), "JSON lines to train on.")
flags.DEFINE_string("test", str(DATA / "authors_sample_test.jsonl"), "The same to test on.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or path of the preset to fine-tune.")
flags.DEFINE_list(
    "long_document", ["truncate", "head_tail", "windows", "memory"], "Ways to read a document."
)
flags.DEFINE_integer("max_length", 10_240, "Tokens of windows and memory, at most: 20 pages.")
flags.DEFINE_integer("epochs", 5, "Passes over the training documents.", lower_bound=1)
flags.DEFINE_string("output_dir", "runs/long_documents", "Where everything is written.")


def main(arguments):
    try:
        columns = {"text": "text", "label": "label"}
        train, test = (read_json_lines(path, columns) for path in (FLAGS.data, FLAGS.test))
        print(f"{len(train['text'])} documents to train on, {len(test['text'])} to test")
        with replace_files(FLAGS.output_dir) as folder:  # Nothing is left there if the run fails.
            is_right = {way: run(way, train, test, folder) for way in FLAGS.long_document}
            report(folder, [len(text) for text in test["text"]], is_right)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


def run(way, train, test, folder):
    """Trains and saves a model, and returns for each test document whether it is right."""
    print(f"\n{way}", flush=True)
    keras.utils.set_random_seed(1)
    names = sorted(set(train["label"]))
    is_whole = way in ("windows", "memory")
    model = XLNetTextClassifier.from_preset(
        FLAGS.preset, num_classes=len(names), class_names=names, dtype=fastest_dtype(),
        backbone_dropout=0.1, attention_dropout=0.1,
        long_document=way, sequence_length=FLAGS.max_length if is_whole else 256,
        segment_length=128, gradient_segments=2, memory_length=128 if way == "memory" else None,
    )  # fmt: skip
    model.compile(FineTuningAdamW(5e-4))
    model.fit(train["text"], train["label"], batch_size=8, epochs=FLAGS.epochs)
    model.save(folder / f"{way}.keras")
    found = [each.label for each in model.classify(test["text"], verbose=0)]
    return np.equal(found, test["label"])


def report(folder, lengths, is_right):
    """Prints, writes and draws the accuracy of the shorter, middle and longer documents."""
    thirds = np.array_split(np.argsort(lengths), 3)
    rows = {
        way: [100 * float(right[third].mean()) for third in thirds]
        for way, right in is_right.items()
    }
    names = [f"{lengths[third[0]]:,} to {lengths[third[-1]]:,}" for third in thirds]
    figure, axes = plt.subplots(figsize=(8, 4))
    for i, (way, values) in enumerate(rows.items()):
        print(f"{way:10} {100 * is_right[way].mean():5.1f} {[round(value, 1) for value in values]}")
        axes.bar(np.arange(3) + (i - 1.5) * 0.2, values, 0.2, label=way)
    axes.set_xticks(range(3), names)
    axes.set(xlabel="characters of the document", ylabel="accuracy in percent", ylim=(0, 100))
    axes.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.12), frameon=False)
    figure.savefig(folder / "accuracy.png", dpi=120, bbox_inches="tight")
    metrics = {"characters": names, "accuracy_by_length": rows}
    (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    app.run(main)

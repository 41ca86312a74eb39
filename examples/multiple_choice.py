"""The right one of several answers to a question on a text.

    python examples/multiple_choice.py
    python examples/multiple_choice.py --data train.jsonl --test dev.jsonl              # RACE
    python examples/multiple_choice.py --data mc500.train.tsv --test mc500.test.tsv     # MCTest

fits a preset to texts, questions and choices, compares its accuracy with that of chance, prints
some questions with the probabilities of their choices, and writes the model, `metrics.json` and
`predictions.json` to runs/multiple_choice. It takes about two minutes and needs no network.

The default questions are about 80 invented stories made from sentence patterns; the test has the
same patterns with other facts. The scores show that everything works, and no more.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from absl import app, flags

from keras_xlnet.models import XLNetMultipleChoice
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_mctest, read_race
from keras_xlnet.training import FineTuningAdamW, fastest_dtype

DATA = pathlib.Path(__file__).parent / "data"
FLAGS = flags.FLAGS
flags.DEFINE_string("data", str(DATA / "multiple_choice_sample.jsonl"), "Questions to train on.")
flags.DEFINE_string("test", str(DATA / "multiple_choice_sample_test.jsonl"), "The same to test on.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or path of the preset to fine-tune.")
flags.DEFINE_integer("sequence_length", 56, "Tokens of a text with a choice.", lower_bound=8)
flags.DEFINE_integer("epochs", 8, "Passes over the training questions.", lower_bound=1)
flags.DEFINE_float("learning_rate", 5e-4, "Highest learning rate; 3e-5 for models of width 768.")
flags.DEFINE_string("output_dir", "runs/multiple_choice", "Where everything is written.")


def main(arguments):
    try:
        train, test = read(FLAGS.data), read(FLAGS.test)
        print(f"{len(train['label'])} questions to train on, {len(test['label'])} to test")
        with replace_files(FLAGS.output_dir) as folder:  # Nothing is left there if the run fails.
            run(train, test, folder)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


def read(path):
    return read_mctest(path) if path.endswith(".tsv") else read_race(path)


def run(train, test, folder):
    """Trains, tests and saves a model."""
    keras.utils.set_random_seed(1)
    length = FLAGS.sequence_length
    model = XLNetMultipleChoice.from_preset(
        FLAGS.preset, sequence_length=length, max_choice_length=length // 3, dtype=fastest_dtype(),
        backbone_dropout=0.1, attention_dropout=0.1,
        # Compares text and choice token by token: small models learn that with few examples.
        pooling="pair",
    )  # fmt: skip
    model.compile(FineTuningAdamW(FLAGS.learning_rate))
    model.fit(texts_of(train), train["label"], batch_size=8, epochs=FLAGS.epochs)
    model.save(folder / "model.keras")

    predictions = model.choose(texts_of(test), verbose=0)
    chosen = [found.index for found in predictions]
    chance = float(np.mean([1 / len(choices) for choices in test["choices"]]))
    scores = {"accuracy": float(np.mean(np.equal(chosen, test["label"]))), "chance": chance}
    print(f"\n{scores}\nSome test questions (* the right choice):")
    for row in range(0, len(chosen), len(chosen) // 5 + 1):
        print(f"\n  {test['question'][row]}")
        for i, choice in enumerate(test["choices"][row]):
            mark = "*" if i == test["label"][row] else " "
            print(f"  {mark} {predictions[row].scores[i]:5.2f}  {choice}")
    (folder / "metrics.json").write_text(json.dumps(scores), encoding="utf-8")
    texts = {key: found.text for key, found in zip(test["id"], predictions, strict=True)}
    (folder / "predictions.json").write_text(json.dumps(texts), encoding="utf-8")


def texts_of(questions):
    return {key: questions[key] for key in ("text", "question", "choices")}


if __name__ == "__main__":
    app.run(main)

"""Answers to questions about a text, or that the text does not say.

    python examples/squad.py
    python examples/squad.py --data train-v2.0.json --test dev-v2.0.json \\
        --sequence_length 384 --epochs 2 --learning_rate 3e-5 --preset path/to/xlnet_base

fine-tunes a preset on questions in the format of SQuAD 1.1 or 2.0, prints exact match, F1 and some
answers, and writes the model, `metrics.json` and `predictions.json` (the answer by the id of its
question, `""` for none) to runs/squad. It takes about two minutes and needs no network.

The default questions, a quarter of them without an answer, are about invented towns, museums and
animals, and made from sentence patterns; the test has the same patterns with other names. The
scores show that everything works, and no more.
"""

import dataclasses
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from absl import app, flags

from keras_xlnet.evaluation import answer_scores
from keras_xlnet.models import XLNetQuestionAnswering
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_squad
from keras_xlnet.training import FineTuningAdamW, fastest_dtype

DATA = pathlib.Path(__file__).parent / "data"
FLAGS = flags.FLAGS
flags.DEFINE_string("data", str(DATA / "squad_sample.json"), "Questions to train on.")
flags.DEFINE_string("test", str(DATA / "squad_sample_test.json"), "Questions to test on.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or path of the preset to fine-tune.")
flags.DEFINE_integer("sequence_length", 72, "Tokens of a window: context and question.")
flags.DEFINE_integer("epochs", 30, "Passes over the training questions.", lower_bound=1)
flags.DEFINE_float("learning_rate", 5e-4, "Highest learning rate; 3e-5 for models of width 768.")
flags.DEFINE_string("output_dir", "runs/squad", "Where everything is written.")


def main(arguments):
    try:
        train, test = read_squad(FLAGS.data), read_squad(FLAGS.test)
        print(f"{len(train['id'])} questions to train on, {len(test['id'])} to test")
        with replace_files(FLAGS.output_dir) as folder:  # Nothing is left there if the run fails.
            run(train, test, folder)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


def run(train, test, folder):
    """Trains, tests and saves a model."""
    keras.utils.set_random_seed(1)
    length = FLAGS.sequence_length
    model = XLNetQuestionAnswering.from_preset(
        FLAGS.preset, sequence_length=length, doc_stride=length // 3, dtype=fastest_dtype(),
        max_question_length=length // 3, backbone_dropout=0.1, attention_dropout=0.1,
    )  # fmt: skip
    model.compile(FineTuningAdamW(FLAGS.learning_rate))
    model.fit(texts_of(train), train["answers"], batch_size=8, epochs=FLAGS.epochs)
    model.save(folder / "model.keras")

    predictions = model.answer(texts_of(test), verbose=0)
    scores = answer_scores(predictions, test["answers"])
    print(
        f"\n{scores.num_questions} test questions: exact {scores.exact:.1f}, F1 {scores.f1:.1f}\n"
    )
    for row in range(0, len(predictions), len(predictions) // 6 + 1):
        found, right = predictions[row], test["answers"][row]
        print(f"{test['question'][row]}  null score {found.null_score:.2f}")
        print(f"    {found.text or '(none)'!r}, right: {right[0]['text'] if right else '(none)'!r}")
    (folder / "metrics.json").write_text(json.dumps(dataclasses.asdict(scores)), encoding="utf-8")
    answers = {key: found.text for key, found in zip(test["id"], predictions, strict=True)}
    (folder / "predictions.json").write_text(json.dumps(answers), encoding="utf-8")


def texts_of(questions):
    return {key: questions[key] for key in ("question", "context")}


if __name__ == "__main__":
    app.run(main)

"""Questions of SQuAD by a fine-tuned preset, in several runs, with baselines.

    python research/tasks/squad.py --data train-v2.0.json --test dev-v2.0.json
    python research/tasks/squad.py --data dev-v1.1.json --num_examples 400 --runs 3

Without --test it holds out the questions on the last quarter of the contexts. It writes the model,
`metrics.json`, `predictions.json` and a plot of the scores by the threshold of the null score, and
compares the model with the sentence that shares the most words with the question, and with no
answer at all. The flags that all programs of this folder have are those of fine_tuning.py.
"""

import collections
import dataclasses
import math
import re

import fine_tuning
import keras
import matplotlib
import numpy as np
from absl import app, flags

from keras_xlnet.evaluation import answer_scores, normalize_answer
from keras_xlnet.models import XLNetQuestionAnswering
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_squad

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

NUM_SHOWN = 6
# Of the plot: each takes a second on the questions of SQuAD.
NUM_THRESHOLDS = 40

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Training questions, JSON of SQuAD.", required=True)
flags.DEFINE_string("test", None, "Test questions. [those on the last paragraphs of --data]")
fine_tuning.define_flags("runs/squad", batch_size=8, rows="Windows")
flags.DEFINE_integer("sequence_length", 384, "Tokens of a window: context and question.")
flags.DEFINE_integer(
    "doc_stride", None, "Tokens from one window of a context to the next. [a third of the length]"
)


def run(arguments):
    """Trains and tests a model, and writes everything."""
    fine_tuning.no_arguments(arguments)
    train, test = read_questions()
    for name, part in (("training", train), ("test", test)):
        num_without = sum(not answers for answers in part["answers"])
        print(f"{len(part['id'])} {name} questions, {num_without} of them without an answer")
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(FLAGS.output_dir) as folder:
        # Training teaches nothing about questions without an answer if there are none, as in
        # SQuAD 1.1. Otherwise the null score is above 0 where none is more probable than one.
        threshold = None if all(train["answers"]) else 0.0
        model, predictions, all_runs = fine_tuning.repeat(
            lambda seed: train_and_test(seed, train, test, threshold)
        )
        show(test, predictions, threshold)
        report(folder, test, predictions, threshold, all_runs)
        model.save(folder / "model.keras")
        check_loaded(folder / "model.keras", test, predictions)
    fine_tuning.print_written()


# === Questions ===


def read_questions():
    """Returns the training and the test questions, dicts as `read_squad` returns them."""
    questions = read_squad(FLAGS.data)
    if FLAGS.test:
        train, test = questions, read_squad(FLAGS.test)
    else:
        train, test = fine_tuning.split_by(questions, "context")
    return fine_tuning.draw(train, test)


def texts(questions):
    """The inputs of the model."""
    return {key: questions[key] for key in ("question", "context")}


# === The model ===


def train_and_test(seed, train, test, threshold):
    """Returns a trained model, its answers to the test questions, and their scores."""
    length = FLAGS.sequence_length
    model = fine_tuning.load_model(
        XLNetQuestionAnswering,
        seed,
        sequence_length=length,
        doc_stride=FLAGS.doc_stride or max(1, length // 3),
        max_question_length=min(64, length // 3),
    )
    # The windows are made once, for their number. `fit` takes texts(train) just as well.
    windows = model.preprocessor.encode(texts(train))
    model = fine_tuning.fit(
        model,
        windows,
        train["answers"],
        len(windows),
        epochs=2,
        learning_rate=1e-3,
    )
    predictions = model.answer(texts(test), batch_size=FLAGS.batch_size, verbose=0)
    scores = answer_scores(predictions, test["answers"], threshold)
    return model, predictions, {"exact": scores.exact, "f1": scores.f1}


def check_loaded(path, test, predictions):
    """Raises `RuntimeError` unless the saved model gives the same answers."""
    loaded = keras.saving.load_model(path)
    again = loaded.answer(texts(test), batch_size=FLAGS.batch_size, verbose=0)
    # The graphs of the two may add numbers in another order.
    scores, same = ([p.null_score for p in found] for found in (predictions, again))
    is_same = [p.text for p in predictions] == [p.text for p in again]
    if not is_same or not np.allclose(scores, same, rtol=1e-3, atol=1e-3):
        raise RuntimeError(f"{path.name}, loaded again, gives other answers")
    print(f"\nLoaded again, {path.name} gives the same answers to {len(again)} questions.")


# === Results ===


def show(test, predictions, threshold):
    """Prints some questions with their answers."""
    print("\nSome test questions (null score above 0: probably no answer):")
    step = math.ceil(len(predictions) / NUM_SHOWN)
    for row in range(0, len(predictions), step):
        found = predictions[row]
        gold = test["answers"][row][0]["text"] if test["answers"][row] else "(none)"
        print(f"\n  {test['question'][row]}")
        print(f"    answer: {final_text(found, threshold) or '(none)'}    right: {gold}")
        candidates = ", ".join(f"{a.text!r} {a.probability:.2f}" for a in found.answers[:3])
        print(f"    null score: {found.null_score:.2f}    candidates: {candidates or '(none)'}")


def final_text(prediction, threshold):
    """The answer, `""` where there is probably none."""
    return prediction.text_at(threshold)


def report(folder, test, predictions, threshold, all_runs):
    """Prints the scores, and writes `metrics.json`, `predictions.json` and `thresholds.png`."""
    scores = answer_scores(predictions, test["answers"], threshold)
    pairs = zip(test["question"], test["context"], strict=True)
    baselines = {
        "closest_sentence": [closest_sentence(*pair) for pair in pairs],
        "no_answer": [""] * len(predictions),
    }
    baselines = {
        name: {"exact": found.exact, "f1": found.f1}
        for name, found in ((n, answer_scores(b, test["answers"])) for n, b in baselines.items())
    }
    print(f"\nOn {scores.num_questions} test questions, in percent:\n")
    print(f"{'':<20}{'exact':>8}{'F1':>8}")
    for name, row in {"model": dataclasses.asdict(scores), **baselines}.items():
        print(f"{name:<20}{row['exact']:8.1f}{row['f1']:8.1f}")
    print(
        f"\nBest thresholds of the null score: {scores.best_exact_threshold:.2f} for exact match "
        f"({scores.best_exact:.1f}), {scores.best_f1_threshold:.2f} for F1 ({scores.best_f1:.1f})."
        "\nThey are chosen on the test questions, which flatters them: the table's is "
        f"{'none' if threshold is None else threshold}."
    )
    metrics = {
        "model": dataclasses.asdict(scores),
        "threshold": threshold,
        "baselines": baselines,
        "all_runs": all_runs,
    }
    fine_tuning.write_json(folder / "metrics.json", metrics)
    answers = [final_text(prediction, threshold) for prediction in predictions]
    fine_tuning.write_json(folder / "predictions.json", dict(zip(test["id"], answers, strict=True)))
    draw_thresholds(folder / "thresholds.png", test, predictions, baselines)


def closest_sentence(question, context):
    """The sentence of a context that shares the most words with a question, a baseline."""
    words = collections.Counter(normalize_answer(question).split())

    def num_shared(sentence):
        return sum((words & collections.Counter(normalize_answer(sentence).split())).values())

    return max(re.split(r"(?<=[.!?])\s+", context), key=num_shared)


def draw_thresholds(path, test, predictions, baselines):
    """Draws exact match and F1 against the threshold of the null score."""
    nulls = [prediction.null_score for prediction in predictions]
    thresholds = np.quantile(nulls, np.linspace(0, 1, NUM_THRESHOLDS))
    thresholds = [thresholds[0] - 0.1, *thresholds]  # With the first one nothing is answered.
    rows = [answer_scores(predictions, test["answers"], float(t)) for t in thresholds]
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(thresholds, [row.exact for row in rows], label="exact match")
    axes.plot(thresholds, [row.f1 for row in rows], label="F1")
    axes.axhline(
        baselines["closest_sentence"]["f1"], color="gray", ls="--", label="F1 of closest sentence"
    )
    axes.axvline(0.0, color="gray", ls=":", label="threshold 0")
    axes.set(
        xlabel="threshold: questions with a null score above it get no answer",
        ylabel="percent",
        ylim=(0, 101),
        title=f"{len(nulls)} test questions",
    )
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    app.run(fine_tuning.main(run))

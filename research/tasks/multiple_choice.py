"""Multiple choice (RACE, MCTest) by a fine-tuned preset, in several runs, with baselines.

    python research/tasks/multiple_choice.py --data train.jsonl --test dev.jsonl
    python research/tasks/multiple_choice.py --data mc160.train.tsv,mc160.dev.tsv --num_examples 200

Without --test it holds out the questions on the last quarter of the texts. It reads the formats of
RACE (.jsonl, .txt, or a folder of .txt) and of MCTest (.tsv, with its .ans beside it), writes the
model, `metrics.json` and `predictions.json`, and compares it with chance, and with the choice
that shares the most words with the text.
"""

import math
import pathlib

import fine_tuning
import keras
import numpy as np
from absl import app, flags

from keras_xlnet.evaluation import normalize_answer
from keras_xlnet.models import XLNetMultipleChoice
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_mctest, read_race

NUM_SHOWN = 5
COLUMNS = ("id", "text", "question", "choices", "label")

FLAGS = flags.FLAGS
flags.DEFINE_list("data", None, "Training files, separated by commas.", required=True)
flags.DEFINE_list("test", None, "Test files. [the questions on the last texts of --data]")
fine_tuning.define_flags("runs/multiple_choice", batch_size=8, rows="Questions")
flags.DEFINE_integer("sequence_length", 256, "Tokens of a text with a choice.")


def run(arguments):
    """Trains and tests a model, and writes everything."""
    fine_tuning.no_arguments(arguments)
    train, test = read_questions()
    print(f"{len(train['label'])} training questions, {len(test['label'])} test questions")
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(FLAGS.output_dir) as folder:
        model, chosen, all_runs = fine_tuning.repeat(lambda seed: train_and_test(seed, train, test))
        show(test, chosen)
        report(folder, test, chosen, all_runs)
        model.save(folder / "model.keras")
        check_loaded(folder / "model.keras", test, chosen)
    fine_tuning.print_written()


# === Questions ===


def read_questions():
    """Returns the training and the test questions, dicts of `COLUMNS`."""
    questions = read_files(FLAGS.data)
    if FLAGS.test:
        train, test = questions, read_files(FLAGS.test)
    else:
        train, test = fine_tuning.split_by(questions, "text")
    return fine_tuning.draw(train, test)


def read_files(paths):
    """The questions of files, whose endings tell their formats."""
    questions = {key: [] for key in COLUMNS}
    for path in paths:
        is_mctest = pathlib.Path(path).suffix.lower() == ".tsv"
        rows = read_mctest(path) if is_mctest else read_race(path)
        for key, column in questions.items():
            column += rows[key]
    return questions


def inputs(questions):
    """The inputs of the model. It puts a choice into the `_` of its question, or after it."""
    return {key: questions[key] for key in ("text", "question", "choices")}


# === The model ===


def train_and_test(seed, train, test):
    """Returns a trained model, its choices for the test questions, and their accuracy."""
    length = FLAGS.sequence_length
    model = fine_tuning.load_model(
        XLNetMultipleChoice,
        seed,
        # The released models summarize a text in <cls>, the last token. With less pretraining, what
        # counts is which words of a choice the text has.
        narrow={"pooling": "pair"},
        sequence_length=length,
        max_choice_length=min(128, length // 3),
    )
    model = fine_tuning.fit(
        model,
        inputs(train),
        train["label"],
        len(train["label"]),
        epochs=2,
        learning_rate=5e-4,
    )
    chosen = model.choose(inputs(test), batch_size=FLAGS.batch_size, verbose=0)
    return model, chosen, {"accuracy": accuracy(test, chosen)}


def check_loaded(path, test, chosen):
    """Raises `RuntimeError` unless the saved model gives the choices the same scores."""
    loaded = keras.saving.load_model(path)
    again = loaded.choose(inputs(test), batch_size=FLAGS.batch_size, verbose=0)
    # Not the choices: of two that are equally good, the last bit decides.
    for before, after in zip(chosen, again, strict=True):
        if not np.allclose(before.scores, after.scores, atol=1e-3):
            raise RuntimeError(f"{path.name}, loaded again, gives other scores")
    print(f"\nLoaded again, {path.name} gives the same scores for {len(again)} questions.")


# === Results ===


def show(test, chosen):
    """Prints some questions with the probabilities of their choices."""
    print("\nSome test questions (* the right choice):")
    for row in range(0, len(chosen), math.ceil(len(chosen) / NUM_SHOWN)):
        print(f"\n  {test['question'][row]}")
        scored = zip(test["choices"][row], chosen[row].scores, strict=True)
        for index, (choice, score) in enumerate(scored):
            print(f"  {'*' if index == test['label'][row] else ' '} {score:5.2f}  {choice}")


def report(folder, test, chosen, all_runs):
    """Prints the accuracies, and writes `metrics.json` and `predictions.json`."""
    labels = np.array(test["label"])
    pairs = zip(test["text"], test["choices"], strict=True)
    overlap = [most_shared_words(text, choices) for text, choices in pairs]
    metrics = {
        "accuracy": accuracy(test, chosen),
        "baselines": {
            "chance": float(np.mean([1 / len(choices) for choices in test["choices"]])),
            "word_overlap": float(np.mean(overlap == labels)),
        },
        "num_questions": len(labels),
        "all_runs": all_runs,
    }
    print(f"\nAccuracy on {len(labels)} test questions, in percent:\n")
    for name, value in {"model": metrics["accuracy"], **metrics["baselines"]}.items():
        print(f"{name:<14}{100 * value:6.1f}")
    fine_tuning.write_json(folder / "metrics.json", metrics)
    rows = zip(test["id"], test["question"], chosen, test["label"], strict=True)
    predictions = [
        {
            "id": key,
            "question": question,
            "choice": found.text,
            "index": found.index,
            "label": label,
        }
        for key, question, found, label in rows
    ]
    fine_tuning.write_json(folder / "predictions.json", predictions)


def accuracy(test, chosen):
    return float(np.mean(np.array([found.index for found in chosen]) == test["label"]))


def most_shared_words(text, choices):
    """The index of the choice that shares the most words with its text, a baseline."""
    words = set(normalize_answer(text).split())
    return int(np.argmax([len(words & set(normalize_answer(c).split())) for c in choices]))


if __name__ == "__main__":
    app.run(fine_tuning.main(run))

"""Fine-tunes a pretrained XLNet to choose the right one of several answers to a question on a text.

    python examples/multiple_choice.py           # about 2 minutes on 2 cores, no network

fits the preset xlnet_small_en on texts, questions and choices as strings, chooses for the questions
of the test part, and writes the model, `metrics.json` and `predictions.json` (a list of the
questions with their choices) to runs/multiple_choice. It compares the model with chance, and with
the choice that shares the most words with the text.

Without --data it reads examples/data/multiple_choice_sample.jsonl: 238 questions, of three or four
choices each, on 80 stories. They were made from sentence patterns, and the last quarter of the
stories, the test part, has the same patterns with other facts. Most of the wrong choices are told
by the story but do not fit the question; some fit it but are not told. Figures on the sample show
that everything works; they say nothing about English.

It reads the formats of RACE (.jsonl, .txt, or a folder of .txt) and of MCTest (.tsv, with its .ans
beside it):

    python examples/multiple_choice.py --data train.jsonl --test dev.jsonl
    python examples/multiple_choice.py --data mc160.train.tsv,mc160.dev.tsv --num_examples 200
    python examples/multiple_choice.py --from_scratch      # what the pretraining is good for
    python examples/multiple_choice.py --lora_rank 8
    python examples/multiple_choice.py --preset xlnet_cased_L-12_H-768_A-12 --gradient_checkpointing
"""

import quiet_start  # noqa: F401

# isort: split
import json
import math
import os
import pathlib
import sys

import fast_dtype
import keras
import numpy as np
from absl import app, flags
from fine_tuning import make_optimizer, untrained

from keras_xlnet.evaluation import normalize_answer
from keras_xlnet.models import XLNetMultipleChoice
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_mctest, read_race

SAMPLE = pathlib.Path(__file__).parent / "data" / "multiple_choice_sample.jsonl"
# Models from this width on, such as the released ones, are fine-tuned as in the paper.
WIDE = 512
TEST_SHARE = 0.25
# From this number of steps on a run is long.
LONG = 1000
NUM_SHOWN = 5
COLUMNS = ("id", "text", "question", "choices", "label")

FLAGS = flags.FLAGS
flags.DEFINE_list("data", None, "Training files, separated by commas. [the sample]")
flags.DEFINE_list("test", None, "Test files. [the questions on the last texts of --data]")
flags.DEFINE_string("output_dir", "runs/multiple_choice", "Where everything is written.")
flags.DEFINE_string("preset", "xlnet_small_en", "Fine-tune this: a preset's name, path or URL.")
flags.DEFINE_bool("from_scratch", False, "Train the preset's architecture from random weights.")
flags.DEFINE_integer(
    "num_examples", None, "Draw this many training and test questions. [all]", lower_bound=1
)
flags.DEFINE_integer("epochs", None, "Epochs. [2; on the sample 8]", lower_bound=1)
flags.DEFINE_integer("batch_size", 8, "Questions in a training step.", lower_bound=1)
flags.DEFINE_float("learning_rate", None, "Peak learning rate. [1e-3; wide models 3e-5]")
flags.DEFINE_integer(
    "sequence_length", None, "Tokens of a text with a choice. [256; on the sample 56]"
)
flags.DEFINE_integer("lora_rank", None, "Train LoRA matrices of this rank, not the backbone.")
flags.DEFINE_bool("freeze_backbone", False, "Train the head alone.")
flags.DEFINE_bool("gradient_checkpointing", False, "Take less memory and more time to train.")
flags.DEFINE_enum("dtype", "auto", fast_dtype.DTYPES, "Policy of the training. [the faster one]")
flags.DEFINE_integer("seed", 1, "Seed of the questions drawn, the weights and the dropout.")


def main(arguments):
    try:
        if arguments[1:]:
            raise ValueError(f"arguments that are no flags: {' '.join(arguments[1:])}")
        run()
    except (OSError, RuntimeError, ValueError) as error:
        # Messages of several lines would hide the next prompt.
        sys.exit(f"error: {' '.join(str(error).split())}")


def run():
    """Trains and tests a model, and writes everything."""
    train, test = read_questions()
    print(f"{len(train['label'])} training questions, {len(test['label'])} test questions")
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(FLAGS.output_dir) as folder:
        model = fit(train)
        chosen = model.choose(inputs(test), batch_size=FLAGS.batch_size, verbose=0)
        show(test, chosen)
        report(folder, test, chosen)
        model.save(folder / "model.keras")
        check_loaded(folder / "model.keras", test, chosen)
    written = sorted(name for name in os.listdir(FLAGS.output_dir) if name[0] != ".")
    print(f"\nWritten to {FLAGS.output_dir}: {', '.join(written)}")


# === Questions ===


def read_questions():
    """Returns the training and the test questions, dicts of `COLUMNS`."""
    questions = read_files(FLAGS.data or [SAMPLE])
    if FLAGS.test:
        train, test = questions, read_files(FLAGS.test)
    else:
        train, test = split_by_text(questions)
    rng = np.random.default_rng(FLAGS.seed)
    return draw(train, rng), draw(test, rng)


def read_files(paths):
    """The questions of files, whose endings tell their formats."""
    questions = {key: [] for key in COLUMNS}
    for path in paths:
        is_mctest = pathlib.Path(path).suffix.lower() == ".tsv"
        rows = read_mctest(path) if is_mctest else read_race(path)
        for key, column in questions.items():
            column += rows[key]
    return questions


def split_by_text(questions):
    """The questions on the first texts and those on the last ones: no text is in both."""
    different = list(dict.fromkeys(questions["text"]))
    if len(different) < 2:
        raise ValueError("--data has a single text: pass other questions with --test")
    last = set(different[-max(1, round(TEST_SHARE * len(different))) :])
    is_test = np.array([text in last for text in questions["text"]])
    return [rows_of(questions, np.flatnonzero(mask)) for mask in (~is_test, is_test)]


def draw(questions, rng):
    """--num_examples questions at random, in their order: the first ones are all on few texts."""
    total = len(questions["label"])
    if FLAGS.num_examples is None or FLAGS.num_examples >= total:
        return questions
    return rows_of(questions, np.sort(rng.choice(total, FLAGS.num_examples, replace=False)))


def rows_of(questions, rows):
    return {key: [column[row] for row in rows] for key, column in questions.items()}


def inputs(questions):
    """The inputs of the model. It puts a choice into the `_` of its question, or after it."""
    return {key: questions[key] for key in ("text", "question", "choices")}


# === The model ===


def fit(train):
    """Returns a model that was fitted on the training questions."""
    keras.utils.set_random_seed(FLAGS.seed)
    model = make_model()
    if FLAGS.lora_rank:
        model.enable_lora(FLAGS.lora_rank)
    if FLAGS.freeze_backbone:
        model.backbone.trainable = False
    epochs = FLAGS.epochs or (2 if FLAGS.data else 8)
    learning_rate = FLAGS.learning_rate or (3e-5 if model.backbone.hidden_dim >= WIDE else 1e-3)
    steps = epochs * math.ceil(len(train["label"]) / FLAGS.batch_size)
    # The loss and the metrics of the model stay. What is trainable counts from here on.
    # Compiling with XLA pays in long runs alone.
    jit_compile = "auto" if steps >= LONG else False
    model.compile(make_optimizer(learning_rate, steps), jit_compile=jit_compile)
    model.fit(
        inputs(train),
        train["label"],
        batch_size=FLAGS.batch_size,
        epochs=epochs,
        verbose="auto" if sys.stdout.isatty() else 2,
    )
    return model


def make_model():
    length = FLAGS.sequence_length or (256 if FLAGS.data else 56)
    model = XLNetMultipleChoice.from_preset(
        FLAGS.preset,
        sequence_length=length,
        max_choice_length=min(128, length // 3),
        gradient_checkpointing=FLAGS.gradient_checkpointing,
        dtype=fast_dtype.choose(FLAGS.dtype),
    )
    backbone = model.backbone
    if FLAGS.from_scratch:
        backbone = untrained(backbone)
    # The released models summarize a text in <cls>, the last token. With less pretraining, the
    # mean learns faster.
    pooling = "last" if backbone.hidden_dim >= WIDE else "mean"
    return XLNetMultipleChoice(backbone, pooling=pooling, preprocessor=model.preprocessor)


def check_loaded(path, test, chosen):
    """Raises `RuntimeError` unless the saved model chooses the same."""
    loaded = keras.saving.load_model(path, compile=False)
    again = loaded.choose(inputs(test), batch_size=FLAGS.batch_size, verbose=0)
    # The graphs of the two may add numbers in another order.
    scores, same = ([found.score for found in choices] for choices in (chosen, again))
    is_same = [found.index for found in chosen] == [found.index for found in again]
    if not is_same or not np.allclose(scores, same, atol=1e-3):
        raise RuntimeError(f"{path.name}, loaded again, makes other choices")
    print(f"\nLoaded again, {path.name} makes the same choices for {len(again)} questions.")


# === Results ===


def show(test, chosen):
    """Prints some questions with the probabilities of their choices."""
    print("\nSome test questions (* the right choice):")
    for row in range(0, len(chosen), math.ceil(len(chosen) / NUM_SHOWN)):
        print(f"\n  {test['question'][row]}")
        scored = zip(test["choices"][row], chosen[row].scores, strict=True)
        for index, (choice, score) in enumerate(scored):
            print(f"  {'*' if index == test['label'][row] else ' '} {score:5.2f}  {choice}")


def report(folder, test, chosen):
    """Prints the accuracies, and writes `metrics.json` and `predictions.json`."""
    labels = np.array(test["label"])
    pairs = zip(test["text"], test["choices"], strict=True)
    overlap = [most_shared_words(text, choices) for text, choices in pairs]
    metrics = {
        "accuracy": float(np.mean([found.index for found in chosen] == labels)),
        "baselines": {
            "chance": float(np.mean([1 / len(choices) for choices in test["choices"]])),
            "word_overlap": float(np.mean(overlap == labels)),
        },
        "num_questions": len(labels),
    }
    print(f"\nAccuracy on {len(labels)} test questions, in percent:\n")
    for name, value in {"model": metrics["accuracy"], **metrics["baselines"]}.items():
        print(f"{name:<14}{100 * value:6.1f}")
    write_json(folder / "metrics.json", metrics)
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
    write_json(folder / "predictions.json", predictions)


def most_shared_words(text, choices):
    """The index of the choice that shares the most words with its text, a baseline."""
    words = set(normalize_answer(text).split())
    return int(np.argmax([len(words & set(normalize_answer(c).split())) for c in choices]))


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    app.run(main)

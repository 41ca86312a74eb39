"""Fine-tunes a pretrained XLNet to find names in text: persons, places, products, groups.

    python examples/ner.py

reads 600 training and 200 test sentences of WNUT-17, fine-tunes the preset xlnet_small_en on words
and tags, and compares it with a dictionary of the entities of the training sentences. It prints
precision, recall and F1 by type and the entities of a few strings, and writes the model,
`metrics.json` and `predictions.conll` to runs/ner. Preset and sentences are in this repository: it
needs no network, and takes one to two minutes on 2 cores. More ways to run it:

    python examples/ner.py "Ann Lee moved from Nairobi to New York to work for Netflix"
    python examples/ner.py --data wnut17train.conll --test emerging.test.annotated
    python examples/ner.py --from_scratch                  # what the pretraining is good for
    python examples/ner.py --lora_rank 8
    python examples/ner.py --freeze_backbone
    python examples/ner.py --preset xlnet_cased_L-12_H-768_A-12 --gradient_checkpointing

The sentences are tweets, comments and forum posts, and the names of the test were chosen to be new:
the best system of the shared task reached an F1 of 0.42, and in the bundled sample the dictionary
finds none of them. The sample is a sixth of the data, with a larger share of entities than the
whole: its scores show that the example works, and are no results of WNUT-17.

Source of the sample: WNUT-17, Derczynski, Nichols, van Erp and Limsopatham 2017, "Results of the
WNUT2017 Shared Task on Novel and Emerging Entity Recognition",
https://github.com/leondz/emerging_entities_17, licence CC BY 4.0
(https://creativecommons.org/licenses/by/4.0/). Changed: of wnut17train.conll the first 450
sentences with entities and the first 150 without, of emerging.test.annotated the first 130 and 70.
"""

import quiet_start  # noqa: F401

# isort: split
import collections
import dataclasses
import json
import math
import os
import pathlib
import sys

import fast_dtype
import keras
from absl import app, flags, logging
from fine_tuning import make_optimizer, to_float32, untrained

from keras_xlnet.evaluation import entity_scores, entity_spans
from keras_xlnet.models import XLNetTokenClassifier
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_conll, write_conll

DATA = pathlib.Path(__file__).parent / "data"
SENTENCES = (
    "Justin Bieber is in London tonight, who else is going?",
    "just got the new iPhone from the Apple store in New York",
    "my sister watched Game of Thrones all weekend",
)
# Models from this width on, such as the released ones, are fine-tuned as in the paper.
WIDE = 512

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "CoNLL file to train on. [the sample of WNUT-17]")
flags.DEFINE_string("test", None, "CoNLL file to test on. Needed with --data.")
flags.DEFINE_string("output_dir", "runs/ner", "Where everything is written.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or folder of the preset to fine-tune.")
flags.DEFINE_bool("from_scratch", False, "Train the preset's architecture from random weights.")
flags.DEFINE_integer("lora_rank", None, "Train LoRA matrices of this rank and the head alone.")
flags.DEFINE_bool("freeze_backbone", False, "Train the head alone.")
flags.DEFINE_bool("gradient_checkpointing", False, "Use less memory, and more time.")
flags.DEFINE_integer("num_examples", None, "Limit of sentences of each file. [all]", lower_bound=1)
flags.DEFINE_integer("sequence_length", 64, "Tokens that a sentence is cut to.", lower_bound=3)
flags.DEFINE_integer("batch_size", 16, "Sentences in a training step.", lower_bound=1)
flags.DEFINE_integer("epochs", 6, "Number of epochs.", lower_bound=1)
flags.DEFINE_float(
    "learning_rate", None, "Peak. [5e-4; wide models 3e-5; 3e-3 if the backbone is frozen]"
)
flags.DEFINE_enum("dtype", "auto", fast_dtype.DTYPES, "Policy of the training. [the faster one]")
flags.DEFINE_integer("seed", 1, "Seed of the weights, the order and the dropout.")


def main(arguments):
    logging.set_verbosity(logging.WARNING)  # Libraries log details of their start.
    try:
        run(arguments[1:] or SENTENCES)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"error: {error}")


def run(strings):
    """Trains and tests a model, writes everything, and finds the entities of strings."""
    check_flags()
    train = read(FLAGS.data or DATA / "wnut17_sample.conll")
    test = read(FLAGS.test or DATA / "wnut17_sample_test.conll")
    print(f"{len(train['words'])} sentences to train on, {len(test['words'])} to test")
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(FLAGS.output_dir) as folder:
        model = fit(train["words"], train["tags"])
        tags = model.tag(test["words"], verbose=0)
        write_report(folder, train, test, tags)
        write_conll(folder / "predictions.conll", test["words"], tags)
        model = save_and_load(model, folder / "model.keras", test["words"], tags)
    print_entities(model, strings)
    print(f"\nWritten to {FLAGS.output_dir}: {', '.join(sorted(os.listdir(FLAGS.output_dir)))}")


def check_flags():
    if (FLAGS.data is None) != (FLAGS.test is None):
        raise ValueError("--data and --test need each other")
    if FLAGS.lora_rank is not None and FLAGS.lora_rank < 1:
        raise ValueError(f"--lora_rank must be at least 1. Received: {FLAGS.lora_rank}")
    if sum([FLAGS.from_scratch, FLAGS.freeze_backbone, FLAGS.lora_rank is not None]) > 1:
        raise ValueError("use one of --from_scratch, --freeze_backbone and --lora_rank")


def read(path):
    """Returns the words and tags of a file, of the first --num_examples sentences."""
    return {name: rows[: FLAGS.num_examples] for name, rows in read_conll(path).items()}


# === The model ===


def fit(words, tags):
    """Returns a trained model that gives tags to words."""
    keras.utils.set_random_seed(FLAGS.seed)
    class_names = sorted({"O"}.union(*tags))
    if len(class_names) == 1:
        raise ValueError("the sentences to train on have no entities")
    model = make_model(class_names)
    steps = FLAGS.epochs * math.ceil(len(words) / FLAGS.batch_size)
    # After LoRA and freezing, which change what is trained.
    model.compile(make_optimizer(learning_rate(model), steps))
    verbose = "auto" if sys.stdout.isatty() else 2  # A file gets a line an epoch.
    model.fit(words, tags, batch_size=FLAGS.batch_size, epochs=FLAGS.epochs, verbose=verbose)
    return to_float32(model)


def make_model(class_names):
    arguments = {"num_classes": len(class_names), "class_names": class_names}
    model = XLNetTokenClassifier.from_preset(
        FLAGS.preset,
        **arguments,
        sequence_length=FLAGS.sequence_length,
        # Presets that come from pretraining have none.
        backbone_dropout=0.1,
        attention_dropout=0.1,
        gradient_checkpointing=FLAGS.gradient_checkpointing,
        dtype=fast_dtype.choose(FLAGS.dtype),
        seed=FLAGS.seed,
    )
    if FLAGS.from_scratch:
        backbone = untrained(model.backbone)
        model = XLNetTokenClassifier(backbone, preprocessor=model.preprocessor, **arguments)
    if FLAGS.freeze_backbone:
        model.backbone.trainable = False
    if FLAGS.lora_rank:
        model.enable_lora(FLAGS.lora_rank)
    return model


def learning_rate(model):
    if FLAGS.learning_rate is not None:
        return FLAGS.learning_rate
    if FLAGS.freeze_backbone or FLAGS.lora_rank:
        return 3e-3
    return 3e-5 if model.backbone.hidden_dim >= WIDE else 5e-4


def save_and_load(model, path, words, tags):
    """Saves a model and returns the loaded one, if it gives the same tags."""
    model.save(path)
    model = keras.saving.load_model(path, compile=False)
    if model.tag(words, verbose=0) != tags:
        raise RuntimeError(f"{path.name}: the model gives other tags after loading")
    print(f"\n{path.name}, loaded again, gives the same tags")
    return model


# === What it is compared with ===


def dictionary_tags(train, sentences, scheme):
    """Tags the word sequences that are entities in `train`, the longest ones first."""
    types = collections.defaultdict(collections.Counter)
    for words, tags in zip(train["words"], train["tags"], strict=True):
        for span in entity_spans(tags, scheme):
            types[tuple(words[span.start : span.end])][span.type] += 1
    longest = max(map(len, types))
    rows = []
    for words in sentences:
        tags = []
        while len(tags) < len(words):
            start = len(tags)
            ends = range(min(len(words), start + longest), start, -1)
            end = next((end for end in ends if tuple(words[start:end]) in types), None)
            if end is None:
                tags.append("O")
                continue
            ((type_, _),) = types[tuple(words[start:end])].most_common(1)
            tags += [f"B-{type_}"] + [f"I-{type_}"] * (end - start - 1)
        rows.append(tags)
    return rows


# === What is printed and written ===


def write_report(folder, train, test, tags):
    """Prints the scores of the model and of the dictionary, and writes metrics.json."""
    scheme = scheme_of([*train["tags"], *test["tags"]])
    name = "xlnet_from_scratch" if FLAGS.from_scratch else "xlnet_fine_tuned"
    predictions = {name: tags, "dictionary": dictionary_tags(train, test["words"], scheme)}
    scores = {key: entity_scores(test["tags"], rows, scheme) for key, rows in predictions.items()}
    for key, row in scores.items():
        print(f"\n{key}\n{row}")
    baseline = dataclasses.asdict(scores.pop("dictionary"))
    report = {
        "sentences": {"train": len(train["words"]), "test": len(test["words"])},
        "model": dataclasses.asdict(scores[name]),
        "baselines": {"dictionary": baseline},
    }
    (folder / "metrics.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def scheme_of(rows):
    """The `scheme` of `entity_scores`: `"io"` for tags that do not mark the begin of entities."""
    return "bio" if {tag[0] for tags in rows for tag in tags} & set("BS") else "io"


def print_entities(model, strings):
    for text, entities in zip(strings, model.predict(list(strings), verbose=0), strict=True):
        print(f"\n{text}")
        for found in entities:
            place = f"{found.start}-{found.end}"
            print(f"  {found.type:14} {found.text:24} {place:>8} {found.score:7.4f}")
        if not entities:
            print("  no entities")


if __name__ == "__main__":
    app.run(main)

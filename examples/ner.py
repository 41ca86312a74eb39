"""Names in text: persons, places, products, groups.

    python examples/ner.py "Ann Lee moved from Nairobi to New York to work for Netflix"
    python examples/ner.py --data wnut17train.conll --test emerging.test.annotated

fine-tunes a preset on 600 sentences of WNUT-17, prints precision, recall and F1 by type on 200
others, and the entities of the strings of the command line, and writes the model, `metrics.json`
and `predictions.conll` to runs/ner. It takes one to two minutes and needs no network.

The sentences are tweets, comments and forum posts, and the names of the test were chosen to be new:
the best system of the shared task reached an F1 of 0.42. The sample is a sixth of the data, with a
larger share of entities than the whole: its scores are no results of WNUT-17.

Source: Derczynski, Nichols, van Erp and Limsopatham 2017, "Results of the WNUT2017 Shared Task on
Novel and Emerging Entity Recognition", https://github.com/leondz/emerging_entities_17, licence
CC BY 4.0 (https://creativecommons.org/licenses/by/4.0/). Changed: examples/data/README.md.
"""

import dataclasses
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from absl import app, flags

from keras_xlnet.evaluation import entity_scores
from keras_xlnet.models import XLNetTokenClassifier
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_conll, write_conll
from keras_xlnet.training import fastest_dtype

DATA = pathlib.Path(__file__).parent / "data"
TEXTS = ["just got the new iPhone from the Apple store in New York", "see you in London, Ann"]
FLAGS = flags.FLAGS
flags.DEFINE_string("data", str(DATA / "wnut17_sample.conll"), "CoNLL file to train on.")
flags.DEFINE_string("test", str(DATA / "wnut17_sample_test.conll"), "CoNLL file to test on.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or path of the preset to fine-tune.")
flags.DEFINE_integer("sequence_length", 64, "Tokens that a sentence is cut to.", lower_bound=3)
flags.DEFINE_integer("epochs", 6, "Passes over the training sentences.", lower_bound=1)
flags.DEFINE_string("output_dir", "runs/ner", "Where everything is written.")


def main(arguments):
    try:
        train, test = read_conll(FLAGS.data), read_conll(FLAGS.test)
        print(f"{len(train['words'])} sentences to train on, {len(test['words'])} to test")
        with replace_files(FLAGS.output_dir) as folder:  # Nothing is left there if the run fails.
            model = run(train, test, folder)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")
    texts = arguments[1:] or TEXTS
    for text, entities in zip(texts, model.find_entities(texts, verbose=0), strict=True):
        print(f"\n{text}")
        for found in entities:
            print(f"  {found.type:14} {found.text:24} {found.start}-{found.end} {found.score:.4f}")


def run(train, test, folder):
    """Trains, tests and saves a model, and returns it."""
    keras.utils.set_random_seed(1)
    names = sorted({"O"}.union(*train["tags"]))
    model = XLNetTokenClassifier.from_preset(
        FLAGS.preset, num_classes=len(names), class_names=names, dtype=fastest_dtype(),
        sequence_length=FLAGS.sequence_length, backbone_dropout=0.1, attention_dropout=0.1,
    )  # fmt: skip
    model.fit(train["words"], train["tags"], batch_size=16, epochs=FLAGS.epochs)
    tags = model.tag(test["words"], verbose=0)
    scores = entity_scores(test["tags"], tags, "bio")
    print(f"\n{scores}")
    (folder / "metrics.json").write_text(json.dumps(dataclasses.asdict(scores)), encoding="utf-8")
    write_conll(folder / "predictions.conll", test["words"], tags)
    model.save(folder / "model.keras")
    return model


if __name__ == "__main__":
    app.run(main)

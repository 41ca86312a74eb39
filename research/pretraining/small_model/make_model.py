"""Makes a small pretrained model out of a folder of text: vocabulary, records, model, preset, card.

    python research/pretraining/small_model/make_model.py --corpus texts --name my_small_model

`texts` holds UTF-8 text in any language: each file is a source whose documents are separated by
blank lines, each folder in it is a source with one document per file (corpus.py). Whole documents
are held out. Vocabularies of several sizes are compared in short runs by held-out bits per
character, the best one is pretrained for `--cpu_minutes` of processor time with
../run_pretraining.py, and the preset is written in float16, with a model card. It can be stopped at
any time and continues when started again. Continue a finished run from its weights with
`--output_dir elsewhere --recipe preset=runs/NAME/NAME`.

xlnet_small_en was made with

    python research/pretraining/small_model/english_sources.py runs/english corpus/*.txt.xz
    python research/pretraining/small_model/make_model.py --corpus runs/english \\
        --name xlnet_small_en \\
        --notes research/pretraining/small_model/xlnet_small_en.md
"""

import os
import pathlib
import statistics
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags
from corpus import prepare_corpus
from model_card import write_card
from pretraining_runs import RECIPE, read_json, run_pretraining, train_vocabulary

from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.preset_files import write_preset_info

FLAGS = flags.FLAGS
flags.DEFINE_string("corpus", None, "Folder of text files.", required=True)
flags.DEFINE_string("name", None, "Name of the preset.", required=True)
flags.DEFINE_string("output_dir", None, "Where everything is written. [runs/NAME]")
flags.DEFINE_list("vocabulary_sizes", ["8000", "12000", "16000"], "Sizes to compare.")
flags.DEFINE_float("vocabulary_cpu_minutes", 8, "Processor time of each comparison.", 0.1)
flags.DEFINE_float("cpu_minutes", 600, "Processor time of the pretraining.", 0.1)
flags.DEFINE_multi_string("recipe", [], "A flag of run_pretraining.py that replaces one of RECIPE.")
flags.DEFINE_string("description", "An XLNet made by make_model.py", "One line about the preset.")
flags.DEFINE_string("notes", None, "Markdown file about data, licences and limits for the card.")


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    output_dir = pathlib.Path(FLAGS.output_dir or f"runs/{FLAGS.name}")
    recipe = RECIPE | dict(flag.split("=", 1) for flag in FLAGS.recipe)
    try:
        train, held_out = prepare_corpus(pathlib.Path(FLAGS.corpus), output_dir / "corpus")
    except ValueError as error:
        sys.exit(f"make_model.py: {error}")
    if "preset" not in recipe:  # A preset has a vocabulary.
        recipe["tokenizer"] = choose_vocabulary(output_dir, train, held_out, recipe)
    run = output_dir / "pretraining"
    run_pretraining(run, train, held_out, FLAGS.cpu_minutes, recipe)
    write_preset(output_dir, run, len(train.read_text(encoding="utf-8").split()))


def choose_vocabulary(output_dir, train, held_out, recipe):
    """Returns the path of the vocabulary with the fewest held-out bits in short runs."""
    bits = {}
    for size in map(int, FLAGS.vocabulary_sizes):
        folder = output_dir / f"vocabulary_{size}"
        path = train_vocabulary(folder, train, size)
        if len(FLAGS.vocabulary_sizes) == 1:
            return path
        minutes = FLAGS.vocabulary_cpu_minutes
        run_pretraining(folder, train, held_out, minutes, recipe | {"tokenizer": path})
        # Each source counts the same.
        bits[path] = statistics.mean(read_json(folder, "metrics")["bits_per_character"].values())
        print(f"{size} pieces: {bits[path]:.3f} bits per character", flush=True)
    return min(bits, key=bits.get)


def write_preset(output_dir, run, num_words):
    """Writes the preset in float16, with its card."""
    model = XLNetPermutationLM.from_preset(
        run / "permutation_lm", dtype="float32", stateful=False, batch_size=None
    )
    preset = output_dir / FLAGS.name
    model.save_to_preset(preset, dtype="float16")
    figures = write_card(preset, FLAGS.name, model, run, num_words, FLAGS.notes)
    write_preset_info(preset, FLAGS.description, figures)
    print(f"the preset is {preset}")


if __name__ == "__main__":
    app.run(main)

"""XLNet pretrained on text files: vocabulary, records, training with memory, preset.

    python examples/pretrain.py                                      # tiny Shakespeare, minutes
    python examples/pretrain.py --corpus "texts/*.txt" --held_out other.txt --num_layers 6 \\
        --hidden_dim 384 --vocabulary_size 16000 --epochs 20
    python examples/pretrain.py --preset xlnet_small_en --corpus "mine/*.txt"

trains a SentencePiece vocabulary, writes token records, and pretrains a small XLNet by permutation
language modelling. runs/pretrain has the preset that task models load with `from_preset`, that of
the language model, and `history.csv`. A run that was killed goes on after its last epoch when it is
started again. docs/pretraining.md tells more; research/pretraining/run_pretraining.py has the
ablations.
"""

import functools
import glob
import lzma
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from absl import app, flags

from keras_xlnet.evaluation import BitsPerCharacter, Perplexity
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.pretraining import PermutationBatches, ResumeBatches, write_token_records
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.training import AdamWeightDecay, ExactBackupAndRestore, WarmupPolynomialDecay

SHAKESPEARE = pathlib.Path(__file__).parent / "data" / "tiny_shakespeare.txt.xz"
ROWS, LENGTH = 16, 64  # Of a batch: its rows, and their tokens.
FLAGS = flags.FLAGS
flags.DEFINE_list("corpus", None, "Text files or patterns, a sentence a line. [tiny Shakespeare]")
flags.DEFINE_list("held_out", None, "Text files to validate on. [a tenth of tiny Shakespeare]")
flags.DEFINE_string("preset", None, "Continue from a preset of a permutation language model.")
flags.DEFINE_integer("vocabulary_size", 2000, "Size of the vocabulary that is trained.")
flags.DEFINE_integer("num_layers", 2, "Number of layers.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 128, "Width, a multiple of 64.", lower_bound=64)
flags.DEFINE_integer("epochs", 4, "Number of epochs; each ends with a backup.", lower_bound=1)
flags.DEFINE_integer("steps_per_epoch", None, "Batches of an epoch. [one pass over the corpus]")
flags.DEFINE_string("output_dir", "runs/pretrain", "Where everything is written.")


def main(arguments):
    keras.utils.set_random_seed(0)
    try:
        run(pathlib.Path(FLAGS.output_dir))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


def run(folder):
    corpus, held_out = find_files(FLAGS.corpus), find_files(FLAGS.held_out)
    if not FLAGS.corpus:
        corpus, held_out = unpack_shakespeare(folder / "corpus")
    if FLAGS.preset:
        tokenizer = XLNetTokenizer.from_preset(FLAGS.preset)
    else:
        tokenizer = XLNetTokenizer.train(corpus, vocabulary_size=FLAGS.vocabulary_size)
    records = write_token_records(corpus, tokenizer, folder / "records")
    rows = functools.partial(
        PermutationBatches, batch_size=ROWS, sequence_length=LENGTH, num_predictions=LENGTH // 6,
        bidirectional_data=True, seed=0,
    )  # fmt: skip
    batches, validation = rows(records), None
    if held_out:
        held_out = write_token_records(held_out, tokenizer, folder / "held_out")
        validation = rows(held_out).evaluation_dataset()
    steps = FLAGS.steps_per_epoch or batches.steps_per_pass
    model = make_model(tokenizer)
    rate = WarmupPolynomialDecay(1e-3, FLAGS.epochs * steps, FLAGS.epochs * steps // 20 + 1)
    model.compile(
        AdamWeightDecay(rate, weight_decay=0.01, global_clipnorm=1.0),
        weighted_metrics={"logits": [Perplexity(), BitsPerCharacter.of(tokenizer)]},
    )
    model.fit(
        batches.dataset(),
        validation_data=validation,
        epochs=FLAGS.epochs,
        steps_per_epoch=steps,
        shuffle=False,  # Memory needs the batches in their order.
        callbacks=[
            keras.callbacks.CSVLogger(str(folder / "history.csv"), append=True),
            ExactBackupAndRestore(folder / "backup"),
            ResumeBatches(batches),
        ],
    )
    model.backbone.save_to_preset(folder / "preset", tokenizer)
    model.save_to_preset(folder / "permutation_lm", tokenizer)


def make_model(tokenizer):
    memory = {"memory_length": LENGTH // 2, "reuse_length": LENGTH // 2, "bidirectional_data": True}
    if FLAGS.preset:
        return XLNetPermutationLM.from_preset(
            FLAGS.preset, stateful=True, batch_size=ROWS, **memory
        )
    backbone = XLNetBackbone(
        tokenizer.vocabulary_size(), FLAGS.num_layers, FLAGS.hidden_dim // 64, FLAGS.hidden_dim,
        4 * FLAGS.hidden_dim, dropout=0.0, attention_dropout=0.0, seed=0, **memory,
        # With XLNet's small initial weights, a small model learns little for a long time.
        kernel_initializer="glorot_normal",
    )  # fmt: skip
    return XLNetPermutationLM(backbone, stateful=True, batch_size=ROWS)


def find_files(patterns):
    files = sorted(file for pattern in patterns or () for file in glob.glob(pattern))
    if patterns and not files:
        raise FileNotFoundError(f"no file matches {','.join(patterns)}")
    return files


def unpack_shakespeare(folder):
    """Writes two files, to train and to validate on."""
    folder.mkdir(parents=True, exist_ok=True)
    text = lzma.open(SHAKESPEARE, "rt", encoding="utf-8").read()
    end = text.index("\n\n", len(text) * 9 // 10)  # Empty lines are between documents.
    (folder / "train.txt").write_text(text[:end], encoding="utf-8")
    (folder / "held_out.txt").write_text(text[end:], encoding="utf-8")
    return [str(folder / "train.txt")], [str(folder / "held_out.txt")]


if __name__ == "__main__":
    app.run(main)

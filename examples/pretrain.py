"""Pretrains XLNet on text files, from raw text to a preset that can be fine-tuned.

    python examples/pretrain.py

writes a small corpus of made-up message threads, trains a SentencePiece vocabulary on it, turns it
into token records, pretrains a small XLNet with memory, and fine-tunes what came out of it with
spam_classifier.py. Everything is in runs/pretrain: the preset, `history.csv`, curves, TensorBoard
logs, and what the model fills into blanks after each epoch. It needs no network and about 3 minutes
on 2 cores. Made-up threads teach little of real messages: the spam filter at the end shows the way,
it is no better than one from scratch. Killed and started again, it goes on where the last epoch
ended. More ways to run it:

    python examples/pretrain.py --corpus "texts/*.txt" --held_out other.txt --num_layers 6
    python examples/pretrain.py --corpus wiki.txt.gz --layout paragraphs --document_start "^ = [^=]"
    python examples/pretrain.py --checkpoint xlnet_cased_L-12_H-768_A-12 --corpus mine.txt

and what the paper leaves out one by one to see what it is good for (table 6):

    python examples/pretrain.py --objective denoising      # BERT's, in place of permutations
    python examples/pretrain.py --memory_length 0          # no memory
    python examples/pretrain.py --unit token               # no spans
    python examples/pretrain.py --nobidirectional_data     # forward streams alone
    python examples/pretrain.py --nosegment_pairs          # no second segment
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import pretrain_report
from absl import app, flags
from pretrain_corpus import write_corpus

from keras_xlnet.checkpoints import load_original
from keras_xlnet.evaluation import Perplexity
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.pretraining import PermutationBatches, ResumeBatches, write_token_records
from keras_xlnet.text import XLNetTokenizer
from keras_xlnet.training import (
    AdamWeightDecay,
    ExactBackupAndRestore,
    TokensPerSecond,
    WarmupPolynomialDecay,
    make_strategy,
    worker_directory,
)
from keras_xlnet.training.make_strategy import STRATEGIES

FLAGS = flags.FLAGS
flags.DEFINE_list("corpus", None, "Text files or patterns; by default a corpus is made up.")
flags.DEFINE_list("held_out", None, "Text files to validate on; without, there is no validation.")
flags.DEFINE_enum("layout", "sentences", ["sentences", "paragraphs"], "What a line is.")
flags.DEFINE_string("document_start", None, "Regular expression that a document's first line has.")
flags.DEFINE_string("output_dir", "runs/pretrain", "Where everything is written.")
flags.DEFINE_string("tokenizer", None, "SentencePiece model to use; by default one is trained.")
flags.DEFINE_integer("vocabulary_size", None, "Pieces to train. [8000; 400 if made up]")
flags.DEFINE_string("checkpoint", None, "Go on from an original checkpoint.")
flags.DEFINE_enum("objective", "permutation", ["permutation", "denoising"], "What is learnt.")
flags.DEFINE_integer("memory_length", 32, "Rows of memory; 0 for none.", lower_bound=0)
flags.DEFINE_enum("unit", "word", ["word", "piece", "token"], "What spans are counted in.")
flags.DEFINE_bool("bidirectional_data", True, "Half of the rows read backwards.")
flags.DEFINE_bool("segment_pairs", True, "Two segments a row.")
flags.DEFINE_integer("num_layers", 2, "Layers.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 128, "Width.", lower_bound=2)
flags.DEFINE_integer("num_heads", 2, "Attention heads.", lower_bound=1)
flags.DEFINE_float("dropout", 0.0, "Dropout rate.", lower_bound=0, upper_bound=0.9)
flags.DEFINE_integer("batch_size", 16, "Rows of a batch.", lower_bound=1)
flags.DEFINE_integer("sequence_length", 64, "Tokens of a row, even.", lower_bound=8)
flags.DEFINE_integer("epochs", 4, "Epochs; after each there is a backup.", lower_bound=1)
flags.DEFINE_integer("steps_per_epoch", None, "Batches an epoch; by default one pass.")
flags.DEFINE_integer("validation_steps", None, "Held-out batches after an epoch. [all]")
flags.DEFINE_float("learning_rate", 1e-3, "Highest learning rate.", lower_bound=0)
flags.DEFINE_float("weight_decay", 0.01, "Weight decay.", lower_bound=0)
flags.DEFINE_integer("num_processes", 1, "Processes that tokenize.", lower_bound=1)
flags.DEFINE_integer("seed", 0, "Fixes everything that is drawn.", lower_bound=0)
flags.DEFINE_enum("strategy", "one_device", STRATEGIES, "What it trains on: docs/distributed.md.")
flags.DEFINE_integer("num_replicas", None, "Devices of --strategy mirrored. [all GPUs]")
flags.DEFINE_bool("fine_tune", None, "Try the preset on spam. By default if the corpus is made up.")


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    try:
        strategy = make_strategy(FLAGS.strategy, FLAGS.num_replicas)
        output_dir = pathlib.Path(worker_directory(strategy, FLAGS.output_dir))
        keras.utils.set_random_seed(FLAGS.seed)
        tokenizer, records, held_out = prepare(output_dir)
        preset = pretrain(output_dir, tokenizer, records, held_out, strategy)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"pretrain.py: {error}")
    if FLAGS.fine_tune or (FLAGS.fine_tune is None and not FLAGS.corpus):
        fine_tune(preset, output_dir / "spam")


# === Text ===


def prepare(output_dir):
    """The tokenizer, and token records of the corpus and of what is held out (or `None`)."""
    corpus, held_out = FLAGS.corpus, FLAGS.held_out
    if not corpus:
        made_up = output_dir / "corpus"
        paths = [made_up / name for name in ("train.txt", "held_out.txt")]
        if not all(path.is_file() for path in paths):
            write_corpus(made_up, seed=FLAGS.seed)
        corpus, held_out = [[str(path)] for path in paths]
    tokenizer = find_tokenizer(output_dir, corpus)
    layout = {
        "layout": FLAGS.layout,
        "document_start": FLAGS.document_start,
        "num_processes": FLAGS.num_processes,
    }
    records = write_token_records(corpus, tokenizer, output_dir / "records", **layout)
    print(f"{records.num_documents:,} documents, {records.num_tokens:,} tokens to train on")
    if held_out is not None:
        held_out = write_token_records(held_out, tokenizer, output_dir / "held_out", **layout)
        print(f"{held_out.num_documents:,} documents, {held_out.num_tokens:,} tokens held out")
    return tokenizer, records, held_out


def find_tokenizer(output_dir, corpus):
    """The tokenizer that is given, that of the checkpoint, or one that is trained (once)."""
    if FLAGS.tokenizer:
        return XLNetTokenizer(FLAGS.tokenizer)
    if FLAGS.checkpoint:
        # The original removes accents from cased text, too.
        return XLNetTokenizer(
            str(pathlib.Path(FLAGS.checkpoint) / "spiece.model"), remove_accents=True
        )
    path = output_dir / "tokenizer"
    if not (path / "spiece.model").is_file():
        size = FLAGS.vocabulary_size or (8000 if FLAGS.corpus else 400)
        tokenizer = XLNetTokenizer.train(corpus, vocabulary_size=size)
        path.mkdir(parents=True, exist_ok=True)
        tokenizer.save_assets(str(path))
    return XLNetTokenizer(str(path / "spiece.model"))


# === Pretraining ===


def pretrain(output_dir, tokenizer, records, held_out, strategy):
    """Trains, reports, and writes the preset; returns its folder."""
    num_replicas = strategy.num_replicas_in_sync
    batches = batches_of(records, num_replicas)
    validation = None
    if held_out is not None:
        validation = (
            batches_of(held_out, num_replicas)
            .evaluation_dataset()
            .take(FLAGS.validation_steps or -1)
        )
    steps = FLAGS.steps_per_epoch or batches.steps_per_pass
    with strategy.scope():
        model = make_model(tokenizer.vocabulary_size(), FLAGS.batch_size // num_replicas)
        compile_model(model, FLAGS.epochs * steps)
    print(
        f"{model.backbone.count_params():,} weights, {steps} steps an epoch, "
        f"objective {FLAGS.objective}, memory {FLAGS.memory_length}"
    )
    callbacks = [
        TokensPerSecond(FLAGS.batch_size * batches.reuse_length),
        Minutes(output_dir / "minutes.json"),
        # Before the backup: an epoch that is backed up is in the history.
        keras.callbacks.CSVLogger(str(output_dir / "history.csv"), append=True),
        ExactBackupAndRestore(output_dir / "backup"),
        ResumeBatches(batches),
        keras.callbacks.TensorBoard(str(output_dir / "tensorboard"), write_graph=False),
    ]
    if validation is not None and num_replicas == 1:  # Workers predict in turn, not in order.
        blanks = pretrain_report.Blanks(validation, tokenizer, output_dir / "blanks.txt")
        callbacks.append(blanks)
    forget_finished_run(output_dir)
    model.fit(
        batches.dataset(),
        validation_data=validation,
        epochs=FLAGS.epochs,
        steps_per_epoch=steps,
        shuffle=False,
        callbacks=callbacks,
        verbose=2 if not sys.stdout.isatty() else 1,
    )
    preset = output_dir / "preset"
    model.backbone.save_to_preset(preset, tokenizer)
    model.save_to_preset(output_dir / "permutation_lm", tokenizer)
    report(output_dir, model, validation, records)
    return preset


def batches_of(records, num_replicas):
    return PermutationBatches(
        records,
        FLAGS.batch_size,
        FLAGS.sequence_length,
        # About a sixth, as in the original.
        num_predictions=max(2, FLAGS.sequence_length // 6),
        unit=FLAGS.unit,
        segment_pairs=FLAGS.segment_pairs,
        bidirectional_data=FLAGS.bidirectional_data,
        num_replicas=num_replicas,
        seed=FLAGS.seed,
    )


def make_model(vocabulary_size, batch_size):
    """A model for `batch_size` rows on each replica."""
    memory = {"memory_length": FLAGS.memory_length or None}
    if FLAGS.memory_length:
        memory["reuse_length"] = FLAGS.sequence_length // 2
    options = {
        "two_stream": FLAGS.objective == "permutation",
        "stateful": bool(FLAGS.memory_length),
        "batch_size": batch_size,
    }
    shared = {
        "dropout": FLAGS.dropout,
        "attention_dropout": FLAGS.dropout,
        "bidirectional_data": FLAGS.bidirectional_data,
        "seed": FLAGS.seed,
        **memory,
    }
    if FLAGS.checkpoint:
        return load_original(FLAGS.checkpoint, "permutation_lm", **options, **shared)
    backbone = XLNetBackbone(
        vocabulary_size,
        FLAGS.num_layers,
        FLAGS.num_heads,
        FLAGS.hidden_dim,
        4 * FLAGS.hidden_dim,
        # Larger than XLNet's own, with which a small model learns nothing but the frequencies of
        # words for a long time.
        kernel_initializer="glorot_normal",
        **shared,
    )
    return XLNetPermutationLM(backbone, **options)


def compile_model(model, steps):
    schedule = WarmupPolynomialDecay(
        FLAGS.learning_rate, train_steps=steps, warmup_steps=max(1, steps // 20), min_ratio=0.01
    )
    optimizer = AdamWeightDecay(schedule, weight_decay=FLAGS.weight_decay, global_clipnorm=1.0)
    model.compile(optimizer, weighted_metrics={"logits": [Perplexity()]})


class Minutes(keras.callbacks.Callback):
    """Adds up the minutes of processor and of wall clock that training took, over restarts."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_train_begin(self, logs=None):
        self.before = {"cpu_minutes": 0.0, "minutes": 0.0}
        with contextlib.suppress(OSError, ValueError):
            self.before = json.loads(self.path.read_text(encoding="utf-8"))
        self.start = {"cpu_minutes": time.process_time(), "minutes": time.perf_counter()}

    def on_epoch_end(self, epoch, logs=None):
        now = {"cpu_minutes": time.process_time(), "minutes": time.perf_counter()}
        spent = {key: self.before[key] + (now[key] - self.start[key]) / 60 for key in now}
        self.path.write_text(json.dumps(spent), encoding="utf-8")
        logs |= spent


def forget_finished_run(output_dir):
    """A history belongs to a backup: without one, a run begins anew."""
    if not any((output_dir / "backup").glob("epoch_*")):
        for name in ("history.csv", "minutes.json", "blanks.txt"):
            (output_dir / name).unlink(missing_ok=True)


# === Report ===


def report(output_dir, model, validation, records):
    history = pretrain_report.read_history(output_dir / "history.csv")
    metrics = {"flags": own_flags(), "history": history}
    unigram = None
    if validation is not None:
        unigram = pretrain_report.unigram_loss(records, validation)
        metrics |= {"held_out_loss": history["val_loss"][-1], "unigram_loss": unigram}
        print(f"held-out loss {history['val_loss'][-1]:.3f}, of unigrams {unigram:.3f}")
    (output_dir / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    pretrain_report.plot_history(history, unigram, output_dir / "curves.png")
    print(f"the preset is {output_dir / 'preset'}; curves: {output_dir / 'curves.png'}")


def own_flags():
    return {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module(sys.argv[0])}


def fine_tune(preset, output_dir):
    """What the preset is for: the other example, started from it."""
    example = pathlib.Path(__file__).with_name("spam_classifier.py")
    command = [sys.executable, str(example), "--checkpoint", str(preset)]
    command += ["--epochs", "20", "--learning_rate", "1e-3", "--output_dir", str(output_dir)]
    command += ["--dropout", "0.2", "--token_dropout", "0.2"]
    print(f"\n{' '.join(command)}", flush=True)
    subprocess.run(command, check=True)


if __name__ == "__main__":
    app.run(main)

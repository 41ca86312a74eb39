"""Pretrains XLNet on text files, from raw text to a preset that can be fine-tuned.

    python research/pretraining/pretrain.py

makes up a small corpus of message threads, trains a SentencePiece vocabulary on it, writes token
records, pretrains a small XLNet with memory, and fine-tunes the result with spam_classifier.py.
Everything is in runs/pretrain: the preset, `history.csv`, curves, TensorBoard logs, and what the
model fills into blanks after each epoch. It needs no network and takes about 3 minutes on 2 cores.
The made-up threads teach little about real messages: the spam filter at the end shows how a preset
is used; it is no better than one trained from scratch. A run that was killed continues after its
last epoch when it is started again. More ways to run it:

    python research/pretraining/pretrain.py --corpus "texts/*.txt" --held_out other.txt \\
        --num_layers 6
    python research/pretraining/pretrain.py --corpus wiki.txt.gz --lines paragraphs \\
        --document_start "^ = [^=]"
    python research/pretraining/pretrain.py --preset xlnet_small_en --corpus mine.txt
    python research/pretraining/pretrain.py --checkpoint xlnet_cased_L-12_H-768_A-12 \\
        --corpus mine.txt
    python research/pretraining/pretrain.py --corpus texts.txt --cpu_minutes 600 \\
        --dtype mixed_bfloat16

The ablations of the paper (table 6) leave out one part each:

    python research/pretraining/pretrain.py --objective denoising
    python research/pretraining/pretrain.py --memory_length 0          # no memory
    python research/pretraining/pretrain.py --unit token               # single tokens, no spans
    python research/pretraining/pretrain.py --nobidirectional_data     # no rows in reverse
    python research/pretraining/pretrain.py --nosegment_pairs          # no second segment
"""

import functools
import glob
import pathlib
import subprocess
import sys

import keras
import pretrain_report
from absl import app, flags
from pretrain_budget import CpuBudget
from pretrain_corpus import write_corpus
from pretrain_embeddings import initialize_embeddings

from keras_xlnet.checkpoints import load_original, load_tokenizer
from keras_xlnet.evaluation import BitsPerCharacter, Perplexity
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.pretraining import PermutationBatches, ResumeBatches, write_token_records
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.training import (
    STRATEGIES,
    AdamWeightDecay,
    ExactBackupAndRestore,
    TokensPerSecond,
    WarmupPolynomialDecay,
    make_strategy,
    worker_directory,
)

FLAGS = flags.FLAGS
flags.DEFINE_list("corpus", None, "Text files or patterns. [a made-up corpus]")
flags.DEFINE_list("held_out", None, "Text files to validate on. [no validation]")
flags.DEFINE_enum("lines", "sentences", ["sentences", "paragraphs"], "What each line holds.")
flags.DEFINE_string("document_start", None, "Regular expression of the first line of a document.")
flags.DEFINE_string("output_dir", "runs/pretrain", "Where everything is written.")
flags.DEFINE_string("records_dir", None, "Where records are written. [OUTPUT_DIR/records]")
flags.DEFINE_string("tokenizer", None, "SentencePiece model to use. [one is trained]")
flags.DEFINE_integer("vocabulary_size", None, "Size of a trained vocabulary. [8000; made-up: 400]")
flags.DEFINE_string("preset", None, "Continue from a preset of a permutation language model.")
flags.DEFINE_string("checkpoint", None, "Continue from an original checkpoint.")
flags.DEFINE_enum("objective", "permutation", ["permutation", "denoising"], "What is learned.")
flags.DEFINE_integer("memory_length", 32, "Rows of memory; 0 for none.", lower_bound=0)
flags.DEFINE_float("predicted_share", 1 / 6, "Share of the tokens that are predicted.", 0.01, 0.9)
flags.DEFINE_enum("unit", "word", ["word", "piece", "token"], "What spans are counted in.")
flags.DEFINE_bool("reset_at_documents", False, "Memory is forgotten where a document ends.")
flags.DEFINE_bool("bidirectional_data", True, "Half of the rows are read in reverse.")
flags.DEFINE_bool("segment_pairs", True, "Each row holds two segments.")
flags.DEFINE_integer("num_layers", 2, "Number of layers.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 128, "Width, a multiple of 64 (or less).", lower_bound=2)
flags.DEFINE_enum(
    "embeddings", "random", ["random", "cooccurrence"], "Initial weights of the token embeddings."
)
flags.DEFINE_float("dropout", 0.0, "Dropout rate.", lower_bound=0, upper_bound=0.9)
flags.DEFINE_enum("dtype", "float32", ["float32", "mixed_bfloat16"], "What is multiplied in.")
flags.DEFINE_integer("batch_size", 16, "Rows of a batch.", lower_bound=1)
flags.DEFINE_integer("sequence_length", 64, "Tokens of a row, an even number.", lower_bound=8)
flags.DEFINE_integer("epochs", 4, "Number of epochs; each ends with a backup.", lower_bound=1)
flags.DEFINE_integer("steps_per_epoch", None, "Batches of an epoch. [one pass over the corpus]")
flags.DEFINE_float(
    "cpu_minutes", None, "Train for this processor time; --epochs is not used.", lower_bound=0.1
)
flags.DEFINE_integer("validation_steps", None, "Batches of each held-out file. [all]")
flags.DEFINE_enum(
    "optimizer",
    "original",
    ["original", "adamw", "muon"],
    "XLNet's Adam, AdamW with bias correction, or Muon for matrices and AdamW for the rest.",
)
flags.DEFINE_float("learning_rate", 1e-3, "Peak learning rate.", lower_bound=0)
flags.DEFINE_integer("num_processes", 1, "Processes that tokenize.", lower_bound=1)
flags.DEFINE_integer("seed", 0, "Seed of everything that is random.", lower_bound=0)
flags.DEFINE_enum("strategy", "one_device", STRATEGIES, "Devices to use: docs/distributed.md.")
flags.DEFINE_integer("num_replicas", None, "Devices of --strategy mirrored. [all GPUs]")
flags.DEFINE_bool("fine_tune", None, "Fine-tune on spam at the end. [only with the made-up corpus]")

MANY = 1_000_000  # Epochs: `CpuBudget` ends training.


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    try:
        strategy = make_strategy(FLAGS.strategy, FLAGS.num_replicas)
        output_dir = pathlib.Path(worker_directory(strategy, FLAGS.output_dir))
        keras.utils.set_random_seed(FLAGS.seed)
        tokenizer, records, held_out = prepare(output_dir)
        pretrain(output_dir, tokenizer, records, held_out, strategy)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"pretrain.py: {error}")
    if FLAGS.fine_tune or (FLAGS.fine_tune is None and not FLAGS.corpus):
        fine_tune(output_dir / "preset", output_dir / "spam")


# === Text ===


def prepare(output_dir):
    """Returns the tokenizer, the records of the corpus, and those of each held-out file by name."""
    corpus, held_out = FLAGS.corpus, FLAGS.held_out
    if not corpus:
        corpus, held_out = (
            [str(path)] for path in write_corpus(output_dir / "corpus", seed=FLAGS.seed)
        )
    tokenizer = find_tokenizer(output_dir, corpus)
    records_dir = pathlib.Path(FLAGS.records_dir or output_dir / "records")
    records = write_records(corpus, tokenizer, records_dir)
    files = [pathlib.Path(file) for pattern in held_out or () for file in find_files(pattern)]
    files = {file.name.split(".")[0]: file for file in files}
    held_out = {
        name: write_records(file, tokenizer, output_dir / "held_out" / name)
        for name, file in files.items()
    }
    return tokenizer, records, held_out


def find_files(pattern):
    files = sorted(glob.glob(pattern))
    if not files:
        raise FileNotFoundError(f"--held_out: no file matches {pattern}")
    return files


def write_records(files, tokenizer, directory):
    records = write_token_records(
        files,
        tokenizer,
        directory,
        lines=FLAGS.lines,
        document_start=FLAGS.document_start,
        num_processes=FLAGS.num_processes,
    )
    print(f"{directory}: {records.num_documents:,} documents, {records.num_tokens:,} tokens")
    return records


def find_tokenizer(output_dir, corpus):
    """Returns the given tokenizer, that of a preset or checkpoint, or one trained before."""
    if FLAGS.tokenizer:
        return XLNetTokenizer(FLAGS.tokenizer)
    if FLAGS.preset:
        return XLNetTokenizer.from_preset(FLAGS.preset)
    if FLAGS.checkpoint:
        return load_tokenizer(FLAGS.checkpoint)
    path = output_dir / "tokenizer" / "spiece.model"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        size = FLAGS.vocabulary_size or (8000 if FLAGS.corpus else 400)
        XLNetTokenizer.train(corpus, vocabulary_size=size).save_assets(str(path.parent))
    return XLNetTokenizer(path)


# === Pretraining ===


def pretrain(output_dir, tokenizer, records, held_out, strategy):
    """Trains, reports and writes the presets."""
    num_replicas = strategy.num_replicas_in_sync
    batches = make_batches(records, num_replicas)
    held_out = {
        source: make_batches(found, num_replicas)
        .evaluation_dataset()
        .take(FLAGS.validation_steps or -1)
        for source, found in held_out.items()
    }
    validation = None
    if held_out:
        validation = functools.reduce(lambda a, b: a.concatenate(b), held_out.values())
    steps = FLAGS.steps_per_epoch or batches.steps_per_pass
    with strategy.scope():
        model = make_model(records, FLAGS.batch_size // num_replicas)
        metrics = [Perplexity(), BitsPerCharacter.of(tokenizer)]
        model.compile(make_optimizer(FLAGS.epochs * steps), weighted_metrics={"logits": metrics})
    print(f"{model.backbone.count_params():,} weights, {steps} steps an epoch")
    # Workers return their predictions in turn, so what is filled into blanks would be mixed up.
    blanks_of = validation if num_replicas == 1 else None
    model.fit(
        batches.dataset(),
        validation_data=validation,
        epochs=MANY if FLAGS.cpu_minutes else FLAGS.epochs,
        steps_per_epoch=steps,
        shuffle=False,  # Memory needs the batches in their order.
        callbacks=[
            TokensPerSecond(FLAGS.batch_size * batches.reuse_length),
            *budget(output_dir),
            # Before the backup, so that no epoch is in a backup but not in the history.
            *pretrain_report.callbacks(output_dir, tokenizer, blanks_of),
            ExactBackupAndRestore(output_dir / "backup"),
            ResumeBatches(batches),
        ],
        verbose=1 if sys.stdout.isatty() else 2,
    )
    bits = pretrain_report.bits_by_source(model, held_out)
    model.backbone.save_to_preset(output_dir / "preset", tokenizer)
    model.save_to_preset(output_dir / "permutation_lm", tokenizer)
    flag_values = {f.name: f.value for f in FLAGS.get_key_flags_for_module(sys.argv[0])}
    pretrain_report.write_report(output_dir, flag_values, records, validation, bits)


def make_batches(records, num_replicas):
    return PermutationBatches(
        records,
        FLAGS.batch_size,
        FLAGS.sequence_length,
        num_predictions=max(2, int(FLAGS.predicted_share * FLAGS.sequence_length)),
        unit=FLAGS.unit,
        segment_pairs=FLAGS.segment_pairs,
        bidirectional_data=FLAGS.bidirectional_data,
        reset_at_documents=FLAGS.reset_at_documents,
        num_replicas=num_replicas,
        seed=FLAGS.seed,
    )


def make_model(records, batch_size):
    """Returns the model for batches of `batch_size` rows on each replica."""
    has_memory = FLAGS.memory_length > 0
    head = {"objective": FLAGS.objective, "stateful": has_memory, "batch_size": batch_size}
    encoder = {
        "dropout": FLAGS.dropout,
        "attention_dropout": FLAGS.dropout,
        "bidirectional_data": FLAGS.bidirectional_data,
        "memory_length": FLAGS.memory_length if has_memory else None,
        "reuse_length": FLAGS.sequence_length // 2 if has_memory else None,
        "seed": FLAGS.seed,
        "dtype": FLAGS.dtype,
    }
    if FLAGS.preset:
        return XLNetPermutationLM.from_preset(FLAGS.preset, **head, **encoder)
    if FLAGS.checkpoint:
        return load_original(FLAGS.checkpoint, "permutation_lm", **head, **encoder)
    backbone = XLNetBackbone(
        records.vocabulary_size,
        FLAGS.num_layers,
        num_heads=max(1, FLAGS.hidden_dim // 64),
        hidden_dim=FLAGS.hidden_dim,
        intermediate_dim=4 * FLAGS.hidden_dim,
        # Larger initial weights than XLNet's, with which a small model learns only the frequencies
        # of tokens for a long time.
        kernel_initializer="glorot_normal",
        **encoder,
    )
    # A backup has embeddings already.
    if FLAGS.embeddings == "cooccurrence" and not pretrain_report.has_backup(FLAGS.output_dir):
        initialize_embeddings(backbone.get_layer("token_embedding").embeddings, records)
    return XLNetPermutationLM(backbone, **head)


def make_optimizer(steps):
    rate = FLAGS.learning_rate
    if not FLAGS.cpu_minutes:  # With `--cpu_minutes`, `CpuBudget` sets the learning rate.
        rate = WarmupPolynomialDecay(
            rate, train_steps=steps, warmup_steps=max(1, steps // 20), min_ratio=0.01
        )
    if FLAGS.optimizer == "original":
        return AdamWeightDecay(rate, weight_decay=0.01, global_clipnorm=1.0)
    if FLAGS.optimizer == "muon":
        # Matrices are the kernels of the feed-forward networks: those of attention have three axes.
        optimizer = keras.optimizers.Muon(
            rate, weight_decay=0.1, adam_weight_decay=0.1, adam_beta_2=0.98, global_clipnorm=1.0
        )
    else:
        optimizer = keras.optimizers.AdamW(rate, weight_decay=0.1, beta_2=0.98, global_clipnorm=1.0)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


def budget(output_dir):
    """Returns the callback of `--cpu_minutes`, if it is given."""
    if not FLAGS.cpu_minutes:
        return []
    path = output_dir / "budget.json"
    if not pretrain_report.has_backup(output_dir):
        path.unlink(missing_ok=True)
    return [CpuBudget(path, FLAGS.cpu_minutes, FLAGS.learning_rate)]


# === Fine-tuning ===


def fine_tune(preset, output_dir):
    """Runs the other example, started from the preset."""
    example = pathlib.Path(__file__).parents[2] / "examples" / "spam_classifier.py"
    command = [sys.executable, example, "--preset", preset, "--output_dir", output_dir]
    command += ["--data", example.with_name("data") / "spam_messages.tsv"]
    command += ["--epochs", "20"]
    print("", *command, flush=True)
    subprocess.run(command, check=True)


if __name__ == "__main__":
    app.run(main)

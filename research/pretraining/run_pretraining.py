"""Pretrains XLNet on text files, from raw text to a preset that can be fine-tuned.

    python research/pretraining/run_pretraining.py --corpus "texts/*.txt" --held_out other.txt \\
        --num_layers 6
    python research/pretraining/run_pretraining.py --corpus wiki.txt.gz --lines paragraphs \\
        --document_start "^ = [^=]"
    python research/pretraining/run_pretraining.py --preset xlnet_small_en --corpus mine.txt
    python research/pretraining/run_pretraining.py --checkpoint xlnet_cased_L-12_H-768_A-12 \\
        --corpus mine.txt
    python research/pretraining/run_pretraining.py --corpus texts.txt --cpu_minutes 600 \\
        --dtype mixed_bfloat16

trains a SentencePiece vocabulary, writes token records, and pretrains with memory. runs/pretraining
gets the presets of backbone and language model, `history.csv`, `metrics.json` and curves.
An interrupted run continues after its last epoch when it is started again. examples/pretrain.py is
the same in a hundred lines; this program has flags for the ablations of the paper (table 6) and for
small models.
"""

import functools
import glob
import json
import pathlib
import sys

import keras
import matplotlib
import numpy as np
from absl import app, flags
from cooccurrence import initialize_embeddings
from minutes import CpuBudget, Minutes

from keras_xlnet.checkpoints import load_original, load_tokenizer
from keras_xlnet.evaluation import BitsPerCharacter, Perplexity
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.pretraining import PermutationBatches, ResumeBatches, write_token_records
from keras_xlnet.task_files import read_table
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.training import (
    AdamWeightDecay,
    ExactBackupAndRestore,
    TokensPerSecond,
    WarmupPolynomialDecay,
)

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

FLAGS = flags.FLAGS
flags.DEFINE_list("corpus", None, "Text files or patterns.")
flags.DEFINE_list("held_out", None, "Text files to validate on. [no validation]")
flags.DEFINE_enum("lines", "sentences", ["sentences", "paragraphs"], "What each line holds.")
flags.DEFINE_string("document_start", None, "Regular expression of the first line of a document.")
flags.DEFINE_string("output_dir", "runs/pretraining", "Where everything is written.")
flags.DEFINE_string("records_dir", None, "Where records are written. [OUTPUT_DIR/records]")
flags.DEFINE_string("tokenizer", None, "SentencePiece model to use. [one is trained]")
flags.DEFINE_integer("vocabulary_size", 8000, "Size of a trained vocabulary.", lower_bound=1)
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
flags.DEFINE_enum("embeddings", "random", ["random", "cooccurrence"], "Initial weights of tokens.")
flags.DEFINE_float("dropout", 0.0, "Dropout rate.", lower_bound=0, upper_bound=0.9)
flags.DEFINE_enum("dtype", "float32", ["float32", "mixed_bfloat16"], "What is multiplied in.")
flags.DEFINE_integer("batch_size", 16, "Rows of a batch.", lower_bound=1)
flags.DEFINE_integer("sequence_length", 64, "Tokens of a row, an even number.", lower_bound=8)
flags.DEFINE_integer("epochs", 4, "Number of epochs; each ends with a backup.", lower_bound=1)
flags.DEFINE_integer("steps_per_epoch", None, "Batches of an epoch. [one pass over the corpus]")
flags.DEFINE_float("cpu_minutes", None, "Processor time to train for, instead of --epochs.", 0.1)
flags.DEFINE_integer("validation_steps", None, "Batches of each held-out file. [all]")
optimizers = ["original", "adamw", "muon"]
flags.DEFINE_enum("optimizer", "original", optimizers, "XLNet's Adam, AdamW, or Muon with AdamW.")
flags.DEFINE_float("learning_rate", 1e-3, "Peak learning rate.", lower_bound=0)
flags.DEFINE_integer("num_processes", 1, "Processes that tokenize.", lower_bound=1)
flags.DEFINE_integer("seed", 0, "Seed of everything that is random.", lower_bound=0)

MANY = 1_000_000  # Epochs: `CpuBudget` ends training.


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    try:
        output_dir = pathlib.Path(FLAGS.output_dir)
        keras.utils.set_random_seed(FLAGS.seed)
        if not FLAGS.corpus:
            raise ValueError("--corpus must name text files")
        pretrain(output_dir, *prepare(output_dir))
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"run_pretraining.py: {error}")


# === Text ===


def prepare(output_dir):
    """Returns the tokenizer, the records of the corpus, and the held-out records by name."""
    tokenizer = find_tokenizer(output_dir)
    records = write_records(FLAGS.corpus, tokenizer, FLAGS.records_dir or output_dir / "records")
    held_out = {}
    for pattern in FLAGS.held_out or ():
        files = sorted(map(pathlib.Path, glob.glob(pattern)))
        if not files:
            raise FileNotFoundError(f"--held_out: no file matches {pattern}")
        for file in files:
            name = file.name.split(".")[0]
            held_out[name] = write_records(file, tokenizer, output_dir / "held_out" / name)
    return tokenizer, records, held_out


def write_records(files, tokenizer, directory):
    records = write_token_records(
        files, tokenizer, directory, lines=FLAGS.lines, document_start=FLAGS.document_start,
        num_processes=FLAGS.num_processes,
    )  # fmt: skip
    print(f"{directory}: {records.num_documents:,} documents, {records.num_tokens:,} tokens")
    return records


def find_tokenizer(output_dir):
    """Returns the tokenizer of the flags, of the preset or checkpoint, or a trained one."""
    if FLAGS.tokenizer:
        return XLNetTokenizer(FLAGS.tokenizer)
    if FLAGS.preset:
        return XLNetTokenizer.from_preset(FLAGS.preset)
    if FLAGS.checkpoint:
        return load_tokenizer(FLAGS.checkpoint)
    path = output_dir / "tokenizer" / "spiece.model"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        trained = XLNetTokenizer.train(FLAGS.corpus, vocabulary_size=FLAGS.vocabulary_size)
        trained.save_assets(str(path.parent))
    return XLNetTokenizer(path)


# === Pretraining ===


def pretrain(output_dir, tokenizer, records, held_out):
    """Trains, reports and writes the presets."""
    make_batches = functools.partial(
        PermutationBatches, batch_size=FLAGS.batch_size, sequence_length=FLAGS.sequence_length,
        num_predictions=max(2, int(FLAGS.predicted_share * FLAGS.sequence_length)),
        unit=FLAGS.unit, segment_pairs=FLAGS.segment_pairs,
        bidirectional_data=FLAGS.bidirectional_data, seed=FLAGS.seed,
        reset_at_documents=FLAGS.reset_at_documents,
    )  # fmt: skip
    batches = make_batches(records)
    held_out = {
        source: make_batches(found).evaluation_dataset().take(FLAGS.validation_steps or -1)
        for source, found in held_out.items()
    }
    validation = None
    if held_out:
        validation = functools.reduce(lambda a, b: a.concatenate(b), held_out.values())
    steps = FLAGS.steps_per_epoch or batches.steps_per_pass
    model, metrics = make_model(records), [Perplexity(), BitsPerCharacter.of(tokenizer)]
    model.compile(make_optimizer(FLAGS.epochs * steps), weighted_metrics={"logits": metrics})
    print(f"{model.backbone.count_params():,} weights, {steps} steps an epoch")
    history, budget = output_dir / "history.csv", output_dir / "budget.json"
    minutes, budgets = Minutes(output_dir / "minutes.json"), []
    if FLAGS.cpu_minutes:
        budgets.append(CpuBudget(budget, FLAGS.cpu_minutes, FLAGS.learning_rate))
    if not has_backup(output_dir):  # The files of a complete run.
        for path in (history, budget, minutes.path):
            path.unlink(missing_ok=True)
    model.fit(
        batches.dataset(),
        validation_data=validation,
        epochs=MANY if FLAGS.cpu_minutes else FLAGS.epochs,
        steps_per_epoch=steps,
        shuffle=False,  # Memory needs the batches in their order.
        callbacks=[
            TokensPerSecond(FLAGS.batch_size * batches.reuse_length),
            *(
                [CpuBudget(budget, FLAGS.cpu_minutes, FLAGS.learning_rate)]
                * bool(FLAGS.cpu_minutes)
            ),
            # Before the backup, so that every epoch in a backup is in the history.
            minutes,
            keras.callbacks.CSVLogger(str(history), append=True),
            ExactBackupAndRestore(output_dir / "backup"),
            ResumeBatches(batches),
        ],
        verbose=1 if sys.stdout.isatty() else 2,
    )
    bits = {
        source: model.evaluate(found, verbose=0, return_dict=True)["bits_per_character"]
        for source, found in held_out.items()
    }
    model.backbone.save_to_preset(output_dir / "preset", tokenizer)
    model.save_to_preset(output_dir / "permutation_lm", tokenizer)
    write_report(output_dir, records, validation, bits)


def has_backup(output_dir):
    """Returns whether a run was interrupted after an epoch and will continue."""
    return any((pathlib.Path(output_dir) / "backup").glob("epoch_*"))


def make_model(records):
    has_memory = FLAGS.memory_length > 0
    head = {"stateful": has_memory, "batch_size": FLAGS.batch_size, "objective": FLAGS.objective}
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
    width, num_heads = FLAGS.hidden_dim, max(1, FLAGS.hidden_dim // 64)
    # With XLNet's smaller initial weights, a small model learns only token frequencies for a long
    # time.
    encoder["kernel_initializer"] = "glorot_normal"
    sizes = (records.vocabulary_size, FLAGS.num_layers, num_heads, width, 4 * width)
    backbone = XLNetBackbone(*sizes, **encoder)
    # A backup has embeddings already.
    if FLAGS.embeddings == "cooccurrence" and not has_backup(FLAGS.output_dir):
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
    decay = {"weight_decay": 0.1, "global_clipnorm": 1.0}
    if FLAGS.optimizer == "muon":
        # Muon takes the kernels of the feed-forward networks; kernels of attention have three axes.
        others = {"adam_weight_decay": 0.1, "adam_beta_2": 0.98}
        optimizer = keras.optimizers.Muon(rate, **others, **decay)
    else:
        optimizer = keras.optimizers.AdamW(rate, beta_2=0.98, **decay)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


# === Report ===


def write_report(output_dir, records, held_out, bits):
    """Writes `metrics.json` and `curves.png`, and prints the held-out loss.

    Args:
        output_dir: `pathlib.Path` of the run.
        records: `TokenRecords` of the training text.
        held_out: Batches of `PermutationBatches`, or `None`.
        bits: Dict of bits per character by source.
    """
    flag_values = {f.name: f.value for f in FLAGS.get_key_flags_for_module(sys.argv[0])}
    history = read_history(output_dir / "history.csv")
    metrics = {"flags": flag_values, "history": history, "bits_per_character": bits}
    metrics["tokens"] = records.num_tokens
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    epochs = np.arange(1, len(history["loss"]) + 1)
    axes.plot(epochs, history["loss"], marker="o", label="training (dropout on)")
    if held_out is not None:
        unigram = unigram_loss(records, held_out)
        metrics |= {"held_out_loss": history["val_loss"][-1], "unigram_loss": unigram}
        print(f"held-out loss {history['val_loss'][-1]:.3f}, of unigrams {unigram:.3f}")
        axes.plot(epochs, history["val_loss"], marker="o", label="held out")
        axes.axhline(unigram, color="grey", linestyle="--", label="held out, unigrams")
    axes.set(xlabel="epoch", ylabel="loss of a target (nats)")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(output_dir / "curves.png", dpi=120)
    (output_dir / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    for source, value in bits.items():
        print(f"{source}: {value:.3f} bits per character")
    print(f"the preset is {output_dir / 'preset'}; curves: {output_dir / 'curves.png'}")


def read_history(path):
    """Returns the columns that `CSVLogger` wrote, as lists by name.

    An epoch that was repeated after a restart counts once, with its last values.
    """
    names = path.read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    table = read_table(path, {name: name for name in names}, integer=["epoch"])
    last = {epoch: row for row, epoch in enumerate(table["epoch"])}
    # Without validation, Keras writes "NA" into the columns of the validation metrics.
    return {
        name: [float(column[row]) for row in last.values()]
        for name, column in table.items()
        if column[last[table["epoch"][0]]] != "NA"
    }


def unigram_loss(records, dataset):
    """Returns the loss on the targets of `dataset` of a model that knows only token frequencies.

    The frequencies are counted in `records`.
    """
    counts = np.ones(records.vocabulary_size)
    for index in range(len(records.shards)):
        counts += np.bincount(records.read(index).tokens, minlength=len(counts))
    losses, total, weight = -np.log(counts / counts.sum()), 0.0, 0.0
    for _, labels, sample_weight in dataset.as_numpy_iterator():
        total += (losses[labels] * sample_weight).sum()
        weight += sample_weight.sum()
    return float(total / weight)


if __name__ == "__main__":
    app.run(main)

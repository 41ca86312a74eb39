"""Measures the speed of the pretraining pipeline: text to token records, and records to batches.

    python benchmarks/pretraining_pipeline.py
    python benchmarks/pretraining_pipeline.py --files 'corpus/*.txt' --tokenizer spiece.model

Prints tokens per second for writing records, and sequences per second for batches of several
shapes. Without `--files`, it generates text with random words. Takes a few minutes on two cores.
"""

import os
import pathlib
import platform
import random
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from absl import app, flags

from keras_xlnet.pretraining import PermutationBatches, write_token_records
from keras_xlnet.tokenizers import XLNetTokenizer

FLAGS = flags.FLAGS
flags.DEFINE_list("files", None, "Text files or patterns. Default: 4 MB of generated text.")
flags.DEFINE_string("tokenizer", None, "SentencePiece model. Default: one trained on the text.")
flags.DEFINE_integer("num_processes", 1, "Number of processes that write records.")
flags.DEFINE_float("seconds", 5.0, "How many seconds to measure each shape.")

# (batch size, sequence length, number of predictions, other arguments of PermutationBatches)
SHAPES = [
    (32, 128, 20, {}),
    (32, 128, 20, {"bidirectional_data": True}),
    (32, 128, 20, {"unit": "piece"}),
    (32, 128, 20, {"unit": "token"}),
    (32, 128, 20, {"segment_pairs": False}),
    (8, 512, 85, {}),
    (32, 512, 85, {}),
    (32, 512, 85, {"bidirectional_data": True}),
]
WARMUP_BATCHES = 20


def generate_text(path, num_bytes=4_000_000):
    """Writes documents with sentences of random words. Short words are more frequent."""
    rng = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = [
        "".join(rng.choices(letters, weights=range(26, 0, -1), k=rng.randint(1, 3 + rank // 400)))
        for rank in range(4000)
    ]
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < num_bytes:
            for _ in range(rng.randint(3, 20)):
                ranks = (int(4000 ** rng.random()) - 1 for _ in range(rng.randint(4, 30)))
                file.write(" ".join(words[rank] for rank in ranks) + ".\n")
            file.write("\n")
    return [str(path)]


def sequences_per_second(batches, seconds):
    iterator = iter(batches.dataset())
    for _ in range(WARMUP_BATCHES):
        next(iterator)
    count, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds:
        next(iterator)
        count += 1
    return count * batches.batch_size / elapsed


def write_records(files, tokenizer, directory):
    begin = time.perf_counter()
    records = write_token_records(
        files, tokenizer, directory, num_processes=FLAGS.num_processes, shard_bytes=2**21, verbose=0
    )
    elapsed = time.perf_counter() - begin
    size = sum(
        tf.io.gfile.stat(path).length for pattern in files for path in tf.io.gfile.glob(pattern)
    )
    print(
        f"text to records, {FLAGS.num_processes} processes: {records.num_tokens:,} tokens in "
        f"{len(records.shards)} shards, {records.num_tokens / elapsed:,.0f} tokens/s, "
        f"{size / elapsed / 1e6:.2f} MB/s"
    )
    return records


def main(_):
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, TF {tf.__version__}"
    )
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        files = FLAGS.files or generate_text(folder / "text.txt")
        if FLAGS.tokenizer:
            tokenizer = XLNetTokenizer(FLAGS.tokenizer)
        else:
            tokenizer = XLNetTokenizer.train(files, 2000, input_sentence_size=20_000)
        records = write_records(files, tokenizer, folder / "records")
        print("records to batches:")
        for batch_size, sequence_length, num_predictions, settings in SHAPES:
            batches = PermutationBatches(
                records, batch_size, sequence_length, num_predictions, **settings
            )
            rate = sequences_per_second(batches, FLAGS.seconds)
            print(
                f"  batch {batch_size:3} x {sequence_length:3}, {num_predictions} predictions, "
                f"{settings or 'word spans'}: {rate:8,.0f} sequences/s, "
                f"{rate * sequence_length:10,.0f} tokens/s"
            )


if __name__ == "__main__":
    app.run(main)

"""Measures the speed of the pretraining pipeline: text to token records, and records to batches.

    python -m benchmarks.pretraining_pipeline

Prints tokens per second for writing the records of four copies of tiny Shakespeare in one process,
and sequences per second for batches of several shapes. Takes a minute on two cores.
"""

import argparse
import lzma
import os
import pathlib
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from keras_xlnet.pretraining import PermutationBatches, write_token_records
from keras_xlnet.tokenizers import XLNetTokenizer

SHAKESPEARE = pathlib.Path(__file__).parents[1] / "examples" / "data" / "tiny_shakespeare.txt.xz"
# (batch size, sequence length, number of predictions, other arguments of PermutationBatches)
SHAPES = [
    (32, 128, 20, {}),
    (32, 128, 20, {"bidirectional_data": True}),
    (32, 512, 85, {}),
    (32, 512, 85, {"bidirectional_data": True}),
]
WARMUP_BATCHES = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="to measure each shape")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        text, folder = f"{directory}/text.txt", f"{directory}/records"
        pathlib.Path(text).write_bytes(4 * lzma.decompress(SHAKESPEARE.read_bytes()))
        tokenizer = XLNetTokenizer.train(text, 2000, input_sentence_size=20_000)
        begin = time.perf_counter()
        records = write_token_records(text, tokenizer, folder, shard_bytes=2**21, verbose=0)
        speed = records.num_tokens / (time.perf_counter() - begin)
        print(f"text to records: {speed:,.0f} tokens/s")
        for rows, length, num_predictions, others in SHAPES:
            batches = PermutationBatches(records, rows, length, num_predictions, **others)
            speed = rows * batches_per_second(batches, options.seconds)
            print(f"batches of {rows} x {length} {others or ''}: {speed:,.0f} sequences/s")


def batches_per_second(batches, seconds):
    iterator = iter(batches.dataset())
    for _ in range(WARMUP_BATCHES):
        next(iterator)
    count, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds:
        next(iterator)
        count += 1
    return count / elapsed


if __name__ == "__main__":
    main()

"""Prints what a training step costs if its places are a few long rows, or many short ones.

    python -m benchmarks.row_lengths
    python -m benchmarks.row_lengths --num_layers=12 --hidden_dim=768

Each step has the same texts of 32 tokens, packed without padding. Each token attends to all places
of its row, so longer rows cost more. `RowPlan` weighs this against the padding that they save, with
`COST_LENGTH`: the last line prints the value that fits these steps best. Takes two minutes on two
cores.
"""

import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from absl import app, flags

from benchmarks.tables import markdown
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier

FLAGS = flags.FLAGS
_TEXT_LENGTH = 32
_VOCABULARY_SIZE = 8000


def main(_):
    lengths = [int(length) for length in FLAGS.row_lengths]
    dim, heads = FLAGS.hidden_dim, FLAGS.hidden_dim // 64
    backbone = XLNetBackbone(
        _VOCABULARY_SIZE, FLAGS.num_layers, heads, dim, 4 * dim, dropout=0.1, attention_dropout=0.1
    )
    model = XLNetTextClassifier(backbone, num_classes=2)
    token_ids = np.random.default_rng(0).integers(
        9, 8000, (FLAGS.places // _TEXT_LENGTH, _TEXT_LENGTH)
    )
    labels = np.arange(len(token_ids)) % 2
    texts = {
        "token_ids": token_ids.astype("int32"),
        "segment_ids": np.zeros_like(token_ids, "int32"),
        "padding_mask": np.ones_like(token_ids, "bool"),
    }
    steps = {}
    for length in lengths:
        packing = np.arange(FLAGS.places, dtype="int32").reshape(-1, length)
        steps[length] = {**texts, "packing": packing}
    seconds = {length: [] for length in lengths}
    for _ in range(1 + FLAGS.repetitions):  # The first ones are traced.
        for length, batch in steps.items():
            begin = time.process_time()
            model.train_on_batch(batch, labels)
            seconds[length].append(time.process_time() - begin)
    seconds = {length: statistics.median(times[1:]) for length, times in seconds.items()}
    first = seconds[lengths[0]]
    rows = [
        (str(length), f"{seconds[length]:.2f}", f"{seconds[length] / first:.2f}")
        for length in lengths
    ]
    print(markdown(("row length", "CPU s of a step", "of the first"), rows))
    # A step takes a + b * length, and COST_LENGTH is a / b.
    slope, rest = np.polyfit(lengths, list(seconds.values()), 1)
    print(f"best COST_LENGTH: {rest / slope:.0f}")


if __name__ == "__main__":
    flags.DEFINE_list("row_lengths", "128,256,512,1024".split(","), "The lengths to compare.")
    flags.DEFINE_integer("places", 4096, "The tokens of a step.", lower_bound=1)
    flags.DEFINE_integer("num_layers", 6, "Layers of the model.", lower_bound=1)
    flags.DEFINE_integer("hidden_dim", 256, "Its width, a multiple of 64.", lower_bound=64)
    flags.DEFINE_integer("repetitions", 5, "Steps of each length.", lower_bound=1)
    app.run(main)

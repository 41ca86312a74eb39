"""What an adaptive softmax costs, beside the full softmax.

    python benchmarks/adaptive_softmax.py

measures the loss with its gradients for a batch of hidden states, with vocabularies of 32,000 and
267,735 words (that of WikiText-103). Targets are drawn by Zipf's law. Writes a table to
`--output_dir`. It takes some minutes on 2 cores; the numbers are for an otherwise idle machine.

Source: Grave et al. 2017; the cutoffs are those of Transformer-XL's authors for WikiText-103.
"""

import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from absl import app, flags

from keras_xlnet.layers import AdaptiveSoftmax

FLAGS = flags.FLAGS
flags.DEFINE_integer("hidden_dim", 256, "Width of the hidden states.", lower_bound=1)
flags.DEFINE_integer("num_tokens", 512, "Tokens of a batch.", lower_bound=1)
flags.DEFINE_integer("repeats", 5, "Timed steps; the fastest counts.", lower_bound=1)
flags.DEFINE_string("output_dir", "runs/adaptive_softmax", "Where the table is written.")

CUTOFFS = {32_000: (4_000, 12_000), 267_735: (20_000, 40_000, 200_000)}
KINDS = {
    "full": {},
    "clusters, div_val 1": {"div_val": 1},
    "clusters, div_val 4": {"div_val": 4},
    "clusters, div_val 4, all rows": {"div_val": 4, "tail_share": 1.0},
}


def main(_):
    lines = [
        "| vocabulary | softmax | weights | loss and gradients, ms | full / this |",
        "| --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines), flush=True)
    for size, cutoffs in CUTOFFS.items():
        full = None
        for name, arguments in KINDS.items():
            layer = AdaptiveSoftmax(
                size, FLAGS.hidden_dim, cutoffs=() if name == "full" else cutoffs, **arguments
            )
            seconds = measure(layer, zipf_targets(size))
            full = full or seconds
            cells = [
                f"{size:,}",
                name,
                f"{layer.count_params() / 1e6:.1f} M",
                f"{1000 * seconds:,.0f}",
                f"{full / seconds:.1f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    (output_dir / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def zipf_targets(size):
    ranks = np.arange(1, size + 1)
    probabilities = 1 / ranks / np.sum(1 / ranks)
    rng = np.random.default_rng(0)
    return tf.constant(rng.choice(size, FLAGS.num_tokens, p=probabilities), tf.int32)


def measure(layer, targets):
    """Returns the seconds of the fastest step."""
    hidden = tf.random.stateless_normal((FLAGS.num_tokens, FLAGS.hidden_dim), (0, 1))
    layer(hidden, targets=targets)
    variables = [v.value for v in layer.trainable_variables]

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(hidden)
            loss = -tf.reduce_mean(layer(hidden, targets=targets))
        gradients = tape.gradient(loss, [hidden, *variables])
        # Not the arrays, which would be copied.
        return loss, [tf.reduce_sum(gradient) for gradient in gradients]

    step()
    times = []
    for _ in range(FLAGS.repeats):
        start = time.perf_counter()
        step()[0].numpy()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    app.run(main)

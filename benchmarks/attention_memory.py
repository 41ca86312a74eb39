"""Peak memory of one training step against length: plain, in chunks, and with checkpointing.

    python benchmarks/attention_memory.py --plot docs/long_sequences.png

takes forward and backward pass of a backbone with random weights in a TensorFlow graph, each length
and way in a process of its own. The peak is that of the process (ru_maxrss) above what it was when
the model and its graph were there. Some 10 minutes and 12 GB on two cores.
"""

import json
import os
import platform
import resource
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

from absl import app, flags
from peak_memory import draw, in_process

FLAGS = flags.FLAGS
flags.DEFINE_list("lengths", ["512", "1024", "2048", "4096", "8192"], "Tokens of the one text.")
flags.DEFINE_integer("chunk_size", 256, "Query rows at a time.")
flags.DEFINE_integer("num_layers", 4, "Blocks.")
flags.DEFINE_integer("hidden_dim", 256, "Width; heads are 64 wide.")
flags.DEFINE_float("dropout", 0.1, "Both dropout rates.")
flags.DEFINE_integer("limit_mib", 16384, "A way that would need more is left out.")
flags.DEFINE_string("plot", None, "Where to draw the table.")
flags.DEFINE_string("case", None, "Used by the command itself: measure this way, at one length.")

WAYS = {
    "plain": {},
    "checkpointing": {"gradient_checkpointing": True},
    "chunks": {"attention_chunk_size": True},
    "both": {"attention_chunk_size": True, "gradient_checkpointing": True},
}


def main(_):
    if FLAGS.case:
        measure(FLAGS.case, int(FLAGS.lengths[0]))
        return
    lengths = [int(length) for length in FLAGS.lengths]
    rows = {way: [] for way in WAYS}
    print(
        f"{FLAGS.num_layers} layers x {FLAGS.hidden_dim}, batch 1, chunks of {FLAGS.chunk_size}, "
        f"dropout {FLAGS.dropout:g}; {os.cpu_count()} x {platform.machine()}; MiB (seconds)"
    )
    print(f"{'length':>8}" + "".join(f"{way:>20}" for way in WAYS))
    for i, length in enumerate(lengths):
        for way, found in rows.items():
            # Twice the length needs at most four times as much.
            growth = (length / lengths[i - 1]) ** 2 if i else 0
            last = found[-1] if found else {"peak": 0}
            too_much = last is None or last["peak"] * growth > FLAGS.limit_mib
            found.append(None if too_much else measured(way, length))
        print(f"{length:8}" + "".join(f"{cell(found[-1]):>20}" for found in rows.values()))
    if FLAGS.plot:
        title = f"{FLAGS.num_layers} layers x {FLAGS.hidden_dim}, batch 1"
        draw(FLAGS.plot, lengths, rows, range(5, 15), "tokens", title)


def cell(found):
    return "-" if found is None else f"{found['peak']:.0f} ({found['seconds']:.1f})"


def measured(way, length):
    """What `measure` prints in a process of its own."""
    names = ("chunk_size", "num_layers", "hidden_dim", "dropout")
    others = [f"--{name}={FLAGS[name].value}" for name in names]
    return in_process(__file__, "--case", way, "--lengths", str(length), *others)


def measure(way, length):
    """Prints a line of JSON: MiB of the peak of a step, and its seconds once it is warm."""
    import numpy as np
    import tensorflow as tf

    from keras_xlnet.models import XLNetBackbone

    arguments = dict(WAYS[way])
    if arguments.get("attention_chunk_size"):
        arguments["attention_chunk_size"] = FLAGS.chunk_size
    backbone = XLNetBackbone(
        vocabulary_size=1000,
        num_layers=FLAGS.num_layers,
        num_heads=FLAGS.hidden_dim // 64,
        hidden_dim=FLAGS.hidden_dim,
        intermediate_dim=4 * FLAGS.hidden_dim,
        dropout=FLAGS.dropout,
        attention_dropout=FLAGS.dropout,
        seed=0,
        **arguments,
    )
    variables = [variable.value for variable in backbone.trainable_variables]

    @tf.function
    def step(token_ids):
        with tf.GradientTape() as tape:
            output = backbone({"token_ids": token_ids}, training=True)["sequence_output"]
            loss = tf.reduce_mean(tf.square(output[:, 1:] - tf.stop_gradient(output[:, :-1])))
        return loss, sum(tf.norm(g) for g in tape.gradient(loss, variables) if g is not None)

    token_ids = tf.constant(np.random.default_rng(0).integers(0, 1000, (1, length)), tf.int32)

    graph = step.get_concrete_function(token_ids)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    graph(token_ids)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
    start = time.perf_counter()
    loss, norm = graph(token_ids)
    assert np.isfinite(float(loss)) and 0 < float(norm) < np.inf
    print(json.dumps({"peak": peak, "seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    app.run(main)

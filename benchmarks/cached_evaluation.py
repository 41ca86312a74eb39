"""How much faster a language model evaluates with memory than with windows read anew.

    python benchmarks/cached_evaluation.py

For each attention length, the time of a token is measured twice on the same model and text: in
segments with memory, so that every token attends to so many tokens, and in windows of so many
tokens that are read anew for every token. Writes a table and a plot to `--output_dir`. It takes
some minutes on 2 cores; the numbers are for an otherwise idle machine.

Source: Dai et al. 2019 (Transformer-XL), section 4.6 and table 9.
"""

import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import matplotlib
import numpy as np
from absl import app, flags

from keras_xlnet.evaluation import corpus_log_probs, sliding_log_probs
from keras_xlnet.models import TransformerXLLanguageModel

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FLAGS = flags.FLAGS
flags.DEFINE_list("lengths", ["800", "1800", "2800", "3800"], "Attention lengths.")
flags.DEFINE_integer("num_layers", 4, "Number of layers.", lower_bound=1)
flags.DEFINE_integer("hidden_dim", 128, "Width.", lower_bound=2)
flags.DEFINE_integer("segment_length", 128, "Tokens of a segment that is read with memory.")
flags.DEFINE_integer("num_windows", 12, "Windows that are timed.", lower_bound=1)
flags.DEFINE_string("output_dir", "runs/cached_evaluation", "Where everything is written.")

PAPER = {800: 363, 1800: 773, 2800: 1409, 3800: 1874}
VOCABULARY_SIZE = 256


def main(_):
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    rows = []
    for length in map(int, FLAGS.lengths):
        cached, sliding = seconds_with_memory(length), seconds_with_windows(length)
        rows.append({"length": length, "cached": cached, "sliding": sliding})
        print(format_row(rows[-1]), flush=True)
    table = "\n".join(
        [
            "| attention length | with memory, ms a token | windows, ms a token | ratio | paper |",
            "| --- | --- | --- | --- | --- |",
            *map(format_row, rows),
        ]
    )
    (output_dir / "table.md").write_text(table + "\n", encoding="utf-8")
    (output_dir / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    draw(rows, output_dir / "cached_evaluation.png")
    print(f"\n{table}\nWritten to {output_dir}: table.md, rows.json, cached_evaluation.png")


def new_model(memory_length):
    return TransformerXLLanguageModel(
        VOCABULARY_SIZE,
        FLAGS.num_layers,
        num_heads=max(1, FLAGS.hidden_dim // 32),
        hidden_dim=FLAGS.hidden_dim,
        intermediate_dim=4 * FLAGS.hidden_dim,
        memory_length=memory_length,
        same_length=memory_length is not None,
    )


def seconds_with_memory(length):
    """Returns the time of a token in segments with memory."""
    model = new_model(length)
    # Until the memory is full, it costs the same: its shape is fixed.
    tokens = random_tokens(8 * FLAGS.segment_length + 1)
    corpus_log_probs(model, tokens, FLAGS.segment_length, batch_size=1, verbose=0)
    start = time.perf_counter()
    corpus_log_probs(model, tokens, FLAGS.segment_length, batch_size=1, verbose=0)
    return (time.perf_counter() - start) / (len(tokens) - 1)


def seconds_with_windows(length):
    """Returns the time of a token in windows of this length."""
    model = new_model(None)
    # The first windows are shorter, but padded to the same shape.
    tokens = random_tokens(FLAGS.num_windows + 1)
    sliding_log_probs(model, tokens[:3], length, batch_size=1, verbose=0)
    start = time.perf_counter()
    sliding_log_probs(model, tokens, length, batch_size=1, verbose=0)
    return (time.perf_counter() - start) / FLAGS.num_windows


def random_tokens(count):
    return np.random.default_rng(0).integers(0, VOCABULARY_SIZE, count)


def format_row(row):
    paper = PAPER.get(row["length"])
    ratio = row["sliding"] / row["cached"]
    cells = [
        f"{row['length']:,}",
        f"{1000 * row['cached']:.2f}",
        f"{1000 * row['sliding']:.0f}",
        f"{ratio:,.0f}x",
        f"{paper:,}x" if paper else "",
    ]
    return f"| {' | '.join(cells)} |"


def draw(rows, path):
    lengths = [row["length"] for row in rows]
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    ours = [row["sliding"] / row["cached"] for row in rows]
    axis.plot(lengths, ours, marker="o", label="here")
    paper = {length: PAPER[length] for length in lengths if length in PAPER}
    axis.plot(list(paper), list(paper.values()), marker="s", linestyle=":", label="paper, on a GPU")
    axis.set(xlabel="attention length", ylabel="times faster with memory", ylim=(0, None))
    axis.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    app.run(main)

"""Compares the speed of evaluation with memory and with recomputed windows.

    python -m benchmarks.cached_evaluation
    python -m benchmarks.cached_evaluation --plot docs/cached_evaluation.png

For each attention length, the time per token is measured twice on the same model and text: in
segments with memory, so that every token attends to that many tokens, and in windows of that many
tokens, one for every token. It takes some minutes on 2 cores and assumes an otherwise idle
machine.

Source: Dai et al. 2019 (Transformer-XL), section 4.6 and table 9.
"""

import argparse
import functools
import os
import timeit

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import matplotlib
import numpy as np

from benchmarks.tables import markdown
from keras_xlnet.evaluation import corpus_log_probs, sliding_log_probs
from keras_xlnet.models import TransformerXLLanguageModel

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Attention lengths, and the paper's speedup by memory.
PAPER = {800: 363, 1800: 773, 2800: 1409, 3800: 1874}
VOCABULARY_SIZE, SEGMENT, WINDOWS = 256, 128, 12
TOKENS = np.random.default_rng(0).integers(0, VOCABULARY_SIZE, 8 * SEGMENT + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", nargs="+", type=int, default=list(PAPER))
    parser.add_argument("--plot", help="where to draw the ratios")
    options = parser.parse_args()
    rows, ratios = [], {}
    for length in options.lengths:
        cached, sliding = seconds_with_memory(length), seconds_with_windows(length)
        ratios[length] = sliding / cached
        rows.append((f"{length:,}", f"{1000 * cached:.2f}", f"{1000 * sliding:.0f}"))
        rows[-1] += (f"{ratios[length]:,.0f}x", f"{PAPER[length]:,}x" if length in PAPER else "")
    units = ("with memory, ms a token", "windows, ms a token")
    print(markdown(("attention length", *units, "ratio", "paper"), rows))
    if options.plot:
        draw(ratios, options.plot)


def new_model(memory_length):
    return TransformerXLLanguageModel(
        VOCABULARY_SIZE, 4, 4, 128, 512, memory_length=memory_length,
        same_length=memory_length is not None,
    )  # fmt: skip


def seconds_with_memory(length):
    """Returns the time per token in segments with memory."""
    model = new_model(length)
    # A memory that is not full costs the same: its shape is fixed.
    call = functools.partial(corpus_log_probs, model, TOKENS, SEGMENT, batch_size=1, verbose=0)
    return timed(call) / (len(TOKENS) - 1)


def seconds_with_windows(length):
    """Returns the time per token in windows of this length."""
    model = new_model(None)
    # The first windows are shorter, but padded to the same shape.
    tokens = TOKENS[: WINDOWS + 1]
    call = functools.partial(sliding_log_probs, model, tokens, length, batch_size=1, verbose=0)
    return timed(call) / WINDOWS


def timed(call):
    call()  # Compiles.
    return timeit.timeit(call, number=1)


def draw(ratios, path):
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    axis.plot(list(ratios), list(ratios.values()), marker="o", label="here")
    paper = {length: PAPER[length] for length in ratios if length in PAPER}
    axis.plot(list(paper), list(paper.values()), marker="s", linestyle=":", label="paper, on a GPU")
    axis.set(xlabel="attention length", ylabel="times faster with memory", ylim=(0, None))
    axis.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()

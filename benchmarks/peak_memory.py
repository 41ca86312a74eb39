"""What the benchmarks of memory have in common: cases in processes of their own, and the plot."""

import json
import subprocess
import sys


def in_process(file, *arguments):
    """Runs a file with arguments, and returns the JSON of its last line.

    A peak is that of a process, so each case has its own.
    """
    command = [sys.executable, file, *arguments]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(printed.splitlines()[-1])


def draw(path, lengths, rows, exponents, xlabel, title=None):
    """Draws MiB against length, both logarithmic: a slope of 1 is linear, of 2 quadratic.

    Args:
        path: Where to write the picture.
        lengths: List of ints.
        rows: Dict from names to lists with a dict with `peak`, or `None`, for each length.
        exponents: Those of the powers of 2 on the axis of MiB.
        xlabel: String.
        title: Optional string.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for (name, found), marker in zip(rows.items(), "osD^", strict=True):
        points = [(n, f["peak"]) for n, f in zip(lengths, found, strict=True) if f]
        axes.loglog(*zip(*points, strict=True), marker=marker, label=name)
    axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
    axes.minorticks_off()
    axes.set_yticks([2**k for k in exponents], [f"{2**k:,}" for k in exponents])
    axes.grid(alpha=0.3)
    axes.set_xlabel(xlabel)
    axes.set_ylabel("MiB at the peak of a training step")
    if title:
        axes.set_title(title)
    axes.legend()
    figure.savefig(path, dpi=130)

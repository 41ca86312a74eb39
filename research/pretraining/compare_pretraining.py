"""Plots the held-out losses of several runs of run_pretraining.py, and prints a table of them.

    python research/pretraining/compare_pretraining.py curves.png runs/one runs/another

Each run is a folder that run_pretraining.py has written. Takes a second.
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt


def main(picture, *folders):
    runs = [json.loads((pathlib.Path(f) / "metrics.json").read_text("utf-8")) for f in folders]
    print("| run | held-out loss | perplexity | unigram loss | steps | CPU minutes |")
    print("| --- | --- | --- | --- | --- | --- |")
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for run in runs:
        history, flags = run["history"], run["flags"]
        steps = len(history["loss"]) * flags["steps_per_epoch"]
        losses = f"{run['held_out_loss']:.3f} | {history['val_perplexity'][-1]:.1f} | "
        losses += f"{run['unigram_loss']:.3f} | {steps:,} | {history['cpu_minutes'][-1]:.1f}"
        print(f"| {name(flags)} | {losses} |")
        axes.plot(history["cpu_minutes"], history["val_loss"], marker="o", label=name(flags))
    axes.axhline(runs[0]["unigram_loss"], color="grey", linestyle="--", label="unigrams")
    axes.set(xlabel="CPU minutes", ylabel="held-out loss of a target (nats)", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(picture, dpi=110)


def name(flags):
    memory = f"memory {flags['memory_length']}" if flags["memory_length"] else "no memory"
    return f"{flags['objective']}, {memory}"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

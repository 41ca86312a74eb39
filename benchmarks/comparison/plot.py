"""The picture: ratios to the reference, grouped by workload."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.patches import Patch

from benchmarks.comparison.summary import dtype_of

# (ours, bfloat16): colour and label
COLOURS = {
    (True, False): ("#c2410c", "keras_xlnet"),
    (True, True): ("#fb923c", "keras_xlnet, bfloat16"),
    (False, False): ("#475569", "others"),
    (False, True): ("#94a3b8", "others, bfloat16"),
}
LEFT_OUT, COLUMNS = ("GEMM",), 3


def draw(results, path):
    """Writes a PNG with one panel a workload: a bar a subject, the reference as a line at 1."""
    workloads = [
        w
        for w in results["workloads"]
        if w["name"] not in LEFT_OUT and bars(w, results["reference"])
    ]
    if not workloads:
        return
    rows = [workloads[i : i + COLUMNS] for i in range(0, len(workloads), COLUMNS)]
    most = [max(len(bars(w, results["reference"])) for w in row) for row in rows]
    columns = len(rows[0])
    figure, axes = plt.subplots(
        len(rows),
        columns,
        figsize=(6 * columns, 0.26 * sum(most) + 0.8 * len(rows) + 1.2),
        squeeze=False,
        layout="constrained",
        height_ratios=[count + 1 for count in most],
    )
    for axis in axes.flat[len(workloads) :]:
        axis.set_axis_off()
    for row, row_axes, count in zip(rows, axes, most, strict=True):
        for axis, workload in zip(row_axes, row, strict=False):
            _panel(axis, workload, results, count)
    figure.legend(
        handles=[Patch(color=colour, label=label) for colour, label in COLOURS.values()],
        loc="outside lower center",
        ncols=len(COLOURS),
        frameon=False,
    )
    figure.suptitle(
        f"Time relative to {results['reference']} (eager, float32): shorter is faster\n"
        f"{results['machine']['cpu']}, {results['machine']['cores']} cores, {results['date'][:10]}"
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _panel(axis, workload, results, most):
    names, ratios = zip(*bars(workload, results["reference"]), strict=True)
    axis.axvline(1.0, color="black", linewidth=1, zorder=0)
    drawn = axis.barh(range(len(names)), ratios, color=[_colour(name) for name in names])
    background = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    axis.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8, bbox=background)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.set_ylim(most - 0.5, -0.5)  # Bars of one thickness, the fastest on top.
    axis.set_xlim(0, 1.15 * max(1.0, *ratios))
    axis.set_title(f"{workload['name']}: {workload['title']}", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def _colour(name):
    return COLOURS[name.startswith("keras_xlnet"), dtype_of(name) == "bfloat16"][0]


def bars(workload, reference):
    """`(subject, ratio)` of all but the reference, the fastest first."""
    rows = [row for group in workload["groups"] for row in group]
    measured = [(row["subject"], row["ratio"]) for row in rows if row.get("ratio") is not None]
    return sorted((bar for bar in measured if bar[0] != reference), key=lambda bar: bar[1])

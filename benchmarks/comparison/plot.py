"""The picture: ratios to the reference, grouped by workload."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

OURS, THEIRS, LEFT_OUT = "#c2410c", "#64748b", ("GEMM",)


def draw(results, path):
    """Writes a PNG with one panel a workload: a bar a subject, the reference as a line at 1."""
    workloads = [
        w
        for w in results["workloads"]
        if w["name"] not in LEFT_OUT and bars(w, results["reference"])
    ]
    if not workloads:
        return
    columns = min(3, len(workloads))
    rows = -(-len(workloads) // columns)
    most = max(len(bars(workload, results["reference"])) for workload in workloads)
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(6 * columns, (0.8 + 0.26 * most) * rows + 0.8),
        squeeze=False,
        layout="constrained",
    )
    for axis, workload in zip(axes.flat, workloads, strict=False):
        _panel(axis, workload, results)
    for axis in axes.flat[len(workloads) :]:
        axis.set_axis_off()
    figure.suptitle(
        f"Time relative to {results['reference']} (eager, float32): shorter is faster\n"
        f"{results['machine']['cpu']}, {results['machine']['cores']} cores, {results['date'][:10]}"
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _panel(axis, workload, results):
    names, ratios = zip(*bars(workload, results["reference"]), strict=True)
    colours = [OURS if name.startswith("keras_xlnet") else THEIRS for name in names]
    drawn = axis.barh(range(len(names)), ratios, color=colours)
    axis.bar_label(drawn, fmt="%.2f", padding=3, fontsize=8)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.invert_yaxis()
    axis.axvline(1.0, color="black", linewidth=1)
    axis.set_xlim(0, 1.15 * max(1.0, *ratios))
    axis.set_title(f"{workload['name']}: {workload['title']}", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)


def bars(workload, reference):
    """`(subject, ratio)` of all but the reference, the fastest first."""
    rows = [row for group in workload["groups"] for row in group]
    measured = [(row["subject"], row["ratio"]) for row in rows if row.get("ratio") is not None]
    return sorted((bar for bar in measured if bar[0] != reference), key=lambda bar: bar[1])

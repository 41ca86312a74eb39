"""The table and the picture of results.py."""

import collections

import matplotlib
import numpy as np
from results_tasks import TASKS

import keras_xlnet

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

BASELINE = "tfidf"
NAMES = {BASELINE: "TF-IDF + linear model, tuned"}
COLORS = {BASELINE: "tab:gray", "xlnet_small_en": "tab:orange", "xlnet_mini_en": "tab:blue"}
# The data that the methods learned from before the first training example.
KNOWN = {
    BASELINE: "nothing",
    "xlnet_small_en": "{words} of 272 MB of English, pretrained here",
    "xlnet_mini_en": (
        "all-MiniLM-L6-v2, converted: distilled from a BERT (Wikipedia, books), then trained on a "
        "billion pairs of sentences"
    ),
}
PUBLISHED = ("BERT-Mini", "BERT-Small")
KNOWN_OF_PUBLISHED = "Wikipedia and books, 3.3 billion words"


class Scores:
    """The metrics of runs by task, metric, method and size.

    Args:
        rows: Rows of `FinishedRuns`.
    """

    def __init__(self, rows):
        self.values = collections.defaultdict(dict)
        for row in rows:
            run = row["run"]
            for metric, value in row["metrics"].items():
                self.values[run["task"], metric, run["method"], run["size"]][run["seed"]] = value
        self.tasks = [task for task in TASKS if any(key[0] == task for key in self.values)]
        # The baseline first, then the presets in their order.
        found = dict.fromkeys(key[2] for key in self.values)
        self.methods = sorted(found, key=lambda method: method != BASELINE)

    def sizes(self, task):
        """Returns the numbers of examples of a task, `"all"` last."""
        sizes = {key[3] for key in self.values if key[0] == task}
        return sorted(sizes, key=lambda size: (size == "all", size if size != "all" else 0))

    def largest_common_size(self, task, metric):
        """Returns the largest number of examples that all methods, or most of them, ran."""

        def count(size):
            return sum(bool(self.of(task, metric, method, size)) for method in self.methods)

        return max(reversed(self.sizes(task)), key=count)

    def of(self, task, metric, method, size):
        """Returns mean, standard deviation and count over the seeds, or `None`."""
        return _summary(list(self.values.get((task, metric, method, size), {}).values()))

    def difference(self, task, metric, size, method, other):
        """Returns the same for the differences of two methods with the same seed, or `None`."""
        a, b = (self.values.get((task, metric, m, size), {}) for m in (method, other))
        return _summary([a[seed] - b[seed] for seed in sorted(a) if seed in b])


def _summary(values):
    if not values:
        return None
    # The deviation of the runs, not of their mean.
    return float(np.mean(values)), float(np.std(values, ddof=1)) if values[1:] else 0.0, len(values)


# === Table ===


def format_report(rows, split="test"):
    """Returns the results as Markdown: a table for each number of training examples.

    Args:
        rows: Rows of `FinishedRuns`.
        split: `"test"` or `"validation"`, the split of the rows.
    """
    scores = Scores(rows)
    lines = [
        "In percent: mean ± standard deviation over the seeds (of SMS spam: folds), without a "
        "deviation where there is one; differences of pairs of runs with the same seed, subset and "
        f"test examples. Examples: {split}."
    ]
    sizes = [s for task in scores.tasks for s in scores.sizes(task)]
    for size in sorted(set(sizes), key=lambda s: (s != "all", 0 if s == "all" else -s)):
        title = "All" if size == "all" else f"{size:,}"
        lines += ["", f"### {title} training examples", "", *_table(scores, size)]
    return "\n".join(lines) + "\n"


def _table(scores, size):
    methods = [m for m in scores.methods if any(key[2:] == (m, size) for key in scores.values)]
    published = PUBLISHED if size == "all" else ()
    # The last preset next to the baseline.
    compared = methods[-1] if len(methods) > 1 and methods[0] == BASELINE else None
    difference = [f"{compared} − TF-IDF"] if compared else []
    header = ["task", "metric", *(NAMES.get(method, method) for method in methods)]
    lines = [[*header, *difference, *published]]
    lines.append(["---"] * len(lines[0]))
    if published:
        known = [*map(known_before, methods), *[""] * len(difference)]
        lines.append(["known before", "", *known, *[KNOWN_OF_PUBLISHED] * len(published)])
    for task in scores.tasks:
        for metric in TASKS[task].metrics if size in scores.sizes(task) else ():
            cells = [_cell(scores.of(task, metric, method, size)) for method in methods]
            if compared:
                cells.append(_cell(scores.difference(task, metric, size, compared, BASELINE), "+"))
            if published:
                cells += map(str, TASKS[task].published.get(metric, [""] * len(published)))
            lines.append([TASKS[task].title, metric, *cells])
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def _cell(summary, sign=""):
    if summary is None:
        return ""
    mean, deviation, count = summary
    return f"{mean:{sign}.1f}" + (f" ± {deviation:.1f}" if count > 1 else "")


def known_before(method):
    """Returns the data that a method learned from before a task, for the table."""
    if method not in KNOWN:
        return "not stated"
    words = keras_xlnet.presets().get(method, {"figures": {}})["figures"].get("words read", 0)
    return KNOWN[method].format(words=f"{words / 1e6:.0f} million words")


# === Picture ===


def draw(rows, path):
    """Draws a curve for each task with several numbers of examples, and bars for all tasks.

    Args:
        rows: Rows of `FinishedRuns`.
        path: Path of the picture.
    """
    scores = Scores(rows)
    curves = [task for task in scores.tasks if len(scores.sizes(task)) > 2]
    rows_of_axes = [curves, ["bars"] * len(curves)] if curves else [["bars"]]
    size = 9, 3.4 * len(rows_of_axes) + 0.4
    figure, axes = plt.subplot_mosaic(rows_of_axes, figsize=size, layout="constrained")
    for task in curves:
        _draw_curves(axes[task], scores, task)
    _draw_bars(axes["bars"], scores)
    handles, labels = axes["bars"].get_legend_handles_labels()
    handles = dict(zip(labels, handles, strict=True))  # One per method.
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=len(handles))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_curves(axis, scores, task):
    metric, sizes = TASKS[task].metrics[0], scores.sizes(task)
    for method in scores.methods:
        found = [(i, scores.of(task, metric, method, size)) for i, size in enumerate(sizes)]
        points = [(i, *summary[:2]) for i, summary in found if summary]
        x, mean, deviation = np.reshape(points, (-1, 3)).T
        axis.errorbar(x, mean, deviation, marker="o", markersize=4, capsize=2, **_style(method))
    axis.set_xticks(range(len(sizes)), [_size(size) for size in sizes])
    axis.set(title=TASKS[task].title, xlabel="training examples", ylabel=metric)
    axis.grid(alpha=0.3)


def _draw_bars(axis, scores):
    width, names = 0.8 / len(scores.methods), []
    for i, task in enumerate(scores.tasks):
        metric = TASKS[task].metrics[0]
        size = scores.largest_common_size(task, metric)
        names.append(f"{TASKS[task].title.split()[0]}\n{metric}\n({_size(size)})")
        for number, method in enumerate(scores.methods):
            if summary := scores.of(task, metric, method, size):
                x = i + (number - (len(scores.methods) - 1) / 2) * width
                style = {**_style(method), "yerr": summary[1], "capsize": 2, "zorder": 2}
                axis.bar(x, summary[0], width, **style)
    axis.set_xticks(range(len(scores.tasks)), names, fontsize=8)
    axis.set(title="The most training examples that all were trained on", ylabel="percent")
    axis.grid(axis="y", alpha=0.3)


def _size(size):
    return size if size == "all" else f"{size:,}"


def _style(method):
    return {"color": COLORS.get(method, "tab:green"), "label": NAMES.get(method, method)}

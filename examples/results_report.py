"""The table and the picture of results.py."""

import collections

import matplotlib
import numpy as np
from results_tasks import TASKS

import keras_xlnet

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

NAMES = {
    "tfidf": "TF-IDF + linear model, tuned",
    "from_scratch": "from scratch",
    "fine_tuned": "fine-tuned preset",
}
COLORS = {"tfidf": "tab:gray", "from_scratch": "tab:orange", "fine_tuned": "tab:blue"}
PUBLISHED = ("BERT-Tiny", "BERT-Mini")
WORDS_OF_BERT = "3.3 billion"


class Scores:
    """The metrics of runs, by what they are compared by.

    Args:
        rows: Rows of `results.Results`.
    """

    def __init__(self, rows):
        self.values = collections.defaultdict(dict)
        for row in rows:
            run = row["run"]
            for metric, value in row["metrics"].items():
                self.values[run["task"], metric, run["method"], run["size"]][run["seed"]] = value
        self.tasks = [task for task in TASKS if any(key[0] == task for key in self.values)]
        self.methods = [name for name in NAMES if any(key[2] == name for key in self.values)]

    def sizes(self, task):
        """Returns the numbers of examples of a task, `"all"` last."""
        sizes = {key[3] for key in self.values if key[0] == task}
        return sorted(sizes, key=lambda size: (size == "all", size if size != "all" else 0))

    def of(self, task, metric, method, size):
        """Returns mean, standard deviation and count over the seeds, or `None`."""
        return _summary(list(self.values.get((task, metric, method, size), {}).values()))

    def difference(self, task, metric, size, method, other):
        """Returns the same of the differences of two methods, pair by pair, or `None`."""
        a, b = (self.values.get((task, metric, m, size), {}) for m in (method, other))
        return _summary([a[seed] - b[seed] for seed in sorted(a) if seed in b])


def _summary(values):
    if not values:
        return None
    # The deviation of the runs, not that of their mean.
    return float(np.mean(values)), float(np.std(values, ddof=1)) if values[1:] else 0.0, len(values)


# === Table ===


def format_report(rows, preset, split="test"):
    """Returns the results as Markdown: a table of each number of training examples.

    Args:
        rows: Rows of `results.Results`.
        preset: Name of the preset.
        split: `"test"` or `"validation"`, what the rows are of.
    """
    scores = Scores(rows)
    seeds = len({row["run"]["seed"] for row in rows})
    lines = [
        f"In percent: mean ± standard deviation over {seeds} seeds (of SMS spam: folds); "
        "differences of pairs of runs with the same seed, subset and test examples. "
        f"Preset: {preset}. Examples: {split}."
    ]
    sizes = [s for task in scores.tasks for s in scores.sizes(task)]
    for size in sorted(set(sizes), key=lambda s: (s != "all", 0 if s == "all" else -s)):
        title = "All" if size == "all" else f"{size:,}"
        lines += ["", f"### {title} training examples", ""]
        lines += _table(scores, size, preset if size == "all" else None)
    return "\n".join(lines) + "\n"


def _table(scores, size, preset):
    others = [m for m in scores.methods if m != "fine_tuned"]
    compared = others if "fine_tuned" in scores.methods else []
    header = ["task", "metric", *(NAMES[method] for method in scores.methods)]
    header += [f"fine-tuned − {_short(other)}" for other in compared]
    header += PUBLISHED if preset else ()
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join(["---"] * len(header)) + " |"]
    if preset:
        read = {"fine_tuned": words_read(preset)}
        cells = ["words read before", "", *(read.get(m, "0") for m in scores.methods)]
        cells += ["" for _ in compared] + [WORDS_OF_BERT] * len(PUBLISHED)
        lines.append("| " + " | ".join(cells) + " |")
    for task in scores.tasks:
        if size not in scores.sizes(task):
            continue
        for metric in TASKS[task].metrics:
            cells = [TASKS[task].title, metric]
            cells += [_cell(scores.of(task, metric, m, size)) for m in scores.methods]
            cells += [
                _cell(scores.difference(task, metric, size, "fine_tuned", other), "+")
                for other in compared
            ]
            if preset:
                cells += TASKS[task].published.get(metric, ("", ""))
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(summary, sign=""):
    if summary is None:
        return ""
    mean, deviation, count = summary
    return f"{mean:{sign}.1f}" + (f" ± {deviation:.1f}" if count > 1 else "")


def _short(method):
    return {"tfidf": "TF-IDF", "from_scratch": "scratch"}[method]


def words_read(preset):
    """Returns how many words a shipped preset was pretrained on, for the table."""
    words = keras_xlnet.presets().get(preset, {"figures": {}})["figures"].get("words read")
    return f"{words / 1e6:,.0f} million" if words else "not stated"


def format_time(seconds):
    """Returns a duration in words. `None` is unknown."""
    if seconds is None:
        return "unknown time"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


# === Picture ===


def draw(rows, path):
    """Draws a curve for each task with several numbers of examples, and bars for all tasks.

    Args:
        rows: Rows of `results.Results`.
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
    if len(scores.methods) > 1:
        handles, labels = axes["bars"].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_curves(axis, scores, task):
    metric, sizes = TASKS[task].metrics[0], scores.sizes(task)
    for method in scores.methods:
        found = [(i, scores.of(task, metric, method, size)) for i, size in enumerate(sizes)]
        x, summaries = zip(*[(i, summary) for i, summary in found if summary], strict=True)
        mean, deviation = np.array(summaries).T[:2]
        axis.plot(x, mean, "o-", color=COLORS[method], label=NAMES[method], markersize=4)
        axis.fill_between(x, mean - deviation, mean + deviation, color=COLORS[method], alpha=0.15)
    axis.set_xticks(range(len(sizes)), [f"{s:,}" if s != "all" else s for s in sizes])
    axis.set(title=TASKS[task].title, xlabel="training examples", ylabel=metric)
    axis.grid(alpha=0.3)


def _draw_bars(axis, scores):
    width = 0.8 / len(scores.methods)
    for number, method in enumerate(scores.methods):
        for i, task in enumerate(scores.tasks):
            size = scores.sizes(task)[-1]
            summary = scores.of(task, TASKS[task].metrics[0], method, size)
            if summary:
                axis.bar(
                    i + (number - (len(scores.methods) - 1) / 2) * width,
                    summary[0],
                    width,
                    yerr=summary[1],
                    color=COLORS[method],
                    label=NAMES[method] if i == 0 else None,
                    capsize=2,
                    zorder=2,
                )
    names = [f"{TASKS[task].title.split()[0]}\n{TASKS[task].metrics[0]}" for task in scores.tasks]
    axis.set_xticks(range(len(scores.tasks)), names, fontsize=8)
    axis.set(title="Most training examples", ylabel="percent")
    axis.grid(axis="y", alpha=0.3)

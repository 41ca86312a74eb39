"""Metrics, baselines, tables and plots for spam_classifier.py."""

import json

import matplotlib
import numpy as np
import tfidf
from sklearn import metrics
from sklearn.dummy import DummyClassifier

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

METRICS = ("accuracy", "precision", "recall", "f1", "mcc")


def compute_metrics(labels, predicted):
    """Returns the metrics in `METRICS` of predictions of 0 and 1, as a dict of floats."""
    return {
        "accuracy": float(metrics.accuracy_score(labels, predicted)),
        "precision": float(metrics.precision_score(labels, predicted, zero_division=0)),
        "recall": float(metrics.recall_score(labels, predicted, zero_division=0)),
        "f1": float(metrics.f1_score(labels, predicted, zero_division=0)),
        "mcc": float(metrics.matthews_corrcoef(labels, predicted)),
    }


def fit_baselines(texts, labels):
    """Fits the baselines that a model is compared with.

    They are the majority class, and TF-IDF with logistic regression, whose features,
    regularization and class weights are chosen by cross-validation for the F1.

    Args:
        texts: Array of str.
        labels: Array of 0 and 1.

    Returns:
        A dict of fitted scikit-learn classifiers by name.
    """
    return {
        "majority": DummyClassifier(strategy="most_frequent").fit(texts, labels),
        "tfidf_tuned": tfidf.fit_tuned(texts, labels, metrics.f1_score),
    }


def write_report(folder, labels, scores, history, class_names):
    """Prints the metrics of the test messages and writes `metrics.json` and three plots.

    Args:
        folder: `pathlib.Path` to write to.
        labels: Array of 0 and 1, the labels of the test messages.
        scores: Dict of arrays, the probability of class 1 by every scorer; the first is the model.
        history: Dict of lists, the history of the training.
        class_names: List of two strings.
    """
    model, *baselines = scores
    predicted = scores[model] >= 0.5
    rows = {model: compute_metrics(labels, predicted)}
    rows |= {name: compute_metrics(labels, scores[name] > 0.5) for name in baselines}
    print(f"\nOn {len(labels)} test messages that were not used in training:\n")
    print(format_table(rows))
    print(f"\n{format_confusion(labels, predicted, class_names)}")
    report = {
        "model": rows[model],
        "baselines": {name: rows[name] for name in baselines},
        "history": history,
    }
    _write_json(folder / "metrics.json", report)
    plot_training_curves(history, folder / "training_curves.png")
    plot_confusion(labels, predicted, class_names, folder / "confusion_matrix.png")
    shown = {name: values for name, values in scores.items() if name != "majority"}
    plot_precision_recall(labels, shown, folder / "precision_recall.png")


def write_cross_validation(folder, folds):
    """Prints mean and standard deviation over folds and writes `cross_validation.json`.

    Args:
        folder: `pathlib.Path` to write to.
        folds: List, for each fold a dict of `compute_metrics` by name.
    """
    results = {name: [fold[name] for fold in folds] for name in folds[0]}
    summary = {}
    for name, found in results.items():
        values = {metric: [fold[metric] for fold in found] for metric in METRICS}
        summary[name] = {m: (float(np.mean(v)), float(np.std(v))) for m, v in values.items()}
    print(f"\nMean and standard deviation over {len(folds)} folds:\n")
    print(format_table(summary))
    _write_json(folder / "cross_validation.json", {"summary": summary, "folds": results})


def _write_json(path, content):
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def format_table(rows):
    """Returns a text table of metrics.

    Args:
        rows: Dict by name of dicts of the metrics in `METRICS`: floats, or pairs of mean and
            standard deviation.
    """
    width = max(map(len, rows)) + 2
    lines = [" " * width + "".join(f"{name:>16}" for name in METRICS)]
    for name, values in rows.items():
        cells = []
        for metric in METRICS:
            value = values[metric]
            if isinstance(value, tuple):
                cells.append(f"{value[0]:.4f} ± {value[1]:.4f}")
            else:
                cells.append(f"{value:.4f}")
        lines.append(f"{name:<{width}}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def format_confusion(labels, predicted, class_names):
    """Returns the confusion matrix as text: a row for each label, a column for each prediction."""
    matrix = metrics.confusion_matrix(labels, predicted, labels=[0, 1])
    width = max(10, *(len(name) + 2 for name in class_names))
    lines = [
        " " * (width + 5) + "".join(f"{name:>{width}}" for name in class_names) + "  (predicted)"
    ]
    lines += [
        f"{'true ' + name:<{width + 5}}" + "".join(f"{count:>{width}}" for count in row)
        for name, row in zip(class_names, matrix, strict=True)
    ]
    return "\n".join(lines)


def plot_training_curves(history, path):
    """Plots loss and accuracy of each epoch."""
    epochs = np.arange(1, len(history["loss"]) + 1)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, metric in zip(axes, ("loss", "accuracy"), strict=True):
        axis.plot(epochs, history[metric], "o-", markersize=4)
        axis.set(title=f"Training {metric}", xlabel="epoch")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plot_confusion(labels, predicted, class_names, path):
    """Plots the confusion matrix of the test messages."""
    figure, axis = plt.subplots(figsize=(4.4, 3.8), layout="constrained")
    metrics.ConfusionMatrixDisplay.from_predictions(
        labels,
        predicted,
        display_labels=class_names,
        cmap="Blues",
        colorbar=False,
        ax=axis,
        text_kw={"fontsize": 14},
    )
    axis.set(title="Test messages", xlabel="predicted", ylabel="true")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plot_precision_recall(labels, scores, path):
    """Plots precision against recall of all `scores`, and the first at even odds."""
    figure, axis = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
    for name, values in scores.items():
        precision, recall, _ = metrics.precision_recall_curve(labels, values)
        area = metrics.average_precision_score(labels, values)
        axis.step(recall, precision, where="post", label=f"{name} (average {area:.3f})")
    predicted = next(iter(scores.values())) >= 0.5
    axis.plot(
        metrics.recall_score(labels, predicted, zero_division=0),
        metrics.precision_score(labels, predicted, zero_division=0),
        "ko",
        label="at even odds",
    )
    share = float(np.mean(labels))
    axis.axhline(share, color="grey", linestyle=":", label=f"share of spam {share:.2f}")
    axis.set(title="Test messages", xlabel="recall", ylabel="precision", ylim=(0, 1.03))
    axis.grid(alpha=0.3)
    axis.legend(loc="lower left")
    figure.savefig(path, dpi=130)
    plt.close(figure)

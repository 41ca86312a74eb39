"""Metrics, baselines, tables and pictures for spam_classifier.py."""

import matplotlib
import numpy as np
from sklearn import metrics
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

matplotlib.use("Agg")  # No display is needed, or used.
import matplotlib.pyplot as plt

METRICS = ("accuracy", "precision", "recall", "f1", "mcc")


def compute_metrics(labels, predicted):
    """The five metrics of `METRICS` for labels and predictions of 0 and 1, as floats."""
    return {
        "accuracy": float(metrics.accuracy_score(labels, predicted)),
        "precision": float(metrics.precision_score(labels, predicted, zero_division=0)),
        "recall": float(metrics.recall_score(labels, predicted, zero_division=0)),
        "f1": float(metrics.f1_score(labels, predicted, zero_division=0)),
        "mcc": float(metrics.matthews_corrcoef(labels, predicted)),
    }


def best_threshold(labels, scores, tolerance=0.01):
    """The threshold nearest to even odds whose F1 is within `tolerance` of the best.

    Not the very best one: on a few hundred messages that is a matter of luck.
    """
    steps = np.unique(scores)
    candidates = np.concatenate([(steps[1:] + steps[:-1]) / 2, [0.5]])
    f1 = np.array([metrics.f1_score(labels, scores >= c, zero_division=0) for c in candidates])
    good = candidates[f1 >= f1.max() - tolerance]
    return float(good[np.argmin(np.abs(good - 0.5))])


def fit_baselines(texts, labels):
    """What a model has to beat.

    The majority class; TF-IDF of words with logistic regression as scikit-learn has them, classes
    balanced; and the same tuned: pairs of words too, regularization and class weights chosen by
    cross-validation on the texts that it is given.

    Returns:
        A dict of fitted scikit-learn classifiers by name.
    """
    tuned = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        LogisticRegression(max_iter=2000),
    )
    grid = {
        "logisticregression__C": [1.0, 10.0, 100.0],
        "logisticregression__class_weight": [None, "balanced"],
    }
    baselines = {
        "majority": DummyClassifier(strategy="most_frequent"),
        "tfidf_logistic_regression": make_pipeline(
            TfidfVectorizer(), LogisticRegression(max_iter=2000, class_weight="balanced")
        ),
        "tfidf_tuned": GridSearchCV(tuned, grid, scoring="f1", cv=3),
    }
    return {name: baseline.fit(texts, labels) for name, baseline in baselines.items()}


def format_table(rows):
    """A text table of metrics; `rows` maps a name to a dict of METRICS, or of (mean, deviation)."""
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
    """The confusion matrix as text, rows true and columns predicted."""
    matrix = metrics.confusion_matrix(labels, predicted, labels=[0, 1])
    width = max(10, *(len(name) + 2 for name in class_names))
    lines = [" " * (width + 5) + "".join(f"{name:>{width}}" for name in class_names) + "  (said)"]
    lines += [
        f"{'true ' + name:<{width + 5}}" + "".join(f"{count:>{width}}" for count in row)
        for name, row in zip(class_names, matrix, strict=True)
    ]
    return "\n".join(lines)


def plot_training_curves(history, path):
    """Loss and average precision of each epoch, training and validation."""
    epochs = np.arange(1, len(history["loss"]) + 1)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, metric, title in (
        (axes[0], "loss", "Loss"),
        (axes[1], "pr_auc", "Area under precision-recall curve"),
    ):
        for prefix, label, style in (("", "training", "o-"), ("val_", "validation", "s--")):
            axis.plot(epochs, history[prefix + metric], style, label=label, markersize=4)
        axis.set(title=title, xlabel="epoch")
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(alpha=0.3)
    kept = int(np.argmin(history["val_loss"])) + 1
    for axis in axes:
        axis.axvline(kept, color="grey", linewidth=1, linestyle=":", label="kept")
        axis.legend()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plot_confusion(labels, predicted, class_names, path):
    """The confusion matrix of the test messages."""
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


def plot_precision_recall(labels, scores, threshold, path):
    """Precision against recall of every scorer in `scores`; the first has the threshold."""
    figure, axis = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
    for name, values in scores.items():
        precision, recall, _ = metrics.precision_recall_curve(labels, values)
        area = metrics.average_precision_score(labels, values)
        axis.step(recall, precision, where="post", label=f"{name} (average {area:.3f})")
    predicted = next(iter(scores.values())) >= threshold
    axis.plot(
        metrics.recall_score(labels, predicted, zero_division=0),
        metrics.precision_score(labels, predicted, zero_division=0),
        "ko",
        label=f"threshold {threshold:.3f}",
    )
    share = float(np.mean(labels))
    axis.axhline(share, color="grey", linestyle=":", label=f"share of spam {share:.2f}")
    axis.set(title="Test messages", xlabel="recall", ylabel="precision", ylim=(0, 1.03))
    axis.grid(alpha=0.3)
    axis.legend(loc="lower left")
    figure.savefig(path, dpi=130)
    plt.close(figure)

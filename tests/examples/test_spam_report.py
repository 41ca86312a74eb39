import sys

import numpy as np
import pytest

from tests.examples import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
import spam_report


def test_metrics_by_hand():
    labels = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    predicted = np.array([1, 1, 0, 1, 0, 0, 0, 0])
    found = spam_report.compute_metrics(labels, predicted)
    mcc = (2 * 4 - 1 * 1) / np.sqrt(3 * 3 * 5 * 5)
    expected = {"accuracy": 6 / 8, "precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3, "mcc": mcc}
    assert found == pytest.approx(expected)
    nothing = spam_report.compute_metrics(labels, np.zeros(8, int))
    assert nothing["f1"] == nothing["precision"] == nothing["mcc"] == 0


def test_baselines_and_tables():
    texts = np.array(["win cash now", "see you at six"] * 10, dtype=object)
    labels = np.array([1, 0] * 10)
    baselines = spam_report.fit_baselines(texts, labels)
    assert (baselines["tfidf_tuned"].predict(texts) == labels).all()
    assert baselines["tfidf_tuned"].predict_proba(texts).shape == (20, 2)
    assert not baselines["majority"].predict(texts[:1]).any()
    rows = {"a": 0.5, "b": (0.25, 0.1)}
    rows = {name: dict.fromkeys(spam_report.METRICS, value) for name, value in rows.items()}
    table = spam_report.format_table(rows)
    assert "0.5000" in table and "0.2500 ± 0.1000" in table and "mcc" in table
    matrix = spam_report.format_confusion([0, 0, 1], [0, 1, 1], ["ham", "spam"])
    assert [line.split()[-2:] for line in matrix.splitlines()[1:]] == [["1", "1"], ["0", "1"]]


def test_pictures(tmp_path):
    labels = np.array([0, 1, 0, 1, 1])
    scores = np.array([0.1, 0.9, 0.6, 0.7, 0.2])
    history = {"loss": [0.9, 0.5, 0.4], "accuracy": [0.5, 0.7, 0.9]}
    spam_report.plot_training_curves(history, tmp_path / "a.png")
    spam_report.plot_confusion(labels, scores > 0.5, ["ham", "spam"], tmp_path / "b.png")
    scores = {"x": scores, "y": 1 - scores}
    spam_report.plot_precision_recall(labels, scores, tmp_path / "c.png")
    for name in "abc":
        assert (tmp_path / f"{name}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

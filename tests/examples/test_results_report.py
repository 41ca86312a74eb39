import sys

import numpy as np
import pytest

from tests.examples import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
import results_report
from results_report import Scores, format_report, format_time


def row(task, method, size, seed, **metrics):
    run = {"task": task, "method": method, "size": size, "seed": seed, "split": "test"}
    return {"run": run, "metrics": metrics, "seconds": 1.0}


ROWS = [
    *(row("sst2", "tfidf", "all", s, accuracy=a) for s, a in enumerate((70.0, 72.0, 77.0))),
    *(row("sst2", "fine_tuned", "all", s, accuracy=a) for s, a in enumerate((75.0, 79.0))),
    *(row("sst2", "tfidf", size, 0, accuracy=60.0) for size in (1000, 50)),
    row("mrpc", "tfidf", "all", 0, F1=80.0, accuracy=70.0),
    row("mrpc", "fine_tuned", "all", 0, F1=81.5, accuracy=69.0),
]


def test_mean_deviation_and_pairs():
    scores = Scores(ROWS)
    mean, deviation, count = scores.of("sst2", "accuracy", "tfidf", "all")
    assert (mean, count) == (73.0, 3) and deviation == pytest.approx(np.sqrt(13))
    # Seed 2 has no partner: 5 and 7 are the differences.
    found = scores.difference("sst2", "accuracy", "all", "fine_tuned", "tfidf")
    assert found == pytest.approx((6.0, np.sqrt(2), 2))
    assert scores.difference("sst2", "accuracy", 50, "fine_tuned", "tfidf") is None
    assert scores.sizes("sst2") == [50, 1000, "all"]


def test_table():
    lines = format_report(ROWS, "mine").splitlines()
    table = lines[lines.index("### All training examples") + 2 :]
    assert table[0] == (
        "| task | metric | TF-IDF + linear model, tuned | fine-tuned preset | "
        "fine-tuned − TF-IDF | BERT-Tiny | BERT-Mini |"
    )
    assert table[2] == ("| words read before |  | 0 | not stated |  | 3.3 billion | 3.3 billion |")
    assert table[3] == ("| SST-2 | accuracy | 73.0 ± 3.6 | 77.0 ± 2.8 | +6.0 ± 1.4 | 83.2 | 85.9 |")
    assert table[4:6] == [
        "| MRPC | F1 | 80.0 | 81.5 | +1.5 | 81 | 81 |",
        "| MRPC | accuracy | 70.0 | 69.0 | -1.0 |  |  |",
    ]
    headings = [line for line in lines if line.startswith("###")]
    assert headings[1:] == ["### 1,000 training examples", "### 50 training examples"]
    widths = {line.count("|") for line in table[:6]}
    assert len(widths) == 1


def test_words_read_of_a_shipped_preset(monkeypatch):
    shipped = {"mine": {"figures": {"words read": 47_200_000}}, "silent": {"figures": {}}}
    monkeypatch.setattr(results_report.keras_xlnet, "presets", lambda: shipped)
    assert results_report.words_read("mine") == "47 million"
    assert results_report.words_read("silent") == "not stated"
    assert results_report.words_read("other") == "not stated"


def test_times():
    assert format_time(None) == "unknown time"
    assert [format_time(s) for s in (10, 3540, 3700)] == ["0 min", "59 min", "1 h 02 min"]


@pytest.mark.parametrize("rows", [ROWS, ROWS[-1:]], ids=["curves", "bars_alone"])
def test_picture(tmp_path, rows):
    results_report.draw(rows, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

import sys

import numpy as np
import pytest

from tests.examples import RESEARCH

sys.path.append(str(RESEARCH / "tasks"))
import results_report
from results_report import Scores, format_report


def row(task, method, size, seed, **metrics):
    run = {"task": task, "method": method, "size": size, "seed": seed, "split": "test"}
    return {"run": run, "metrics": metrics, "seconds": 1.0}


ROWS = [
    *(row("sst2", "tfidf", "all", s, accuracy=a) for s, a in enumerate((70.0, 72.0, 77.0))),
    *(row("sst2", "mine", "all", s, accuracy=a) for s, a in enumerate((75.0, 79.0))),
    *(row("sst2", "tfidf", size, 0, accuracy=60.0) for size in (1000, 50)),
    row("mrpc", "tfidf", "all", 0, F1=80.0, accuracy=70.0),
    row("mrpc", "mine", "all", 0, F1=81.5, accuracy=69.0),
]


def test_mean_deviation_and_pairs():
    scores = Scores(ROWS)
    mean, deviation, count = scores.of("sst2", "accuracy", "tfidf", "all")
    assert (mean, count) == (73.0, 3) and deviation == pytest.approx(np.sqrt(13))
    # Seed 2 has no partner: 5 and 7 are the differences.
    found = scores.difference("sst2", "accuracy", "all", "mine", "tfidf")
    assert found == pytest.approx((6.0, np.sqrt(2), 2))
    assert scores.difference("sst2", "accuracy", 50, "mine", "tfidf") is None
    assert scores.sizes("sst2") == [50, 1000, "all"]


def test_the_most_examples_that_methods_have_in_common():
    rows = [*ROWS, row("sst2", "mine", 1000, 0, accuracy=60.0)]
    assert Scores(rows).largest_common_size("sst2", "accuracy") == "all"
    rows = [row for row in rows if (row["run"]["method"], row["run"]["size"]) != ("mine", "all")]
    assert Scores(rows).largest_common_size("sst2", "accuracy") == 1000


def test_table():
    lines = format_report(ROWS).splitlines()
    table = lines[lines.index("### All training examples") + 2 :]
    assert table[0] == (
        "| task | metric | TF-IDF + linear model, tuned | mine | mine − TF-IDF | "
        "BERT-Mini | BERT-Small |"
    )
    known = "Wikipedia and books, 3.3 billion words"
    assert table[2] == f"| known before |  | nothing | not stated |  | {known} | {known} |"
    assert table[3] == ("| SST-2 | accuracy | 73.0 ± 3.6 | 77.0 ± 2.8 | +6.0 ± 1.4 | 85.9 | 89.7 |")
    assert table[4:6] == [
        "| MRPC | F1 | 80.0 | 81.5 | +1.5 | 81.1 | 83.4 |",
        "| MRPC | accuracy | 70.0 | 69.0 | -1.0 | 71.8 | 76.2 |",
    ]
    headings = [line for line in lines if line.startswith("###")]
    assert headings[1:] == ["### 1,000 training examples", "### 50 training examples"]
    widths = {line.count("|") for line in table[:6]}
    assert len(widths) == 1


def test_tables_have_the_methods_that_ran():
    lines = format_report(ROWS).splitlines()
    table = lines[lines.index("### 50 training examples") + 2 :]
    assert table[0] == "| task | metric | TF-IDF + linear model, tuned |"


def test_presets_alone_are_not_compared():
    rows = [row for row in ROWS if row["run"]["method"] == "mine"]
    assert "− TF-IDF" not in format_report(rows)


def test_what_presets_know_before():
    assert "21 million words" in results_report.known_before("xlnet_small_en")
    assert "all-MiniLM-L6-v2" in results_report.known_before("xlnet_mini_en")
    assert results_report.known_before("runs/mine") == "not stated"


@pytest.mark.parametrize("rows", [ROWS, ROWS[-1:]], ids=["curves", "bars_alone"])
def test_picture(tmp_path, rows):
    results_report.draw(rows, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"

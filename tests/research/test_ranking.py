"""The ranking of documents as its users run it: a process of its own."""

import functools
import json

import pytest

from tests.examples import assert_one_error
from tests.research import fork_research

run = functools.partial(fork_research, "tasks/ranking")

pytest.importorskip("bm25s")


def short(tiny_preset, output):
    """Flags of a short run."""
    return [
        f"--preset={tiny_preset}", f"--output_dir={output}", "--num_examples=16", "--epochs=1",
        "--sequence_length=24", "--dtype=float32",
    ]  # fmt: skip


@pytest.fixture
def wikiqa(tmp_path):
    """A folder like WikiQA: per part two questions with an answer, and one without."""
    for part in ("train", "test"):
        folder = tmp_path / "wikiqa" / part
        folder.mkdir(parents=True)
        columns = {
            "id.txt": ["1", "1", "2", "2", "2", "3"],
            "a.toks": ["who is ann ?"] * 2 + ["when is it ?"] * 3 + ["where ?"],
            "b.toks": ["ann is here .", "it is a day .", "it is noon .", "no .", "we .", "far ."],
            "sim.txt": ["1", "0", "1", "0", "0", "0"],
        }
        for name, lines in columns.items():
            (folder / name).write_text("\n".join(lines) + "\n")
    return tmp_path / "wikiqa"


@pytest.fixture
def cranfield(tmp_path):
    """A folder like Cranfield, with twelve documents and four queries."""
    folder = tmp_path / "cranfield"
    folder.mkdir()
    words = ["flow", "shear", "plate", "heat", "wing", "jet"]
    documents = [f"{words[i % 6]} and\n{words[i // 2]} number {i} ." for i in range(12)]
    (folder / "cran.all.1400").write_text(
        "".join(f".I {i}\n.T\n{text}\n.W\n{text}\n" for i, text in enumerate(documents, 1))
    )
    (folder / "cran.qry").write_text(
        "".join(f".I {9 * i}\n.W\nwhat is {words[i]} {words[i + 1]} .\n" for i in range(4))
    )
    judged = [(1, 1, 4), (1, 2, 1), (2, 3, 2), (3, 5, 3), (4, 6, 5), (4, 12, 2)]
    (folder / "QRelsCorrectedforTRECeval").write_text(
        "".join(f"{query} 0 {document} {grade}\n" for query, document, grade in judged)
    )
    return folder


def check_report(output, queries):
    report = json.loads((output / "metrics.json").read_text())
    assert report["queries"] == queries
    assert set(report["baselines"]) == {"bm25", "random"}
    for scores in (report["model"], *report["baselines"].values()):
        assert set(scores) == {"map", "mrr", "ndcg@10"}
        assert all(0 <= value <= 1 for value in scores.values())


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_reads_wikiqa(tmp_path, tiny_preset, wikiqa, loss):
    output = tmp_path / "out"
    result = run(*short(tiny_preset, output), f"--data={wikiqa}", f"--loss={loss}")
    assert result.returncode == 0, result.stderr[-3000:]
    # The question without an answer is left out.
    check_report(output, {"train": 2, "test": 2})


def test_reads_cranfield(tmp_path, tiny_preset, cranfield):
    output = tmp_path / "out"
    result = run(*short(tiny_preset, output), f"--data={cranfield}", "--candidates=4")
    assert result.returncode == 0, result.stderr[-3000:]
    check_report(output, {"train": 3, "test": 1})
    assert len((output / "run.trec").read_text().splitlines()) == 4


def test_errors_are_one_line_and_leave_nothing(tmp_path, wikiqa):
    (wikiqa / "test" / "sim.txt").write_text("1\n0\n1\n0\n7\n0\n")
    cases = {
        "--data=nowhere": "--data must be a folder of WikiQA",
        f"--data={wikiqa}": "sim.txt, line 5",
    }
    for flag, message in cases.items():
        output = tmp_path / "out"
        result = run(f"--output_dir={output}", flag)
        assert_one_error(result, message)
        assert not output.exists() or not list(output.iterdir())

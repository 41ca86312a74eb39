"""The table of real tasks: small files like those of the authors, and a tiny preset."""

import json
import shutil
import sys

import numpy as np
import pytest

from tests.examples import EXAMPLES, RESEARCH, assert_one_error
from tests.research import fork_research

sys.path.append(str(RESEARCH / "tasks"))

DATA = EXAMPLES / "data"
FILES = {
    "tasks/wnut17/wnut17train.conll": "wnut17_sample.conll",
    "tasks/wnut17/emerging.test.annotated": "wnut17_sample_test.conll",
    "tasks/race/train.middle.jsonl": "multiple_choice_sample.jsonl",
    "tasks/race/test.middle.jsonl": "multiple_choice_sample_test.jsonl",
    "tasks/imdb/train.jsonl": "authors_sample.jsonl",
    "tasks/imdb/test.jsonl": "authors_sample_test.jsonl",
    "squad/dev-v1.1-articles.json": "squad_sample.json",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with small files of some tasks."""
    folder = tmp_path_factory.mktemp("data")
    for name, source in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DATA / source, folder / name)
    return folder


def run(data, tiny_preset, output, *arguments):
    flags = [f"--data={data}", f"--preset={tiny_preset}", f"--output_dir={output}"]
    return fork_research("tasks/task_table", *flags, "--epochs=1", *arguments)


@pytest.mark.parametrize("name", ["wnut17", "race", "imdb_memory", "squad1"])
def test_a_row_and_how_it_continues(data, tiny_preset, tmp_path, name):
    arguments = ["--num_examples=12", "--runs=2", "--tasks", name]
    result = run(data, tiny_preset, tmp_path, *arguments)
    assert result.returncode == 0, result.stderr[-3000:]
    head, _, row = (tmp_path / "table.md").read_text().splitlines()
    assert head == "| task | metric | examples | preset | from scratch | baseline |"
    _, metric, size, *cells, baseline = row.strip("| ").split(" | ")
    assert size == "12" and all(" ± " in cell for cell in cells) and baseline.endswith(")")
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 5 and metric in json.loads(lines[0])["metrics"]
    # What is finished is not run again.
    again = run(data, tiny_preset, tmp_path, *arguments)
    assert again.returncode == 0 and (tmp_path / "runs.jsonl").read_text().splitlines() == lines


def test_tasks_without_files_are_left_out(data, tiny_preset, tmp_path):
    result = run(data, tiny_preset, tmp_path, "--tasks", "squad2")
    assert result.returncode == 0, result.stderr[-3000:]
    assert "SQuAD 2.0 is left out" in result.stdout


def test_errors_are_one_line(data, tmp_path):
    assert_one_error(run(data, "nowhere", tmp_path, "--tasks", "race", "--runs=1"), "nowhere")


def test_queries_of_wikiqa(tmp_path):
    pytest.importorskip("bm25s")
    from real_tasks import Ranking

    columns = {
        "id.txt": ["1", "1", "2", "2", "2", "3"],
        "a.toks": ["who is ann ?"] * 2 + ["when is it ?"] * 3 + ["where ?"],
        "b.toks": ["ann is here .", "it is a day .", "it is noon .", "no .", "we .", "far ."],
        "sim.txt": ["1", "0", "1", "0", "0", "0"],
    }
    for part in ("train", "test"):
        (tmp_path / part).mkdir()
        for name, lines in columns.items():
            (tmp_path / part / name).write_text("\n".join(lines) + "\n")
    task = Ranking("WikiQA", "train", "test")
    train, test = task.read(tmp_path)
    # The question without an answer is left out.
    assert train["query"] == ["who is ann ?", "when is it ?"]
    assert test["relevance"] == [[1, 0], [1, 0, 0]]
    assert task.score(test, test["bm25"])["MAP"] == 1
    assert task.score(test, [np.array([0.0, 1.0]), np.arange(3)])["MRR"] == (1 / 2 + 1 / 3) / 2
    x, labels = task.examples(train)
    assert labels == [[1, 0], [1, 0, 0]] and x["documents"][0] == ["ann is here .", "it is a day ."]


def test_a_dictionary_of_names():
    from real_tasks import TASKS

    train = {"words": [["Ann", "Lee", "is", "Ann"]], "tags": [["B-p", "I-p", "O", "B-q"]]}
    test = {"words": [["Ann", "Lee", "Ann", "x"]], "tags": [["B-p", "I-p", "B-q", "O"]]}
    found = TASKS["wnut17"].baseline_predictions(train, test)
    assert found == test["tags"] and TASKS["wnut17"].score(test, found) == {"F1": 1.0}

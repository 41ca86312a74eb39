"""The whole command on few examples, and how it continues."""

import sys

import pytest

from tests.examples import RESEARCH
from tests.forks import fork_program

sys.path.append(str(RESEARCH / "tasks"))
import results
from finished_runs import FinishedRuns

# The command, with a recipe of few steps and of texts of one length: each length is compiled.
SHORT = f"""
import sys
sys.path.insert(0, {str(RESEARCH / "tasks")!r})
import results
from absl import app
from results_tasks import Recipe
results.RECIPES["sms"] = Recipe(16, epochs=1, fewest_steps=2)
app.run(results.main)
"""


def new_run(method="tfidf", seed=0, **others):
    arguments = {"task": "sst2", "method": method, "size": 50, "seed": seed, "split": "test"}
    return {**arguments, "settings": "s", **others}


def test_runs_and_continues(tmp_path, tiny_preset):
    output, sizes = f"--output_dir={tmp_path}", "--sizes=20"
    methods = f"--methods=tfidf,{tiny_preset}"
    (tmp_path / "short.py").write_text(SHORT)
    done = fork_program(tmp_path / "short.py", output, sizes, methods, "--seeds=1")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "SST-2 is left out: no --data" in done.stdout
    assert "2 runs, 0 of them finished before" in done.stdout
    assert f"[2/2] sms {tiny_preset}, 20 examples, seed 0: F1 " in done.stdout
    table = (tmp_path / "results.md").read_text()
    assert table in done.stdout and table.count("| SMS spam |") == 2
    assert (tmp_path / "results.png").is_file()
    # One more seed of the cheapest method: what is finished is not run again.
    before = (tmp_path / "results.jsonl").read_text()
    program = RESEARCH / "tasks" / "results.py"
    done = fork_program(program, output, sizes, "--seeds=2", "--methods=tfidf")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "2 runs, 1 of them finished before" in done.stdout
    after = (tmp_path / "results.jsonl").read_text()
    assert after.startswith(before) and after.count("\n") == 3
    # The table has the runs of both commands.
    assert str(tiny_preset) in done.stdout


def test_a_line_that_was_cut_off_is_run_again(tmp_path):
    path = tmp_path / "results.jsonl"
    first, second = new_run(), new_run(seed=1)
    finished = FinishedRuns(path)
    finished.add(first, {"accuracy": 60.0}, 1.0)
    whole = path.read_text()
    finished.add(second, {"accuracy": 61.0}, 1.0)
    path.write_text(path.read_text()[:-9])
    again = FinishedRuns(path)
    assert first in again and second not in again and path.read_text() == whole
    again.add(second, {"accuracy": 62.0}, 1.0)
    assert [row["metrics"]["accuracy"] for row in FinishedRuns(path).rows.values()] == [60, 62]


@pytest.mark.parametrize(
    "change",
    [
        {"task": "rte"}, {"method": "xlnet_mini_en"}, {"seed": 1}, {"size": "all"},
        {"split": "validation"}, {"settings": "another preset or recipe"},
    ],
)  # fmt: skip
def test_what_a_run_is_found_by(tmp_path, change):
    finished = FinishedRuns(tmp_path / "results.jsonl")
    finished.add(new_run(), {"accuracy": 60.0}, 1.0)
    assert new_run() in finished
    assert new_run(**change) not in finished


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--tasks=sst3", "error: --tasks must be some of sms, sst2"),
        ("--sizes=5", 'error: --sizes must be numbers of at least 10, or "all". Received: 5'),
        ("--methods=nowhere", "nowhere"),
    ],
)
def test_errors_are_one_line(tmp_path, flag, message, monkeypatch, capsys):
    if not results.FLAGS.is_parsed():
        results.FLAGS([""])
    saved = results.FLAGS.flag_values_dict()
    try:
        results.FLAGS(["", flag, f"--output_dir={tmp_path}"])
        with pytest.raises(SystemExit) as caught:
            results.main([""])
    finally:
        for name in ("tasks", "methods", "sizes", "output_dir"):
            setattr(results.FLAGS, name, saved[name])
    assert message in str(caught.value.code) and "\n" not in str(caught.value.code)

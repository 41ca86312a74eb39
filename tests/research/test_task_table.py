"""The table of four tasks, without the trainings: with examples that write what real ones do."""

import pathlib
import shutil

import pytest

from tests.examples import RESEARCH
from tests.forks import fork_program

DRIVER = pathlib.Path(__file__).parent / "run_task_table.py"


@pytest.fixture
def data(tmp_path):
    """The path of a folder with the folders of two tasks."""
    for name in ("wnut17", "wikiqa"):
        (tmp_path / "data" / "tasks" / name).mkdir(parents=True)
    return tmp_path / "data"


def run(data, output_dir, *flags):
    """Runs the command; returns its output, and the commands of examples that it ran."""
    result = fork_program(DRIVER, f"--data={data}", f"--output_dir={output_dir}", *flags)
    return result, [line for line in result.stdout.splitlines() if line.startswith("RUN")]


def test_table_of_the_tasks_that_there_are(data, tmp_path):
    result, commands = run(data, tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "table.md").read_text().splitlines() == [
        "| task | metric | examples | preset | from scratch | baseline |",
        "| --- | --- | --- | ---: | ---: | ---: |",
        "| WNUT-17 | f1 | all | 75.0 ± 1.2 | 50.0 ± 1.2 | 25.0 (dictionary) |",
        "| WikiQA | map | all | 75.0 ± 1.2 | 50.0 ± 1.2 | 25.0 (bm25) |",
    ]
    assert "RACE-middle is left out" in result.stdout
    preset, from_scratch = commands[2:]
    assert f"--data={data / 'tasks' / 'wikiqa'}" in preset and "--runs=3" in preset
    assert "--from_scratch" in from_scratch and "--from_scratch" not in preset


def test_what_is_finished_is_not_run_again(data, tmp_path):
    output_dir = tmp_path / "out"
    assert len(run(data, output_dir, "--tasks=wikiqa")[1]) == 2
    assert len(run(data, output_dir, "--tasks=wikiqa")[1]) == 0
    shutil.rmtree(output_dir / "wikiqa_preset")
    assert len(run(data, output_dir, "--tasks=wikiqa")[1]) == 1
    result, commands = run(data, output_dir, "--tasks=wikiqa", "--num_examples=50")
    assert result.returncode == 1 and "is of other flags" in result.stderr and not commands


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--tasks=wnut17"], "error: WNUT-17: the example failed"),
        (["--tasks=glue"], "error: --tasks must be some of wnut17"),
        (["wnut17"], "error: arguments that are no flags: wnut17"),
    ],
)
def test_errors(data, tmp_path, flags, message):
    result, _ = run(data, tmp_path / "fails", *flags)
    assert result.returncode == 1
    assert message in result.stderr and "Traceback" not in result.stderr


def test_the_flags_of_the_examples_exist():
    source = (RESEARCH / "tasks" / "task_table.py").read_text(encoding="utf-8")
    shared = (RESEARCH / "tasks" / "fine_tuning.py").read_text(encoding="utf-8")
    for example, flags in {
        "long_documents": ("long_document", "max_length", "data", "test"),
        "ranking": ("data",),
        "ner": ("data", "test"),
        "multiple_choice": ("data", "test"),
    }.items():
        defined = pathlib.Path(RESEARCH / "tasks" / f"{example}.py").read_text(encoding="utf-8")
        assert f'"{example}"' in source
        assert all(f'"{flag}"' in defined for flag in flags)
    assert all(f'"{flag}"' in shared for flag in ("runs", "from_scratch", "num_examples", "epochs"))

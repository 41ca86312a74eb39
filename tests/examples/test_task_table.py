"""The table of nine tasks, without the trainings: with examples that write what real ones do."""

import pathlib
import shutil

import pytest

from tests.examples import EXAMPLES
from tests.forks import fork_program

DRIVER = pathlib.Path(__file__).parent / "run_task_table.py"


@pytest.fixture
def data(tmp_path):
    """The path of a folder with the folders of two tasks."""
    for name in ("rte", "wikiqa"):
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
        "| RTE | accuracy | all | 76.0 ± 1.0 | 51.0 ± 1.0 | 61.0 ± 1.0 (tfidf) |",
        "| WikiQA | map | all | 75.0 ± 1.2 | 50.0 ± 1.2 | 25.0 (bm25) |",
    ]
    assert "SST-2 is left out" in result.stdout
    sentences, preset, from_scratch = commands
    assert f"--data={data}" in sentences and "--seeds=3" in sentences and "--sizes=all" in sentences
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
        (["--tasks=rte"], "error: RTE: the example failed"),
        (["--tasks=glue"], "error: --tasks must be some of sst2"),
        (["rte"], "error: arguments that are no flags: rte"),
    ],
)
def test_errors(data, tmp_path, flags, message):
    result, _ = run(data, tmp_path / "fails", *flags)
    assert result.returncode == 1
    assert message in result.stderr and "Traceback" not in result.stderr


def test_the_flags_of_the_examples_exist():
    source = (EXAMPLES / "task_table.py").read_text(encoding="utf-8")
    shared = (EXAMPLES / "fine_tuning.py").read_text(encoding="utf-8")
    for example, flags in {
        "results": ("data", "tasks", "sizes", "seeds", "preset", "output_dir"),
        "long_documents": ("long_document", "max_length", "data", "test"),
        "ranking": ("data",),
        "ner": ("data", "test"),
        "multiple_choice": ("data", "test"),
    }.items():
        defined = pathlib.Path(EXAMPLES / f"{example}.py").read_text(encoding="utf-8")
        assert f'"{example}"' in source or f'"{example}.py"' in source
        assert all(f'"{flag}"' in defined for flag in flags)
    assert all(f'"{flag}"' in shared for flag in ("runs", "from_scratch", "num_examples", "epochs"))

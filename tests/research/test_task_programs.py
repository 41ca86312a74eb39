"""The programs of the tasks: they train, test, save and load, and write their metrics."""

import json

import pytest

from tests.examples import EXAMPLES, assert_one_error
from tests.research import fork_research

DATA = EXAMPLES / "data"
SHORT = ["--num_examples=12", "--epochs=1", "--dtype=float32"]
PROGRAMS = {
    "ner": ("wnut17_sample.conll", "wnut17_sample_test.conll", ["--sequence_length=24"]),
    "squad": ("squad_sample.json", "squad_sample_test.json", ["--sequence_length=64"]),
    "multiple_choice": (
        "multiple_choice_sample.jsonl", "multiple_choice_sample_test.jsonl",
        ["--sequence_length=56"],
    ),
    "long_documents": (
        "authors_sample.jsonl", "authors_sample_test.jsonl",
        ["--long_document=memory", "--segment_length=16", "--max_length=32"],
    ),
}  # fmt: skip


def files(name):
    train, test, flags = PROGRAMS[name]
    return [f"--data={DATA / train}", f"--test={DATA / test}", *flags]


@pytest.mark.parametrize(
    "method",
    [
        ["--runs=2"],
        ["--from_scratch"],
        ["--lora_rank=2", "--gradient_checkpointing"],
        ["--freeze_backbone", "--dtype=mixed_bfloat16"],
        ["--unfreeze_gradually", "--layer_decay=0.8"],
    ],
    ids=lambda flags: flags[0],
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_trains_and_loads(name, method, tmp_path, tiny_preset):
    flags = [f"--preset={tiny_preset}", f"--output_dir={tmp_path / 'out'}", *SHORT, *method]
    result = fork_research(f"tasks/{name}", *files(name), *flags)
    assert result.returncode == 0, result.stderr[-3000:]
    # Printed after the saved model was loaded and gave the same results.
    assert "oaded again" in result.stdout
    report = json.loads((tmp_path / "out" / "metrics.json").read_text())
    runs = report["all_runs"]
    runs = runs["memory"] if name == "long_documents" else runs
    assert len(runs["runs"]) == (2 if method == ["--runs=2"] else 1)


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--data=nowhere.conll"], "nowhere.conll"),
        (["--lora_rank=8", "--freeze_backbone"], "use one of --from_scratch"),
        (["--lora_rank=0"], "--lora_rank must be at least 1"),
        (["--preset=nowhere"], "nowhere"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(flags, message, tmp_path):
    output = tmp_path / "out"
    result = fork_research("tasks/ner", *files("ner"), f"--output_dir={output}", *flags)
    assert_one_error(result, message)
    assert not output.exists() or not list(output.iterdir())

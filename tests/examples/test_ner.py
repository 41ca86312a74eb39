"""The tagger of names as its users run it: a process of its own."""

import functools
import json

import pytest

from keras_xlnet.task_files import read_conll
from tests.examples import EXAMPLES, assert_one_error, fork_example, run_example

run = functools.partial(fork_example, "ner")

SAMPLE_TEST = EXAMPLES / "data" / "wnut17_sample_test.conll"


def short(tiny_preset, output):
    """Flags of a short run."""
    return [
        f"--preset={tiny_preset}", f"--output_dir={output}", "--num_examples=16", "--epochs=1",
        "--sequence_length=24", "--dtype=float32",
    ]  # fmt: skip


def test_trains_writes_and_finds_entities(tmp_path, tiny_preset):
    result = run(*short(tiny_preset, tmp_path / "out"), "Ann Lee lives in Nairobi")
    assert result.returncode == 0, result.stderr[-3000:]
    output = tmp_path / "out"
    assert {path.name for path in output.iterdir()} == {
        "metrics.json", "model.keras", "predictions.conll",
    }  # fmt: skip
    report = json.loads((output / "metrics.json").read_text())
    assert report["sentences"] == {"train": 16, "test": 16}
    for scores in (report["model"], report["baselines"]["dictionary"]):
        assert set(scores) == {"precision", "recall", "f1", "support", "by_type"}
    # 16 sentences, with the words of the file that was read.
    predictions = read_conll(output / "predictions.conll")
    assert predictions["words"] == read_conll(SAMPLE_TEST)["words"][:16]
    # Written only if the loaded model gives these tags.
    assert "model.keras, loaded again, gives the same tags" in result.stdout
    assert "\nAnn Lee lives in Nairobi\n" in result.stdout
    for table in ("xlnet_fine_tuned\n", "dictionary\n"):
        assert table in result.stdout
    assert result.stdout.count("micro average") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "flag", ["--lora_rank=2", "--freeze_backbone", "--gradient_checkpointing", "--from_scratch"]
)
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_ways_to_train(tmp_path, tiny_preset, flag, dtype):
    result = run(*short(tiny_preset, tmp_path), flag, f"--dtype={dtype}")
    assert result.returncode == 0, result.stderr[-3000:]
    assert "gives the same tags" in result.stdout


def damaged(tmp_path):
    path = tmp_path / "damaged.conll"
    path.write_text("Ann\tB-person\nis here\n")
    return path


def without_entities(tmp_path):
    path = tmp_path / "without.conll"
    path.write_text("Hello\tO\n.\tO\n")
    return path


@pytest.mark.parametrize(
    "flags, message",
    [
        (lambda _: ["--data=nowhere.conll", f"--test={SAMPLE_TEST}"], "'nowhere.conll'"),
        (
            lambda path: [f"--data={damaged(path)}", f"--test={SAMPLE_TEST}"],
            "damaged.conll, line 2",
        ),
        (lambda path: [f"--data={without_entities(path)}", f"--test={SAMPLE_TEST}"], "no entities"),
        (lambda _: [f"--data={SAMPLE_TEST}"], "--data and --test need each other"),
    ],
    ids=["no file", "damaged", "no entities", "no test"],
)
def test_errors_are_one_line_and_leave_nothing(tmp_path, flags, message):
    output = tmp_path / "out"
    result = run(f"--output_dir={output}", *flags(tmp_path))
    assert_one_error(result, message)
    assert not output.exists() or not list(output.iterdir())


@pytest.mark.slow
def test_default_run_beats_the_dictionary_and_knows_plain_cases(tmp_path):
    text = "Justin Bieber is in London tonight"
    result = run_example("ner", f"--output_dir={tmp_path}", text, timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads((tmp_path / "metrics.json").read_text())
    # 0.40 and 0.00 in the first runs.
    assert report["model"]["f1"] > report["baselines"]["dictionary"]["f1"] + 0.15
    found = result.stdout.split(f"\n{text}\n")[1]
    assert "Justin Bieber" in found and "London" in found

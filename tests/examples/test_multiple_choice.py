"""The example of multiple choice as its users run it: a process of its own."""

import functools
import json

import pytest

from keras_xlnet.task_files import read_race
from tests.examples import EXAMPLES, assert_one_error, fork_example, run_example

run = functools.partial(fork_example, "multiple_choice")

SAMPLE = EXAMPLES / "data" / "multiple_choice_sample.jsonl"


def write_mctest(path):
    """Three stories in the format of MCTest."""
    question = ["one: Who ran?", "The cat.", "The dog.", "The bird.", "The cow."]
    animals = ("cat", "dog", "bird")
    rows = [["s1", "Author: 1", f"The {animal} ran home.", *question * 4] for animal in animals]
    path.write_text("".join("\t".join(row) + "\n" for row in rows))
    answers = ("\t".join(letter * 4) + "\n" for letter in "ABC")
    path.with_suffix(".ans").write_text("".join(answers))
    return path


def test_trains_writes_and_chooses_alike_after_loading(tmp_path, tiny_preset):
    result = run(
        f"--output_dir={tmp_path}", f"--preset={tiny_preset}", "--num_examples=16", "--epochs=1",
        "--dtype=float32",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    names = {"metrics.json", "model.keras", "predictions.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "gives the same scores for 16 questions" in result.stdout
    report = json.loads((tmp_path / "metrics.json").read_text())
    assert set(report) == {"accuracy", "baselines", "num_questions", "all_runs"}
    assert set(report["baselines"]) == {"chance", "word_overlap"}
    predictions = json.loads((tmp_path / "predictions.json").read_text())
    assert len(predictions) == report["num_questions"] == 16
    num_right = sum(row["index"] == row["label"] for row in predictions)
    assert report["accuracy"] == pytest.approx(num_right / 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", [["--from_scratch"], ["--lora_rank=2"], ["--freeze_backbone", "--dtype=float32"]]
)
def test_other_ways_to_train_and_mctest(tmp_path, tiny_preset, flags):
    path = write_mctest(tmp_path / "small.tsv")
    result = run(
        f"--output_dir={tmp_path / 'out'}", f"--preset={tiny_preset}", "--num_examples=8",
        "--epochs=1", f"--data={path}", "--sequence_length=32", "--gradient_checkpointing", *flags,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]


def test_sample_has_three_or_four_choices():
    questions = read_race(SAMPLE)
    assert {len(choices) for choices in questions["choices"]} == {3, 4}
    assert all(len(set(choices)) == len(choices) for choices in questions["choices"])
    assert SAMPLE.stat().st_size < 80_000


@pytest.mark.parametrize(
    "name, content",
    [("sample.jsonl", None), ("sample.jsonl", "{"), ("sample.tsv", "one column\n")],
    ids=["missing", "damaged", "without answers"],
)
def test_errors_are_one_line_and_leave_nothing(tmp_path, name, content):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    result = run(f"--output_dir={tmp_path / 'out'}", f"--data={path}")
    assert_one_error(result, path.stem)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_default_run_beats_its_baselines(tmp_path):
    result = run_example("multiple_choice", f"--output_dir={tmp_path}", timeout=1200)
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads((tmp_path / "metrics.json").read_text())
    assert report["accuracy"] > max(report["baselines"].values())

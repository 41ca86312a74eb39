"""The example of question answering as its users run it: a process of its own."""

import functools
import json

import pytest

from keras_xlnet.task_files import read_squad
from tests.examples import EXAMPLES, assert_one_error, fork_example, run_example

run = functools.partial(fork_example, "squad")

SAMPLE = EXAMPLES / "data" / "squad_sample.json"


def test_trains_writes_and_answers_alike_after_loading(tmp_path, tiny_preset):
    result = run(
        f"--output_dir={tmp_path}", f"--preset={tiny_preset}", "--num_examples=16", "--epochs=1",
        "--sequence_length=64", "--doc_stride=16", "--dtype=float32",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert {path.name for path in tmp_path.iterdir()} == {
        "metrics.json", "model.keras", "predictions.json", "thresholds.png",
    }  # fmt: skip
    assert "gives the same answers to 16 questions" in result.stdout
    report = json.loads((tmp_path / "metrics.json").read_text())
    assert set(report) == {"model", "threshold", "baselines", "all_runs"}
    assert set(report["baselines"]) == {"closest_sentence", "no_answer"}
    for scores in (report["model"], *report["baselines"].values()):
        assert 0 <= scores["exact"] <= scores["f1"] <= 100
    questions = read_squad(SAMPLE)
    contexts = dict(zip(questions["id"], questions["context"], strict=True))
    predictions = json.loads((tmp_path / "predictions.json").read_text())
    assert len(predictions) == 16
    assert all(text in contexts[key] for key, text in predictions.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", [["--from_scratch"], ["--lora_rank=2"], ["--freeze_backbone", "--dtype=float32"]]
)
def test_other_ways_to_train(tmp_path, tiny_preset, flags):
    result = run(
        f"--output_dir={tmp_path}", f"--preset={tiny_preset}", "--num_examples=16", "--epochs=1",
        f"--data={SAMPLE}", f"--test={SAMPLE}", "--sequence_length=64", "--gradient_checkpointing",
        *flags,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]


def test_sample_has_both_kinds_of_questions():
    answers = read_squad(SAMPLE)["answers"]
    assert sum(not row for row in answers) * 4 == len(answers)
    assert SAMPLE.stat().st_size < 80_000


@pytest.mark.parametrize(
    "content, message",
    [(None, "sample.json"), ("{", "sample.json"), ('{"data": []}', "sample.json")],
    ids=["missing", "damaged", "empty"],
)
def test_errors_are_one_line_and_leave_nothing(tmp_path, content, message):
    path = tmp_path / "sample.json"
    if content is not None:
        path.write_text(content)
    result = run(f"--output_dir={tmp_path / 'out'}", f"--data={path}")
    assert_one_error(result, message)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_default_run_beats_its_baselines(tmp_path):
    result = run_example("squad", f"--output_dir={tmp_path}", timeout=1200)
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads((tmp_path / "metrics.json").read_text())
    best_baseline = max(scores["f1"] for scores in report["baselines"].values())
    assert report["model"]["f1"] > best_baseline

"""The spam filter as its users run it: a process of its own."""

import functools
import json
import pathlib
import re

import pytest

from tests.examples import assert_one_error, fork_example, pages, run_example

run = functools.partial(fork_example, "spam_classifier")


@pytest.fixture
def tiny(tiny_preset, messages_file):
    """Flags of a short run."""
    return [
        f"--preset={tiny_preset}", f"--data={messages_file}", "--epochs=1", "--sequence_length=16",
    ]  # fmt: skip


def test_trains_writes_and_classifies(tmp_path, tiny):
    output = tmp_path / "out"
    result = run_example(
        "spam_classifier",
        f"--output_dir={output}",
        *tiny,
        "WIN cash now, text 87121",
        "see you at six",
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert {path.name for path in output.iterdir()} == {
        "confusion_matrix.png", "metrics.json", "model.keras", "precision_recall.png",
        "saved_model", "training_curves.png",
    }  # fmt: skip
    table = pages.section(
        pages.ROOT / "docs" / "spam_classifier.md", "writes to `runs/spam`:", "--load"
    )
    named = {name for row in pages.rows(table) for name in re.findall("`([^`]+)`", row[0])}
    assert {name.partition("/")[0] for name in named} == {path.name for path in output.iterdir()}
    report = json.loads((output / "metrics.json").read_text())
    assert set(report["baselines"]) == {"majority", "tfidf_tuned"}
    for metrics in (report["model"], *report["baselines"].values()):
        assert {"accuracy", "precision", "recall", "f1", "mcc"} <= set(metrics)
    assert "TF-IDF" not in result.stderr
    trained = result.stdout.splitlines()[-2:]
    assert trained[0].endswith("WIN cash now, text 87121")
    assert (output / "saved_model" / "1" / "saved_model.pb").is_file()
    # The same answers from the folder alone, without training.
    loaded = run(f"--load={output}", "WIN cash now, text 87121", "see you at six")
    assert loaded.returncode == 0, loaded.stderr[-3000:]
    assert loaded.stdout.splitlines()[-2:] == trained


@pytest.mark.slow
def test_cross_validates_from_scratch(tmp_path, tiny):
    flags = ["--folds=2", "--from_scratch", "--vocabulary_size=300"]
    result = run(f"--output_dir={tmp_path}", *flags, *tiny)
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads((tmp_path / "cross_validation.json").read_text())
    assert set(report["summary"]) == {"xlnet_from_scratch", "majority", "tfidf_tuned"}
    assert [len(folds) for folds in report["folds"].values()] == [2, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ["--lora_rank=2"],
        ["--freeze_backbone", "--gradient_checkpointing"],
        ["--unfreeze_gradually", "--layer_decay=0.8", "--dtype=mixed_bfloat16"],
    ],
)
def test_other_ways_to_train(tmp_path, tiny, flags):
    result = run(f"--output_dir={tmp_path / 'out'}", *tiny, *flags, "see you at six")
    assert result.returncode == 0, result.stderr[-3000:]
    loaded = run(f"--load={tmp_path / 'out'}", "see you at six")
    assert loaded.stdout.splitlines()[-1] == result.stdout.splitlines()[-1]


@pytest.mark.slow
def test_fine_tunes_an_original_checkpoint(tmp_path, golden_dir, tiny):
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    for path in (*(golden_dir / "tiny_ckpt").iterdir(), golden_dir / "spiece.model"):
        (checkpoint / path.name).write_bytes(path.read_bytes())
    result = run(f"--output_dir={tmp_path / 'out'}", *tiny, f"--preset={checkpoint}")
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--data=nowhere.tsv"], "nowhere.tsv: cannot be read: No such file or directory"),
        (["--output_dir=/proc/spam"], "'/proc/spam'"),
        (["--preset=nowhere"], "nowhere"),
        (["--lora_rank=8", "--freeze_backbone"], "use one of --from_scratch"),
        (["--vocabulary_size=300"], "--vocabulary_size needs --from_scratch"),
        (["--load=nowhere", "hi"], "--load nowhere: it has no model.keras"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(tmp_path, arguments, message):
    output = tmp_path / "out"
    if not any(a.startswith("--output_dir") for a in arguments):
        arguments = [f"--output_dir={output}", *arguments]
    result = run(*arguments)
    assert_one_error(result, message)
    assert not output.exists() or not list(pathlib.Path(output).iterdir())


@pytest.mark.slow
def test_trains_on_two_replicas(tmp_path, tiny):
    flags = ["--strategy=mirrored", "--num_replicas=2"]
    result = run(f"--output_dir={tmp_path}", *tiny, *flags, "see you at six")
    assert result.returncode == 0, result.stderr[-3000:]
    assert (tmp_path / "saved_model" / "1" / "saved_model.pb").is_file()


@pytest.mark.slow
def test_default_run_beats_tfidf_and_knows_plain_cases(tmp_path):
    spam = "Congratulations! You have won a £1000 prize, call 0900 555 0123 now to claim"
    result = run_example(
        "spam_classifier",
        f"--output_dir={tmp_path}",
        spam,
        "running late, see you at six",
        timeout=900,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads((tmp_path / "metrics.json").read_text())
    assert report["model"]["f1"] > report["baselines"]["tfidf_tuned"]["f1"]
    assert [line.split()[0] for line in result.stdout.splitlines()[-2:]] == ["spam", "ham"]

"""The example of tables as its users run it: a process of its own."""

import functools
import json

import pytest

from tests.examples import EXAMPLES, assert_one_error, fork_example, run_example

run = functools.partial(fork_example, "glue")

DATA = EXAMPLES / "data"
PAIRS = "a\tb\tlabel\n" + "".join(
    f"the cat number {i}\t{'the cat' if i % 2 else 'a dog'}\t{i % 2}\n" for i in range(24)
)


def short(tiny_preset, output):
    """Flags of a short run."""
    return [f"--preset={tiny_preset}", f"--output_dir={output}", "--epochs=1", "--dtype=float32"]


def test_runs_twice_and_tells_the_deviation(tmp_path, tiny_preset):
    flags = ["--num_examples=24", "--runs=2", "--unfreeze_gradually", "--layer_decay=0.8"]
    result = run(*short(tiny_preset, tmp_path), *flags)
    assert result.returncode == 0, result.stderr[-3000:]
    assert {path.name for path in tmp_path.iterdir()} == {
        "metrics.json", "model.keras", "predictions.png", "predictions.tsv",
    }  # fmt: skip
    assert "model.keras, loaded again, gives the same outputs" in result.stdout
    report = json.loads((tmp_path / "metrics.json").read_text())
    assert report["examples"] == {"train": 24, "test": 24}
    assert set(report["baselines"]) == {"tfidf", "most_frequent"}
    runs = [row["accuracy"] for row in report["all_runs"]["runs"]]
    assert len(runs) == 2 and runs[0] == report["model"]["accuracy"]
    assert report["all_runs"]["mean"]["accuracy"] == pytest.approx(sum(runs) / 2)
    assert "Mean and standard deviation of 2 runs" in result.stdout
    assert len((tmp_path / "predictions.tsv").read_text().splitlines()) == 25


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ["--label=rating", "--metric=spearman"],
        ["--lora_rank=2", "--metric=f1"],
        ["--freeze_backbone", "--gradient_checkpointing"],
        ["--from_scratch", "--dtype=mixed_bfloat16"],
    ],
)
def test_other_ways_to_train(tmp_path, tiny_preset, flags):
    result = run(*short(tiny_preset, tmp_path), "--num_examples=24", *flags)
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("has_header", [True, False])
def test_pairs_of_any_table(tmp_path, tiny_preset, has_header):
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS if has_header else PAIRS.split("\n", 1)[1])
    names = ("a", "b", "label") if has_header else (0, 1, 2)
    columns = [f"--{k}={v}" for k, v in zip(("text", "pair", "label"), names, strict=True)]
    result = run(*short(tiny_preset, tmp_path / "out"), f"--data={path}", *columns)
    assert result.returncode == 0, result.stderr[-3000:]
    assert "18 examples to train on, 6 to test" in result.stdout


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--label=quality"], "questions_sample.tsv, line 1"),
        (["--metric=pearson"], "questions_sample.tsv, line 2"),
        (["--lora_rank=2", "--from_scratch"], "use one of --from_scratch"),
        (["a text"], "arguments that are no flags: a text"),
    ],
    ids=["column", "number", "flags", "arguments"],
)
def test_errors_are_one_line_and_leave_nothing(tmp_path, flags, message):
    result = run(f"--output_dir={tmp_path / 'out'}", *flags)
    assert_one_error(result, message)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_default_run_beats_its_baselines(tmp_path):
    result = run_example("glue", f"--output_dir={tmp_path}", timeout=900)
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads((tmp_path / "metrics.json").read_text())
    # 0.66 and 0.60 in the first run.
    assert report["model"]["accuracy"] > report["baselines"]["tfidf"]["accuracy"]

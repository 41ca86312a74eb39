"""The example of long documents as its users run it: a process of its own."""

import functools
import json

import pytest

from tests.examples import EXAMPLES, assert_one_error, fork_example, run_example

run = functools.partial(fork_example, "long_documents")

DATA = EXAMPLES / "data"


def short(tiny_preset, output):
    """Flags of a short run."""
    return [
        f"--preset={tiny_preset}", f"--output_dir={output}", "--num_examples=12", "--epochs=1",
        "--sequence_length=32", "--segment_length=16", "--max_length=32", "--dtype=float32",
    ]  # fmt: skip


def test_reads_in_two_ways_and_writes_everything(tmp_path, tiny_preset):
    result = run(*short(tiny_preset, tmp_path), "--long_document=head_tail,memory")
    assert result.returncode == 0, result.stderr[-3000:]
    assert {path.name for path in tmp_path.iterdir()} == {
        "accuracy.png", "head_tail.keras", "memory.keras", "metrics.json", "predictions.tsv",
    }  # fmt: skip
    for way in ("head_tail", "memory"):
        assert f"{way}.keras, loaded again, finds the same classes" in result.stdout
    report = json.loads((tmp_path / "metrics.json").read_text())
    assert set(report["by_length"]) == {"tfidf", "head_tail", "memory"}
    rows = [row.split("\t") for row in (tmp_path / "predictions.tsv").read_text().splitlines()]
    assert rows[0] == ["label", "tfidf", "head_tail", "memory"] and len(rows) == 13
    right = [row[0] == row[3] for row in rows[1:]]
    (first,) = report["all_runs"]["memory"]["runs"]
    assert first["accuracy"] == report["accuracy"]["memory"] == pytest.approx(sum(right) / 12)


def test_sample_has_all_authors_in_both_parts_and_few_pages():
    parts = []
    for name in ("authors_sample.jsonl", "authors_sample_test.jsonl"):
        rows = [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]
        assert max(len(row["text"]) for row in rows) < 10_000
        parts.append({row["label"] for row in rows})
    assert parts[0] == parts[1] == {"Burroughs", "Dickens", "Doyle", "Hardy"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", [["--from_scratch", "--gradient_segments=2"], ["--lora_rank=2"], ["--freeze_backbone"]]
)
def test_other_ways_to_train(tmp_path, tiny_preset, flags):
    result = run(*short(tiny_preset, tmp_path), *flags, "--gradient_checkpointing")
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--long_document=whole"], "--long_document must be some of truncate"),
        (["--label_column=author"], "authors_sample.jsonl, line 1"),
    ],
    ids=["way", "column"],
)
def test_errors_are_one_line_and_leave_nothing(tmp_path, flags, message):
    result = run(f"--output_dir={tmp_path / 'out'}", "--num_examples=12", *flags)
    assert_one_error(result, message)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.slow
def test_default_run_reads_more_with_windows(tmp_path):
    result = run_example("long_documents", f"--output_dir={tmp_path}", timeout=1800)
    assert result.returncode == 0, result.stderr[-3000:]
    runs = json.loads((tmp_path / "metrics.json").read_text())["all_runs"]
    # 0.88 and 0.70 in the first run.
    assert runs["windows"]["mean"]["accuracy"] > runs["truncate"]["mean"]["accuracy"]

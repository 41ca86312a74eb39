"""The spam filter as its users run it: a process of its own."""

import functools
import json
import pathlib
import re

import pytest

from tests.examples import assert_one_error, fork_example, pages, run_example

run = functools.partial(fork_example, "spam_classifier")
MESSAGES = ["WIN cash now, text 87121", "see you at six"]


@pytest.fixture
def tiny(tiny_preset, messages_file):
    """Flags of a short run."""
    return [f"--preset={tiny_preset}", f"--data={messages_file}", "--epochs=1"]


def test_trains_writes_and_classifies(tmp_path, tiny):
    output = tmp_path / "out"
    result = run_example("spam_classifier", f"--output_dir={output}", *tiny, *MESSAGES)
    assert result.returncode == 0, result.stderr[-3000:]
    table = pages.section(
        pages.ROOT / "docs" / "spam_classifier.md", "writes to `runs/spam`:", "--load"
    )
    named = {name for row in pages.rows(table) for name in re.findall("`([^`]+)`", row[0])}
    assert {name.partition("/")[0] for name in named} == {path.name for path in output.iterdir()}
    report = json.loads((output / "metrics.json").read_text())
    assert set(report) == {"model", "tfidf"}
    assert all(set(scores) == {"f1", "mcc"} for scores in report.values())
    assert "TFLOP: about 1 min on this machine" in result.stdout
    trained = result.stdout.splitlines()[-2:]
    assert [line.split("  ")[-1] for line in trained] == MESSAGES
    assert (output / "saved_model" / "1" / "saved_model.pb").is_file()
    # The same answers from the folder alone, without training.
    loaded = run(f"--load={output}", *MESSAGES)
    assert loaded.returncode == 0, loaded.stderr[-3000:]
    assert loaded.stdout.splitlines()[-2:] == trained


def test_reads_a_table_with_other_names(tmp_path, tiny, messages_file):
    rows = [line.split("\t") for line in messages_file.read_text("utf-8").splitlines()]
    path = tmp_path / "mine.csv"
    lines = ["id,kind,body"]
    lines += [f"{i},{label == 'spam'},{text.split(',')[0]}" for i, (label, text) in enumerate(rows)]
    path.write_text("\n".join(line.replace('"', "") for line in lines), encoding="utf-8")
    flags = ["--text_column=body", "--label_column=kind", "--positive_label=True"]
    result = run(*tiny, f"--data={path}", *flags, f"--output_dir={tmp_path / 'out'}", *MESSAGES)
    assert result.returncode == 0, result.stderr[-3000:]
    assert {line.split()[0] for line in result.stdout.splitlines()[-2:]} <= {"True", "False"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--data=nowhere.tsv"], "nowhere.tsv"),
        (["--output_dir=/proc/spam"], "'/proc/spam'"),
        (["--preset=nowhere"], "nowhere"),
        (["--load=nowhere", "hi"], "nowhere"),
        (["--positive_label=junk"], "the labels must be two, with 'junk'"),
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
    assert report["model"]["f1"] > report["tfidf"]["f1"]
    assert [line.split()[0] for line in result.stdout.splitlines()[-2:]] == ["spam", "ham"]

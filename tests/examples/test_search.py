"""The search of a folder as its users run it."""

import functools
import re

import pytest

from tests.examples import assert_one_error, fork_example

run = functools.partial(fork_example, "search")
LONG = "a free prize is here and you win the cash of a phone " * 12


@pytest.fixture
def folder(tmp_path):
    """Two texts, and what is not read: other suffixes, hidden folders, no text."""
    folder = tmp_path / "texts"
    (folder / "inner").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / "a.md").write_text(f"# Title\n\nsee you at six\n\n{LONG}\n")
    (folder / "inner" / "b.txt").write_text("\n\nwin a free prize now\n")
    for name in (".hidden/c.md", "d.py", ".e.md"):
        (folder / name).write_text("not read")
    (folder / "f.txt").write_bytes(b"\xff\xfe\x00")
    return folder


def test_finds_and_keeps_vectors(folder, tmp_path, tiny_preset):
    flags = [f"--preset={tiny_preset}", f"--cache_dir={tmp_path / 'cache'}", "--words=60"]
    result = run(folder, "win a free prize now", *flags)
    assert result.returncode == 0, result.stderr
    assert "4 passages, 4 to embed" in result.stdout
    assert "f.txt is left out" in result.stderr
    found = re.findall(r"^([\d.]+)  (\S+):(\d+)$", result.stdout, re.MULTILINE)
    assert len(found) == 4 and float(found[0][0]) > 0.999
    assert found[0][1:] == (str(folder / "inner" / "b.txt"), "3")
    assert sorted(found, reverse=True, key=lambda row: float(row[0])) == found
    (folder / "inner" / "b.txt").write_text("where are you?\n")
    again = run(folder, "where are you?", *flags, "--top_k=1")
    assert "4 passages, 1 to embed" in again.stdout
    assert re.findall(r":(\d+)\n    (.*)", again.stdout) == [("1", "where are you?")]


def test_bad_folders(folder, tmp_path, tiny_preset):
    flags = [f"--preset={tiny_preset}", f"--cache_dir={tmp_path / 'cache'}"]
    assert_one_error(run(tmp_path / "none", "a", *flags), "none is not a folder")
    empty = run(folder, "a", *flags, "--suffixes=.org")
    assert_one_error(empty, "no text in files with the suffixes ['.org']")

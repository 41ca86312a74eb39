"""The guides in docs/guides/ run from top to bottom and print what they say.

A block of text after a block of Python is what that block prints; `...` stands for any text. The
commands of `xlnet` run after the code.
"""

import doctest
import re

import pytest

import xlnet_command
from tests.examples import EXAMPLES, pages

GUIDES = EXAMPLES.parent / "docs" / "guides"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
QUICK = ["checkpoints_in_and_out", "own_architecture"]
SLOW = ["data_and_tools", "first_classifier", "pretrain_your_language", "scale", "serve"]


def test_all_guides_are_here():
    assert sorted(path.stem for path in GUIDES.glob("*.md")) == sorted(QUICK + SLOW)


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_a_guide_runs_and_prints_what_it_says(name, request, tmp_path, monkeypatch, capsys):
    if name == "checkpoints_in_and_out":  # Whose numbers are those of any model.
        request.getfixturevalue("small_preset")
    # The guides read from a clone, and write beside it.
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((GUIDES / f"{name}.md").read_text(encoding="utf-8"))
    assert len(blocks) >= 4
    names = {"__name__": f"guide_{name}"}
    for code, expected in blocks:
        exec(code, names)
        printed = capsys.readouterr().out
        matches = doctest.OutputChecker().check_output(expected, printed, FLAGS)
        assert matches or not expected, f"{code}\nprints\n\n{printed}"
    for command in pages.commands(GUIDES / f"{name}.md"):
        if command[0] == "xlnet":
            assert xlnet_command.run(xlnet_command.parse(command)) == 0, command

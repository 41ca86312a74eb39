"""The guides in docs/guides/ run from top to bottom and print what they say.

A block of text after a block of Python is what that block prints. Floats may differ by a fifth, as
they do between machines, and durations by any factor. The commands of `xlnet` run after the code,
except for a server. A notebook beside a guide is made of it.
"""

import json
import re

import pytest

import xlnet_command
from tests.examples import EXAMPLES, RESEARCH, pages

GUIDES = EXAMPLES.parent / "docs" / "guides"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
FLOAT = re.compile(r"\d+\.\d+(?:e-?\d+)?")
DURATION = re.compile(r"\b\d+m?s\b")
QUICK = ["checkpoints_in_and_out", "own_architecture"]
SLOW = [
    *("data_and_tools", "how_xlnet_works", "pretrain_your_language", "scale", "serve"),
    "your_csv",
]


def is_alike(printed, expected):
    """Whether two texts are equal but for white space, durations and the digits of floats."""
    words, numbers = [], []
    for text in (printed, expected):
        text = DURATION.sub("0s", " ".join(text.split()))
        words.append(FLOAT.sub("0.0", text))
        numbers.append([float(number) for number in FLOAT.findall(text)])
    return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=0.2, abs=0.02)


def test_printed_text_is_compared():
    assert is_alike("loss:  2.31, 4ms/step\n", "loss: 2.07, 9s/step")
    assert not is_alike("loss: 2.31", "loss: 4.07") and not is_alike("12 rows", "13 rows")


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
        assert not expected or is_alike(printed, expected), f"{code}\nprints\n\n{printed}"
    for command in pages.commands(GUIDES / f"{name}.md"):
        if command[0] == "xlnet" and command[1] != "serve":  # A server does not end.
            assert xlnet_command.run(xlnet_command.parse(command)) == 0, command


@pytest.fixture
def make_guide(monkeypatch):
    monkeypatch.syspath_prepend(RESEARCH / "pictures")
    import make_guide

    return make_guide


NOTEBOOKS = sorted(GUIDES.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_what_the_guide_makes(path, make_guide):
    guide = path.with_suffix(".md").read_text(encoding="utf-8")
    written = path.read_text(encoding="utf-8")
    assert written == make_guide.notebook(guide), "python research/pictures/make_guide.py"
    cells = json.loads(written)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code[1:] == [block.strip("\n") for block, _ in BLOCK.findall(guide)]


def test_outputs_and_text_of_a_notebook(make_guide):
    guide = (
        "# A\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nThe end.\n\n```python\nx = 2\n```\n"
    )
    _, *cells = json.loads(make_guide.notebook(guide))["cells"]
    assert [cell["source"] for cell in cells] == [["# A"], ["print(1)"], ["The end."], ["x = 2"]]
    assert cells[1]["outputs"] == [{"name": "stdout", "output_type": "stream", "text": ["1"]}]
    assert cells[3]["outputs"] == []


def test_pictures_are_drawn_beside_the_guide(make_guide, tmp_path):
    guide = tmp_path / "small.md"
    guide.write_text(
        "```python\nimport pathlib\n\nimport matplotlib.pyplot as plt\n\n"
        'pathlib.Path("runs/small").mkdir(parents=True)\n```\n\n'
        '```python\nplt.figure().savefig("runs/small/empty.png")\n```\n',
        encoding="utf-8",
    )
    make_guide.main(guide)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert found == {"small.md", "small.ipynb", "small", "small/empty.png"}


def test_pictures_of_a_guide_are_those_that_it_draws():
    guide = pages.read(GUIDES / "how_xlnet_works.md")
    drawn = set(re.findall(r'savefig\(pictures / "(\w+\.png)"', guide))
    shown = set(re.findall(r"\]\(how_xlnet_works/(\w+\.png)\)", guide))
    stored = {path.name for path in (GUIDES / "how_xlnet_works").iterdir()}
    assert len(drawn) > 4 and drawn == shown == stored

"""The pages of the repository, and the code, the commands and the tables in them."""

import ast
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(
        path
        for folder in (
            "docs",
            "benchmarks",
            "examples",
            "keras_xlnet",
            "research",
            "tests",
            "third_party",
        )
        for path in (ROOT / folder).rglob("*.md")
    ),
]
# The docstrings of programs say how they are run.
PROGRAMS = sorted(
    path
    for folder in ("examples", "benchmarks", "research", "docs/site", "tests/golden")
    for path in (ROOT / folder).rglob("*.py")
)
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?: {4}.*\n|\n(?= {4}))+)")
_SEPARATORS = {"&&", ";", "|", "&"}


def read(page):
    return page.read_text(encoding="utf-8")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def python_blocks(page):
    """Returns the blocks of Python of a page."""
    return [code for language, code in _FENCE.findall(read(page)) if language == "python"]


def inline_code(page):
    """Returns what stands in single backticks, without line breaks."""
    text = _FENCE.sub("", read(page))
    return [" ".join(code.split()) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]


def section(page, start, end="\n## "):
    """Returns the text of a page from one string to the next of another."""
    return read(page).partition(start)[2].partition(end)[0]


def rows(text):
    """Returns the cells of the rows of the tables in a text, without the lines of dashes."""
    lines = re.findall(r"^ *\|(.*)\|$", text, re.MULTILINE)
    cells = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    return [row for row in cells if not all(re.fullmatch(":?-+:?", cell) for cell in row)]


def commands(path):
    """Returns the commands on a page, or in the docstring of a program, as lists of words.

    They stand in blocks of shell, in indented blocks and in backticks. What is set before a command
    (`NAME=value python ...`) is left out, and so is the shell after it.
    """
    if path.suffix == ".py":
        text = (ast.get_docstring(ast.parse(read(path))) or "") + "\n"
        blocks = _INDENTED.findall(text)
    else:
        text = read(path)
        blocks = [code for language, code in _FENCE.findall(text) if language == "sh"]
        blocks += _INDENTED.findall(_FENCE.sub("", text)) + inline_code(path)
    return [command for block in blocks for command in _split(block)]


def _split(block):
    lines = block.replace("\\\n", " ").splitlines()
    while lines:
        line = lines.pop(0)
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # A quotation that is closed in a later line, or no command.
            if lines:
                lines[0] = f"{line}\n{lines[0]}"
            continue
        command = []
        for word in [*words, ";"]:
            if word not in _SEPARATORS:
                if command or not re.match(r"[A-Z_]+=", word):
                    command.append(word)
            elif command:
                yield command
                command = []


def extras_of_the_package():
    """Returns a dict from extras to what they require."""
    text = read(ROOT / "pyproject.toml")
    _, _, text = text.partition("[project.optional-dependencies]\n")
    table = re.sub(r"^ *#.*\n", "", text.partition("\n[")[0], flags=re.MULTILINE)
    found = re.findall(r"^(\w+) = \[(.*?)\]$", table, re.DOTALL | re.MULTILINE)
    return {name: re.findall(r'"([^"]+)"', requirements) for name, requirements in found}

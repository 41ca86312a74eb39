"""The page with all pictures, made of the references to them in the other pages."""

import ast
import functools
import re

from pages import ROOT, links, place, title_of

_COMMAND = re.compile(r"python (?:-m benchmarks\.|(?:examples|benchmarks|research)/)[^`\n]+")
_INTRODUCTION = """# Gallery

All pictures of these pages, each with the page that explains it and the command that draws it.
"""


def pictures():
    """Yields a picture, its caption, its page and the command that draws it, for each picture."""
    pages = [ROOT / "docs" / "index.md", *sorted((ROOT / "docs").rglob("*.md"))]
    seen = set()
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for label, path in links(page, text):
            if label.startswith("!") and path not in seen:
                seen.add(path)
                command = command_of_program(path) or command_of(text, label, path.name)
                yield path, label[2:-1], page, command


def command_of_program(path):
    """Returns the command in a docstring of `research/pictures` that names a picture.

    `make_guide.py` names the guide, whose pictures are in the folder of its name. Returns `None` if
    no command does.
    """
    names = path.relative_to(ROOT).as_posix(), f"{path.parent.relative_to(ROOT).as_posix()}.md"
    return next((c for c in _commands_of_programs() if c.split()[-1] in names), None)


@functools.cache
def _commands_of_programs():
    programs = sorted((ROOT / "research" / "pictures").glob("*.py"))
    trees = [ast.parse(program.read_text(encoding="utf-8")) for program in programs]
    return [found[0] for tree in trees for found in _COMMAND.finditer(ast.get_docstring(tree))]


def command_of(text, label, file_name):
    """Returns the command that names the file, or the last one of the section before the picture.

    Returns `None` if there is none.
    """
    position = text.index(label)
    commands = list(_COMMAND.finditer(text))
    for command in commands:
        if file_name in command[0]:
            return command[0]
    start = max(text.rfind("\n## ", 0, position), 0)
    before = [command[0] for command in commands if start <= command.start() < position]
    top = [command[0] for command in commands if command.start() < text.find("\n## ")]
    return (before or top or [None])[-1]


def gallery_page():
    """Returns the text of the page, in Markdown."""
    parts = [_INTRODUCTION]
    for path, caption, page, command in pictures():
        picture, source = (f"/{place(file)}" for file in (path, page))
        parts.append(f"## {caption[0].upper()}{caption[1:]}\n\n![{caption}]({picture})\n")
        drawn = f", drawn by `{command}`" if command else ""
        parts.append(f"In [{title_of(page)}]({source}){drawn}.\n")
    return "\n".join(parts)

"""The Markdown pages of the repository, moved to where the site has them, with their links."""

import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
_WITHOUT_NAVIGATION = "---\norphan: true\n---\n\n"
_LINK = re.compile(r"(!?\[[^\]]*\])\(([^)#\s]+)(#[^)\s]*)?\)")


def repository_pages():
    """Returns a dict from paths in the site to the text of a page, or the bytes of another file.

    `docs/` becomes the top of the site. Files elsewhere in the repository that pages link to go to
    `repository/`; those that the first page does not link to are not in the navigation.
    """
    index = ROOT / "docs" / "index.md"
    listed = {target for _, target in links(index, index.read_text(encoding="utf-8"))}
    found, waiting = {}, [path for path in (ROOT / "docs").rglob("*") if path.suffix == ".md"]
    while waiting:
        path = waiting.pop()
        if place(path) in found:
            continue
        if path.suffix != ".md":
            found[place(path)] = path.read_bytes()
            continue
        text = path.read_text(encoding="utf-8")
        waiting += [target for _, target in links(path, text)]
        moved = _LINK.sub(lambda match, path=path: _moved(path, match), text)
        if ROOT / "docs" not in path.parents and path not in listed:
            moved = _WITHOUT_NAVIGATION + moved
        found[place(path)] = moved
    return found


def links(page, text):
    """Returns pairs of the label and the file of each link or picture of a page."""
    found = [(match[1], _target(page, match[2])) for match in _LINK.finditer(text)]
    return [(label, target) for label, target in found if target is not None]


def _target(page, link):
    target = (page.parent / link).resolve()
    return target if "://" not in link and target.is_file() else None


def place(path):
    """Returns where the site has a file of the repository."""
    name = path.relative_to(ROOT).as_posix()
    return name.removeprefix("docs/") if name.startswith("docs/") else f"repository/{name}"


def _moved(page, match):
    target = _target(page, match[2])
    if target is None:
        return match[0]
    link = os.path.relpath(place(target), pathlib.PurePosixPath(place(page)).parent)
    label = match[1]
    if label.endswith(".md]"):  # The name of a file, where a reader of the site expects a title.
        label = f"[{title_of(target)}]"
    return f"{label}({pathlib.PurePath(link).as_posix()}{match[3] or ''})"


def title_of(page):
    """Returns the heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def with_toctrees(index):
    """Returns the text of the first page with a list of contents for each of its sections.

    Sphinx makes the navigation from these lists; the links of the page stay as they are.
    """
    sections = re.split(r"^(?=## )", index, flags=re.MULTILINE)
    return "\n".join(section.rstrip() + "\n" + _toctree(section) for section in sections)


def _toctree(section):
    heading = re.match(r"## (.*)", section)
    found = [match for match in _LINK.findall(section) if match[1].endswith((".md", ".rst"))]
    if not heading or not found:
        return ""
    entries = "\n".join(f"{label[1:-1]} <{link}>" for label, link, _ in found)
    return f"\n```{{toctree}}\n:caption: {heading[1]}\n:hidden:\n\n{entries}\n```\n"

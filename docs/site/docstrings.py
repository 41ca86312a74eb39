"""Docstrings of this package as reStructuredText.

They have Markdown's backticks, formulas as indented blocks, and, besides the sections that
`sphinx.ext.napoleon` knows, lists of inputs and outputs by name.
"""

import re

SECTIONS = ("Args:", "Call arguments:", "Returns:", "Yields:", "Raises:", "Attributes:", "Example:")
_INDENT = " " * 4
# Names of several arguments that have one description, where they take two lines.
_LONG_LIST_OF_NAMES = re.compile(r"^( {4}\w+(?:, \w+)*,)\n +(?=\w+(?:, \w+)*: )", re.MULTILINE)


def setup(app):
    # Napoleon has the priority 500 and reads what this returns.
    app.connect("autodoc-process-docstring", _process, priority=400)
    return {"parallel_read_safe": True}


def _process(app, what, name, obj, options, lines):
    lines[:] = to_rst(lines)


def to_rst(lines):
    """Returns the lines of a docstring as reStructuredText, with the sections of Google's style."""
    found = []
    for is_example, block in _split_examples(lines):
        found += block if is_example else _text_to_rst(block)
    return found


def _split_examples(lines):
    """Yields pairs: whether the lines are a doctest, and the lines."""
    block, is_example = [], False
    for line in lines:
        starts, ends = line.lstrip().startswith(">>>"), not line.strip()
        if (starts and not is_example) or (ends and is_example):
            yield is_example, block
            block, is_example = [], starts
        block.append(line)
    yield is_example, block


def _text_to_rst(lines):
    text = "\n".join(_indented_blocks(lines))
    text = _LONG_LIST_OF_NAMES.sub(r"\1 ", text)
    return re.sub(r"`([^`]+)`(?=(\w?))", _literal, text).split("\n")


def _literal(match):
    # A literal that a letter follows, as in a plural, needs an escaped space.
    return f"``{' '.join(match[1].split())}``" + (r"\ " if match[2] else "")


def _indented_blocks(lines):
    """Marks formulas as literal blocks, and makes lists of the names of inputs and outputs."""
    found, in_section, kind = [], False, None
    for i, line in enumerate(lines):
        before = lines[i - 1] if i else ""
        if line and not line.startswith(" "):
            in_section, kind = line in SECTIONS, None
            # A field already: napoleon would take the words before a colon for a type.
            line = f":{line}" if line in ("Returns:", "Yields:") else line
        elif in_section or not line.startswith(_INDENT):
            pass
        elif kind is None and not before:
            kind = "formula"
            found += ["::", ""]
        elif kind is None:
            kind = "names" if before.endswith(":") else "paragraph"
            found += [""] if kind == "names" else []
        if kind == "names":
            line = re.sub(rf"^{_INDENT}(\S[^:]*): ", _names, line)
            line = re.sub(rf"^{_INDENT * 2}", "  ", line)
        elif kind == "paragraph":
            line = line.strip()
        found.append(line)
    return found


def _names(match):
    return f"- {', '.join(f'`{name}`' for name in match[1].split(', '))}: "

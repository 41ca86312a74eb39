"""Training examples that are made by rule, for the adapters of `train_adapters.py`."""

import pathlib
import re


def choice(text, rng):
    """Returns one of the parts of a text that `|` separates. Line breaks do not matter.

    Args:
        text: String.
        rng: A `numpy.random.Generator`.
    """
    return str(rng.choice(text.replace("\n", "").split("|")))


def filled(template, part, rng):
    """Returns a text with what `part(kind, rng)` returns in place of each `{kind}`."""
    return re.sub(r"\{(\w+)\}", lambda found: part(found[1], rng), template)


def in_case_of(kind, text):
    """Returns a text that begins with a capital letter if its `{kind}` does."""
    return text[:1].upper() + text[1:] if kind[0].isupper() else text


def part_of(rows, seed):
    """Returns the rows for a seed: every tenth is kept for development, with other seeds than 0."""
    return [row for i, row in enumerate(rows) if (i % 10 == 9) == (seed != 0)]


def read_lines(file):
    """Returns the lines of a file of this folder."""
    return (pathlib.Path(__file__).parent / file).read_text(encoding="utf-8").splitlines()

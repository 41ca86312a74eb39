"""The original's `preprocess_text` (`prepro_utils.py`), on the host.

`predict.py` of an exported directory contains this file, so it imports nothing but Python's own
modules.
"""

import re
import unicodedata

# Not characters: they cannot be written in UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """Replaces surrogates, which UTF-8 cannot encode, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def drop_accents(text: str) -> str:
    """Decomposes characters (NFKD) and drops combining ones."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character))


# What each step makes of a text, in order. The steps of the graph have the same names.
CHANGES = {
    "remove_space": lambda text: " ".join(text.split()),
    "join_quotes": lambda text: text.replace("``", '"').replace("''", '"'),
    "remove_accents": drop_accents,
    "lowercase": str.lower,
}


def steps(lowercase: bool, remove_space: bool, remove_accents: bool) -> list[str]:
    """Returns the names of the steps of cleaning, in order."""
    skipped = {
        "remove_space": not remove_space,
        "remove_accents": not remove_accents,
        "lowercase": not lowercase,
    }
    return [step for step in CHANGES if not skipped.get(step)]


def clean_text(text: str, lowercase: bool, remove_space: bool, remove_accents: bool) -> str:
    """Cleans a text before it is split into pieces.

    Replaces surrogates by U+FFFD. Then, in this order: replaces every run of white space by one
    space and strips the ends; replaces the LaTeX quotes ` `` ` and `''` by `"`; decomposes
    characters (NFKD) and drops combining characters; converts to lower case.
    """
    text = replace_surrogates(text)
    for step in steps(lowercase, remove_space, remove_accents):
        text = CHANGES[step](text)
    return text

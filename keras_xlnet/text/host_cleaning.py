"""The original's `preprocess_text` (`prepro_utils.py`), on the host."""

import re
import unicodedata

# Not characters: they cannot be written in UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str, lowercase: bool, remove_space: bool, remove_accents: bool) -> str:
    """Cleans a text before it is split into pieces, as `normalization.preprocess_text` does."""
    if not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    if remove_space:
        text = " ".join(text.strip().split())
    text = text.replace("``", '"').replace("''", '"')
    if remove_accents and not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(character for character in text if not unicodedata.combining(character))
    return text.lower() if lowercase else text

"""Sentence boundaries in text, found by a simple rule."""

import re
import unicodedata

# A sentence includes the closing quotes and brackets after its end mark. In scripts without spaces
# the end marks are wide characters and need no white space after them.
_CANDIDATE = re.compile(r"[.!?…।؟][\"'”’»)\]]*\s+|[。！？][」』”’）]*\s*")
_INITIAL = re.compile(r"(?:^|[\s(.])[^\W\d_]\.$")


def split_sentences(text: str) -> list[str]:
    """Splits a paragraph into sentences.

    A sentence ends after one of `. ! ? … । ؟` and any closing quotes or brackets, if white space
    and then no lower-case letter follows; and after one of `。 ！ ？`. A period after a single
    letter ("J. Smith", "U.S. Army") does not end a sentence. A period after a longer abbreviation
    ("Dr. Smith") does. The pretraining objective does not need exact sentence boundaries.

    Args:
        text: String, one paragraph.

    Returns:
        List of strings: the sentences, stripped, none of them empty. Together they contain every
        character of the paragraph except for the white space between sentences.

    Example:

    >>> from keras_xlnet.tokenizers.sentences import split_sentences
    >>> split_sentences('J. Smith asked: "Why?" We met, e.g. at home. So what?')
    ['J. Smith asked: "Why?"', 'We met, e.g. at home.', 'So what?']
    """
    sentences, begin = [], 0
    for match in _CANDIDATE.finditer(text):
        if _ends_sentence(text, begin, match):
            sentences.append(text[begin : match.end()].strip())
            begin = match.end()
    sentences.append(text[begin:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends_sentence(text, begin, match):
    if text[match.end() : match.end() + 1].islower():
        return False
    stop = match.start() + 1
    # Composed: a letter with accents is one letter.
    before = unicodedata.normalize("NFC", text[max(begin, stop - 6) : stop])
    return not _INITIAL.search(before)

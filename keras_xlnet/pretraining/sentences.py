"""Sentence boundaries in running text, by a simple rule."""

import re

# Closing quotes and brackets belong to the sentence that they end. In scripts without spaces the
# full stop is wide and needs none behind it.
_CANDIDATE = re.compile(r"[.!?…।؟][\"'”’»)\]]*\s+|[。！？][」』”’）]*\s*")
_INITIAL = re.compile(r"(?:^|[\s(.])[^\W\d_]\.$")


def split_sentences(text):
    """Splits a paragraph into sentences.

    A sentence ends at one of `. ! ? … । ؟`, with closing quotes or brackets behind it, where white
    space follows and then no lower-case letter; and at `。 ！ ？`. A full stop after a single
    letter ("J. Smith", "U.S. Army") ends none. Abbreviations of several letters before a name
    ("Dr. Smith") are taken for an end: segments that start there are a little short of a sentence,
    which the objective does not mind.

    Args:
        text: str, one paragraph.

    Returns:
        list of str: the sentences, stripped, none empty. Joined they have every character of the
        paragraph but the white space between them.

    Example:

    >>> from keras_xlnet.pretraining.sentences import split_sentences
    >>> split_sentences('J. Smith asked: "Why?" Nobody knew, e.g. at home. So what?')
    ['J. Smith asked: "Why?"', 'Nobody knew, e.g. at home.', 'So what?']
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
    return not _INITIAL.search(text[max(begin, stop - 4) : stop])

"""The tokens around blanks are those of the text with its blanks filled."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from keras_xlnet.tokenizers import VocabularyTokenizer, XLNetTokenizer

BLANK = "<mask>"
PARTS = (
    "New York is a city unable reading don't 1,000 9, 1999 (the ) \" ' . , ; - – £5 [x] un able "
    "Élan naïve हिन्दी 北京 \ue000 \0 \ufdd0 <sep> <eop> <MASK> mask `` '' … ½"
).split(" ")
SPACES = ["", " ", "  ", "\n", "\u3000"]


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    cased = XLNetTokenizer.from_preset("xlnet_small_en")
    path = tmp_path_factory.mktemp("vocabulary") / "cased.model"
    cased.save(path)
    uncased = XLNetTokenizer(path, lowercase=True, remove_accents=True)
    return cased, uncased


def with_blanks(text, words):
    """A text with a blank in place of words, `(start, end)` in characters."""
    for start, end in reversed(words):
        text = f"{text[:start]}{BLANK}{text[end:]}"
    return text


def expected_parts(tokenizer, text, words):
    """The tokens of a text that are not of the words; `None` if one of them is only in part."""
    ids, offsets = tokenizer(text, return_offsets=True)
    ids, start, end = (np.asarray(part) for part in (ids, offsets.start, offsets.end))
    parts, begin = [], 0
    for first, last in words:
        # The piece of a space has the place after the space: it belongs to the word.
        inside = (first <= start) & (end <= last)
        if not inside.any() or ((start < last) & (end > first) & ~inside).any():
            return None
        places = np.flatnonzero(inside)
        parts.append(ids[begin : places[0]].tolist())
        begin = places[-1] + 1
    return [*parts, ids[begin:].tolist()]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(SPACES))), st.data())
def test_tokens_are_those_of_the_filled_text(tokenizers, parts, data):
    text = "".join(part + space for part, space in parts)
    words = [match.span() for match in re.finditer(r"\w+", text)]
    assume(words)
    chosen = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=3, unique=True))
    chosen = sorted(chosen)
    for tokenizer in tokenizers:
        expected = expected_parts(tokenizer, text, chosen)
        if expected is not None:
            found = tokenizer.split_at_blanks(with_blanks(text, chosen))
            assert [part.tolist() for part in found] == expected


# Pieces, with `_` for each blank.
TEXTS = {
    "New York is a <mask>.": "▁New ▁York ▁is ▁a _ .",
    "<mask> is a city.": "_ ▁is ▁a ▁city .",
    "  <mask>": "_",
    "<mask>": "_",
    "a <mask>": "▁a _",
    'He said "<mask>".': '▁He ▁said ▁ " _ " .',
    "a (<mask>) here": "▁a ▁ ( _ ) ▁here",
    "un<mask>able": "▁un _ able",
    "<mask> <mask>": "_ _",
    "a <mask><mask>, <mask>": "▁a _ _ , _",
    "in <mask>,000": "▁in _ , 000",
}


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_around_blanks(text, tokenizers):
    for tokenizer in tokenizers[: 1 if text != text.lower() else 2]:
        parts = tokenizer.split_at_blanks(text)
        pieces = [[tokenizer.id_to_token(id) for id in part] for part in parts]
        assert " _ ".join(map(" ".join, pieces)).split() == TEXTS[text].split()


def test_other_symbols_are_text(tokenizers):
    for tokenizer in tokenizers:
        parts = tokenizer.split_at_blanks("a <MASK> \ufdd0 <mask>")
        assert len(parts) == 2
        assert parts[0].tolist() == tokenizer("a <MASK> \ufdd0").numpy().tolist()
    (first, second) = tokenizers[0].split_at_blanks("a ___ <mask>", blank="___")
    assert second.tolist() == tokenizers[0]("<mask>").numpy().tolist() and len(first) == 1


def test_words_of_a_vocabulary():
    tokenizer = VocabularyTokenizer.train(["a rose is a rose ."], end_token="<eos>")
    whole = tokenizer("a rose is .").numpy().tolist()
    parts = tokenizer.split_at_blanks("a <mask>\u3000is <mask>")
    assert [part.tolist() for part in parts] == [whole[:1], whole[2:3], whole[-1:]]
    for text in ("a <mask>.", "<mask><mask>"):
        with pytest.raises(ValueError, match="blanks that are whole words.* Received: '<mask>"):
            tokenizer.split_at_blanks(text)


def test_characters_of_a_vocabulary():
    tokenizer = VocabularyTokenizer.train(["a rose is."], unit="character", end_token="<eos>")
    whole = tokenizer("a  is.").numpy().tolist()
    parts = tokenizer.split_at_blanks("a<mask> <mask>is.")
    assert [part.tolist() for part in parts] == [whole[:1], whole[2:3], whole[3:]]

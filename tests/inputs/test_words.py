"""Words and tags in every form, their tokens, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_xlnet.inputs.words import (
    is_first_piece,
    is_words,
    sentence_words,
    tag_indices,
    token_labels,
)

NAMES = ["B-person", "I-person", "O"]
INDEX = np.array([[-1, 0, 0, 1, 2, 2, -1, -1], [0, 1, 1, 1, -1, -1, -1, -1]])


@pytest.mark.parametrize(
    "x", [["a b", "c"], [["a", "b"], ["c"]], [np.array(["a", "b"])], np.array(["a b"]), [[], ["a"]]]
)
def test_sentences_are_recognized(x):
    assert is_words(x)


@pytest.mark.parametrize("x", [{"token_ids": np.ones((2, 3), int)}, np.ones((2, 3)), [[1, 2]]])
def test_arrays_are_no_sentences(x):
    assert not is_words(x)


def test_strings_are_divided_into_words():
    text = "@paul: I don't know (yet) a.b@c.org, ok? naïve 日本"
    (words,), (places,) = sentence_words([text])
    expected = "@paul|:|I|don't|know|(|yet|)|a.b@c.org|,|ok|?|naïve|日本"
    assert words == expected.split("|")
    assert [text[a:b] for a, b in places] == words


@given(st.text(min_size=1).filter(str.strip))
def test_words_of_any_text_are_all_but_white_space(text):
    (words,), (places,) = sentence_words([text])
    assert "".join(words) == "".join(text.split())
    assert [text[a:b] for a, b in places] == words
    assert all(places[i][1] <= places[i + 1][0] for i in range(len(places) - 1))


def test_lists_of_words_stay():
    words = [["New York", "is", " "], ["big"]]
    assert sentence_words(words) == (words, None)


def test_labels_of_tokens():
    assert is_first_piece(INDEX).tolist() == [
        [False, True, False, True, True, False, False, False],
        [True, True, False, False, False, False, False, False],
    ]
    tags = [np.array([5, 6, 7]), np.array([8, 9])]
    no = -100
    assert token_labels(tags, INDEX).tolist() == [
        [no, 5, no, 6, 7, no, no, no],
        [8, 9, no, no, no, no, no, no],
    ]
    assert token_labels(tags, INDEX, all_pieces=True).tolist() == [
        [no, 5, 5, 6, 7, 7, no, no],
        [8, 9, 9, 9, no, no, no, no],
    ]


def test_tags_are_names_or_indices():
    words = [["Ann", "is"], ["here"]]
    for y in ([["B-person", "O"], ["O"]], [[0, 2], [2]], [np.array([0, 2]), ["O"]]):
        assert [row.tolist() for row in tag_indices(y, words, NAMES, 3)] == [[0, 2], [2]]
    assert tag_indices([[-100, 1], [0]], words, None, 2)[0].tolist() == [-100, 1]


BAD_TAGS = {
    "too few": ([["O"], ["O"]], "a tag for each word. Received in row 0: 1 tags for 2 words"),
    "unknown": ([["O", "O"], ["B-city"]], "Received in row 1, word 0 \\('here'\\): 'B-city'"),
    "out of range": ([[0, 3], [0]], "in row 0, word 1 \\('is'\\): 3"),
    "a fraction": ([[0, 0.5], [0]], "in row 0, word 1 \\('is'\\): 0.5"),
    "rows": ([["O", "O"]], "the tags of 2 sentences. Received: 1 rows"),
    "a string": (["OO", ["O"]], "a tag for each word. Received in row 0: 2 tags"),
    "none": (None, "the tags of 2 sentences. Received: None"),
}


@pytest.mark.parametrize("case", BAD_TAGS)
def test_bad_tags(case):
    y, message = BAD_TAGS[case]
    with pytest.raises(ValueError, match=message):
        tag_indices(y, [["Ann", "is"], ["here"]], NAMES, 3)


BAD_SENTENCES = {
    "one string": ("a b", "`x` must be a batch of sentences: pass a list"),
    "no words": ([["a"], []], r"Received in row 1: \[\]"),
    "white space": (["a", " "], r"lists of words, or strings with words. Received in row 1: \[\]"),
    "a number": ([["a", 3]], "words that are strings. Received in row 0, word 1: 3"),
    "mixed": (["a", ["b"]], r"`x` must be strings. Received in row 1: \['b'\]"),
}


@pytest.mark.parametrize("case", BAD_SENTENCES)
def test_bad_sentences(case):
    x, message = BAD_SENTENCES[case]
    with pytest.raises(ValueError, match=message):
        sentence_words(x)

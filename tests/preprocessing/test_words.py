"""Words and tags in every form, their tokens, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_xlnet.preprocessing.words import (
    is_first_piece,
    sentence_words,
    tag_indices,
    token_labels,
)

NAMES = ["B-person", "I-person", "O"]
INDEX = np.array([[-1, 0, 0, 1, 2, 2, -1, -1], [0, 1, 1, 1, -1, -1, -1, -1]])


def test_strings_are_divided_into_words():
    text = "@paul: I don't know (yet) a.b@c.org, ok? naïve 日本"
    (words,), (places,) = sentence_words([text])
    expected = "@paul|:|I|don't|know|(|yet|)|a.b@c.org|,|ok|?|naïve|日本"
    assert words == expected.split("|")
    assert [text[a:b] for a, b in places] == words


# Words of UAX 29, written down by hand: each text with `|` where words end, white space left out.
BY_UAX_29 = {
    "Hindi": "हिन्दी| |भाषा",
    "Bengali": "বাংলা| |ভাষা",
    "Tamil": "தமிழ்| |மொழி",
    "Sinhala, with a joiner": "ශ්\u200dරී| |ලංකා",
    "Arabic, with vowels": "مُحَمَّدٌ| |رَسُولٌ",
    "Hebrew, with points": "שָׁלוֹם| |עוֹלָם",
    "Hebrew, abbreviated": "צה״ל| |ג׳ירפה",
    "Persian, with a non-joiner": "می\u200cخواهم| |بروم",
    "Syriac": "ܫܠܳܡܳܐ| |ܥܠܰܝܟ",
    "decomposed": "cafe\u0301|,| |e\u0301te\u0301|.",
    "decomposed Vietnamese": "Vie\u0323\u0302t| |Nam",
    "decomposed Korean": "\u1112\u1161\u11ab| |\u1100\u1173\u11af",
    "a mark on punctuation": "(|a|)\u0301| |b",
    "a mark that encloses": "1\ufe0f\u20e3|#\ufe0f\u20e3",
    "joined emoji": "👩\u200d👩\u200d👧|👍🏽|🏳️\u200d🌈",
    "flags": "🇩🇪|🇫🇷| |🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "a soft hyphen": "co\u00adoperate",
    "a word joiner": "a\u2060b",
    "numbers": "1,000.50|,| |3.14",
    "Catalan": "col·legi",
}


@pytest.mark.parametrize("name", BY_UAX_29)
def test_words_are_those_of_uax_29(name):
    words = BY_UAX_29[name].split("|")
    text = "".join(words)
    (found,), (places,) = sentence_words([text])
    assert found == [word for word in words if word.strip()]
    assert [text[a:b] for a, b in places] == found


# Where the words are other ones than those of UAX 29, and why.
OTHERS = {
    "names and addresses": "@user|#topic|a@b.org|x-ray|and/or",
    "names with marks": "@हिन्दी|#भाषा",
    "runs of Chinese, Japanese and Thai": "我爱北京|東京タワーです|สวัสดีครับ",
    "a mark of direction, and of byte order": "\ufeffHello|\u200fשָׁלוֹם",
    "a zero width space ends a word": "ที่\u200b|นี่",
}


@pytest.mark.parametrize("name", OTHERS)
def test_words_that_are_not_those_of_uax_29(name):
    words = OTHERS[name].split("|")
    (found,), _ = sentence_words([words[0] + " ".join(["", *words[1:]])])
    assert found == words


def test_a_zero_width_space_stands_between_words():
    assert sentence_words(["ก\u200bข ค"])[0] == [["ก\u200b", "ข", "ค"]]


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


@given(st.lists(st.text(st.characters(categories=["L", "M"])).map("a{}".format), min_size=1))
def test_letters_with_marks_are_never_divided(words):
    assert sentence_words([" ".join(words)])[0] == [words]


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
    "one string": ("a b", "`x` must be a batch of texts: pass a list"),
    "no words": ([["a"], []], r"Received in row 1: \[\]"),
    "white space": (["a", " "], r"lists of words, or strings with words. Received in row 1: \[\]"),
    "a number": ([["a", 3]], "`x` must be strings. Received in row 0, word 1: 3"),
    "mixed": (["a", ["b", "c"]], r"`x` must be strings. Received in row 1: \['b', 'c'\]"),
}


@pytest.mark.parametrize("case", BAD_SENTENCES)
def test_bad_sentences(case):
    x, message = BAD_SENTENCES[case]
    with pytest.raises(ValueError, match=message):
        sentence_words(x)

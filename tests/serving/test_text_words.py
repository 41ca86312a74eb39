"""Words of texts in the graph are those of the host."""

import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_xlnet.preprocessing.words import sentence_words
from keras_xlnet.serving.text_words import split_words

# Characters that the rules name, close together.
NAMED = st.text(
    st.sampled_from("ab1٣,.'’-@#/·‧״ \t\n\u200b\u200d\u0301\u05f3🏽👩💻🇩🇪…ไ字_²½"), max_size=12
)
TEXTS = [
    "don't, 1,000 and 1,000,00 a@b.org e.g. #tag @user x,y 1,y ,1",
    "👩‍💻👍🏽 🇩🇪🇫🇷🇩 हिन्दी ก\u200bข ค\u200b \u200d👩 a\u200db",
    "Ann\u00a0Lee\u3000is\x00here \u00ad- ''x'' x--y x-\u0301y",
]


@pytest.fixture(scope="module")
def split():
    return tf.function(split_words, input_signature=[tf.TensorSpec([None], tf.string)])


def check(split, texts):
    words, start, end = split(tf.constant([text.encode() for text in texts], tf.string))
    for row, text in enumerate(texts):
        expected, places = ([[]], [[]]) if not text.strip() else sentence_words([text])
        assert [word.decode() for word in words[row].numpy()] == expected[0]
        found = zip(start[row].numpy(), end[row].numpy(), strict=True)
        assert [tuple(map(int, place)) for place in found] == places[0]


def test_words_that_the_rules_are_about(split):
    check(split, TEXTS)


@settings(max_examples=300)
@given(texts=st.lists(NAMED, max_size=3))
@example(texts=[])
@example(texts=["", " ", "a"])
def test_words_of_named_characters(split, texts):
    check(split, texts)


@settings(max_examples=100)
@given(texts=st.lists(st.text(), min_size=1, max_size=3))
def test_words_of_any_text(split, texts):
    check(split, texts)


@settings(max_examples=50)
@given(text=st.binary())
def test_bytes_that_are_not_utf8(split, text):
    words, _, _ = split(tf.constant([text]))
    whole = text.decode("utf-8", "replace")
    expected = sentence_words([whole])[0][0] if whole.strip() else []
    assert [word.decode() for word in words[0].numpy()] == expected

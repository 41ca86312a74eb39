"""`encode` of tokenizers and preprocessors, on the host, against the same in the graph."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.preprocessing import (
    XLNetMultipleChoicePreprocessor,
    XLNetTextClassifierPreprocessor,
    XLNetTokenClassifierPreprocessor,
)
from keras_xlnet.tokenizers import XLNetTokenizer

PARTS = [
    "a ship", "  the", "12,3", " 9,", "``q''", "½ﬁ", "ΣΑΣ ", "é", "İ",
    "東京", "\u3000", "\0", "🙂", ".",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).map("".join) | st.text(max_size=30)
# TensorFlow takes no lone surrogates.
TEXTS = TEXTS.filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text))
CLEANING = [
    {"lowercase": lower, "remove_accents": accents, "remove_space": space}
    for lower in (False, True)
    for accents in (False, True)
    for space in (False, True)
]


@pytest.fixture(scope="module")
def tokenizers(golden_dir):
    return [XLNetTokenizer(golden_dir / "spiece.model", **cleaning) for cleaning in CLEANING]


@pytest.fixture(scope="module")
def tokenizer(tokenizers):
    return tokenizers[0]


@settings(max_examples=60)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6), cleaning=st.sampled_from(range(8)))
def test_ids_and_texts_are_those_of_the_graph(texts, cleaning, tokenizers):
    tokenizer = tokenizers[cleaning]
    rows, expected = tokenizer.encode(texts), tokenizer(texts)
    assert [row.tolist() for row in rows] == expected.to_list()
    of_graph = [text.decode() for text in tokenizer.detokenize(expected).numpy()]
    assert [tokenizer.decode(row) for row in rows] == of_graph
    bytes_of_texts = [text.encode() for text in texts]
    for found, expected in zip(tokenizer.encode(bytes_of_texts), rows, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_what_is_not_utf_8_is_replaced(tokenizer):
    expected = tokenizer(b"a\xff ship").numpy()
    np.testing.assert_array_equal(tokenizer.encode([b"a\xff ship"])[0], expected)
    np.testing.assert_array_equal(tokenizer.encode(["a\ud800 ship"])[0], expected)


def test_many_texts_use_threads(tokenizer):
    texts = [f"{i}, the ship {i * 7}," for i in range(200)]
    for found, expected in zip(tokenizer.encode(texts), tokenizer(texts), strict=True):
        np.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize("ids", [[0.5], [[1]], [200], [-1]])
def test_bad_ids_are_named(ids, tokenizer):
    with pytest.raises(ValueError, match="`ids` must be"):
        tokenizer.decode(ids)


def check_equal(found, expected, side):
    """The arrays of the host are those of the graph, without padding that no row needs."""
    assert found.keys() == expected.keys()
    for key, value in found.items():
        length = value.shape[-1]
        whole = expected[key].numpy()
        needed = whole[..., :length] if side == "right" else whole[..., -length:]
        np.testing.assert_array_equal(value, needed)
        assert value.dtype == whole.dtype
    longest = expected["padding_mask"].numpy().sum(axis=-1).max()
    assert longest <= length < longest + 16


ARGUMENTS = [
    ("left", 24, "end"), ("right", 24, "end"), ("left", 5, "end"), ("right", 19, "middle"),
]  # fmt: skip


@pytest.fixture(scope="module", params=ARGUMENTS)
def preprocessor(request, tokenizer):
    side, length, truncation = request.param
    return XLNetTextClassifierPreprocessor(
        tokenizer, length, side, truncation=truncation, padding_token_id=5
    )


@settings(max_examples=12)
@given(pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_texts_and_pairs(pairs, preprocessor):
    texts, others = map(list, zip(*pairs, strict=True))
    side = preprocessor.padding_side
    check_equal(preprocessor.encode(texts).features, preprocessor({"text": texts}), side)
    expected = preprocessor({"text": texts, "pair": others})
    check_equal(preprocessor.encode((texts, others)).features, expected, side)


@settings(max_examples=15)
@given(sentences=st.lists(st.lists(TEXTS, min_size=1, max_size=6), min_size=1, max_size=4))
@pytest.mark.parametrize("side", ["left", "right"])
def test_words(side, sentences, tokenizer):
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, 20, side)
    encoded = preprocessor.encode(sentences)
    found = {**encoded.features, "word_index": encoded.word_index}
    expected, sentence = preprocessor.windows(sentences)
    check_equal(found, expected, side)
    np.testing.assert_array_equal(encoded.sentence, sentence)


@settings(max_examples=10)
@given(
    rows=st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=4)), min_size=1, max_size=4)
)
@pytest.mark.parametrize("as_original", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_choices(side, as_original, rows, tokenizer):
    texts, choices = map(list, zip(*rows, strict=True))
    preprocessor = XLNetMultipleChoicePreprocessor(tokenizer, 24, 8, side, as_original=as_original)
    found = preprocessor.encode((texts, choices)).features
    check_equal(found, preprocessor({"text": texts, "choices": choices}), side)

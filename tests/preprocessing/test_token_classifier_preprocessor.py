"""Words become tokens that know their word."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SENTENCES = [["The", "quiet", "river,"], ["9,000"], ["\u200b", "x", "Ann's", "café"]]


@pytest.fixture(scope="module")
def tokenizer():
    return XLNetTokenizer(GOLDEN / "spiece.model")


def twin(tokenizer, words, length):
    """Slow and obvious: the ids and the words of a sentence, padded on the right."""
    ids, index = [], []
    for place, word in enumerate(words):
        pieces = tokenizer(word).numpy().tolist() or [tokenizer.unk_token_id]
        ids += pieces
        index += [place] * len(pieces)
    ids, index = ids[: length - 2], index[: length - 2]
    ids += [tokenizer.sep_token_id, tokenizer.cls_token_id]
    index += [-1, -1]
    padding = length - len(ids)
    return ids + [0] * padding, index + [-1] * padding, [True] * len(ids) + [False] * padding


def check(tokenizer, sentences, length):
    features = XLNetTokenClassifierPreprocessor(tokenizer, length, padding_side="right")(sentences)
    for row, words in enumerate(sentences):
        ids, index, mask = twin(tokenizer, words, length)
        np.testing.assert_array_equal(features["token_ids"][row], ids)
        np.testing.assert_array_equal(features["word_index"][row], index)
        np.testing.assert_array_equal(features["padding_mask"][row], mask)
        segments = np.where(mask, 0, 4)
        segments[sum(mask) - 1] = 2
        np.testing.assert_array_equal(features["segment_ids"][row], segments)


@pytest.mark.parametrize("length", [3, 9, 40])
def test_equals_the_slow_twin(tokenizer, length):
    check(tokenizer, SENTENCES, length)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=4), min_size=1, max_size=3))
def test_equals_the_slow_twin_for_any_words(tokenizer, sentences):
    check(tokenizer, sentences, 12)


def test_padding_on_the_left(tokenizer):
    left, right = (
        XLNetTokenClassifierPreprocessor(tokenizer, 20, padding_side=side)(SENTENCES)
        for side in ("left", "right")
    )
    for row, count in enumerate(right["padding_mask"].numpy().sum(axis=1)):
        for key, value in right.items():
            np.testing.assert_array_equal(left[key][row], np.roll(value[row], -count))


def test_in_a_dataset_and_saved(tokenizer, tmp_path):
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, 20, padding_side="right")
    expected = preprocessor(SENTENCES)
    again = XLNetTokenClassifierPreprocessor.from_config(preprocessor.get_config())
    preprocessor.save_assets(tmp_path)
    again.load_assets(tmp_path)
    ragged = tf.ragged.constant(SENTENCES)
    dataset = tf.data.Dataset.from_tensor_slices(ragged).batch(3).map(preprocessor)
    for features in (again(SENTENCES), next(iter(dataset)), preprocessor(ragged)):
        for key, value in expected.items():
            np.testing.assert_array_equal(features[key], value)


def test_symbolic_inputs_are_refused(tokenizer):
    with pytest.raises(ValueError, match="The numbers of words differ"):
        XLNetTokenClassifierPreprocessor(tokenizer)(keras.Input((None,), dtype="string"))

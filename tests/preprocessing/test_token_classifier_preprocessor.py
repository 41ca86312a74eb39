"""Words become tokens that know their word."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
from keras_xlnet.preprocessing.labels import Classes

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SENTENCES = [["The", "quiet", "river,"], ["9,000"], ["\u200b", "x", "Ann's", "café"]]


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


@settings(max_examples=40)
@given(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=4), min_size=1, max_size=3))
def test_equals_the_slow_twin_for_any_words(tokenizer, sentences):
    check(tokenizer, sentences, 12)


@settings(max_examples=40)
@given(st.lists(st.lists(st.text(max_size=9), min_size=1, max_size=20), min_size=1, max_size=3))
@pytest.mark.parametrize("length", [3, 4, 10])
def test_each_word_counts_in_one_window(tokenizer, length, sentences):
    encoded = XLNetTokenClassifierPreprocessor(tokenizer, length).encode(sentences)
    found: list[list] = [[] for _ in sentences]
    for row, sentence in enumerate(encoded.sentence):
        ids, index = encoded.features["token_ids"][row], encoded.word_index[row]
        for word in dict.fromkeys(index[index >= 0].tolist()):
            pieces = tokenizer(sentences[sentence][word]).numpy().tolist()
            expected = pieces or [tokenizer.unk_token_id]
            count = (index == word).sum()
            assert ids[index == word].tolist() == expected[:count]
            # Only the end of a window cuts a word.
            assert count == len(expected) or index[-3] == word
            found[sentence].append(word)
    assert found == [list(range(len(words))) for words in sentences]


def test_words_count_where_they_have_most_context(tokenizer):
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, 18)
    encoded = preprocessor.encode([["x"] * 40, ["x"]])
    num_pieces = len(tokenizer("x").numpy())
    assert encoded.sentence.tolist() == [0] * (len(encoded) - 1) + [1]
    for row in range(1, len(encoded) - 2):
        places = np.flatnonzero(encoded.word_index[row] >= 0)
        # Half of a window of 16 tokens, in its middle.
        assert 4 <= places.min() < 4 + num_pieces and 10 <= places.max() < 13
    assert preprocessor.encode([["x"] * 3]).row is None


def test_labels_and_weights_of_windows(tokenizer):
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, 10)
    words = [["x"] * 30, ["x", "y"]]
    encoded = preprocessor.encode(words)
    tags = [np.arange(30) % 3, np.array([2, 1])]
    labels = preprocessor.encode_labels(tags, encoded, Classes(3))
    per_word = [np.arange(30.0), np.array([30.0, 31.0])]
    weights = preprocessor.encode_weights(per_word, encoded)
    for sentence in (0, 1):
        is_here = (encoded.sentence == sentence)[:, np.newaxis] & (labels != -100)
        assert labels[is_here].tolist() == tags[sentence].tolist()
        assert weights[is_here].tolist() == per_word[sentence].tolist()
    of_sentences = preprocessor.encode_weights([0.5, 2.0], encoded)
    assert of_sentences.tolist() == np.where(encoded.sentence == 0, 0.5, 2.0).tolist()


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

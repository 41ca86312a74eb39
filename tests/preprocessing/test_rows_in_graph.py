"""`packing_of`: every token of a batch stands at one place of rows that are well filled."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.preprocessing.rows_in_graph import packing_of
from keras_xlnet.serving.like_length import read_in_batches_of_like_length
from keras_xlnet.serving.token_reader import TokenReader
from tests.small_models import small_backbone

# Any number of texts of any length, as in a SavedModel.
in_graph = tf.function(packing_of, input_signature=[tf.TensorSpec((None, None), tf.bool)])


def mask_of(lengths, length, side):
    mask = np.arange(length) < np.array(lengths, int).reshape(-1, 1)
    return mask[:, ::-1] if side == "left" else mask


def fill(packing):
    return (packing >= 0).mean()


@hypothesis.given(
    st.lists(st.integers(0, 40), max_size=40), st.integers(0, 8), st.sampled_from(["left", "right"])
)
@hypothesis.settings(deadline=None, max_examples=60)
def test_every_token_has_one_place(lengths, spare, side):
    length = max(lengths, default=0) + spare
    mask = mask_of(lengths, length, side)
    packing = in_graph(mask).numpy()
    assert sorted(packing[packing >= 0]) == np.flatnonzero(mask).tolist()
    for text, size in enumerate(lengths):
        row, place = np.nonzero((packing >= 0) & (packing // max(length, 1) == text))
        assert len(set(row)) == min(size, 1), "a text stands in one row"
        assert place.tolist() == [*range(place[0], place[0] + size)] if size else True
        assert (np.diff(packing[row, place]) == 1).all(), "in the order of its tokens"


def test_texts_of_different_lengths_fill_rows():
    lengths = np.random.default_rng(0).integers(5, 40, 32)
    packing = in_graph(mask_of(lengths, 40, "left")).numpy()
    assert fill(packing) > 0.9 > 0.7 > lengths.mean() / 40


def test_long_texts_of_one_length_have_rows_of_their_own():
    """Rows of two cost more: each token attends to twice as many places."""
    assert in_graph(mask_of([256] * 8, 256, "left")).shape == (8, 256)


def test_one_text_stands_in_a_short_row():
    assert in_graph(mask_of([13], 128, "left")).shape == (1, 16)


@hypothesis.given(
    st.lists(st.integers(1, 40), min_size=1, max_size=40), st.integers(40, 90), st.integers(1, 4)
)
@hypothesis.settings(deadline=None, max_examples=60)
def test_rows_of_a_given_length_are_few(lengths, row_length, multiple):
    mask = mask_of(lengths, 40, "left")
    packing = packing_of(mask, row_length, multiple).numpy()
    assert sorted(packing[packing >= 0]) == np.flatnonzero(mask).tolist()
    assert packing.shape[1] == row_length and len(packing) % multiple == 0
    # Dealing fills rows to half at least, and a multiple may leave some empty.
    assert len(packing) <= 2 * -(-sum(lengths) // row_length) + multiple


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 40])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_request_is_read_in_batches_of_16(number, side):
    lengths = np.random.default_rng(number).integers(1, 33, number)
    mask = mask_of(lengths, 32, side)
    features = {"token_ids": np.arange(1, mask.size + 1).reshape(mask.shape) * mask}
    features = {"token_ids": features["token_ids"].astype("int32"), "padding_mask": mask}
    shapes = []
    specs = {name: tf.TensorSpec((None, None), value.dtype) for name, value in features.items()}
    specs["packing"] = tf.TensorSpec((None, None), tf.int32)

    @tf.function(input_signature=[specs])
    def sums(features):
        ids, packing = features["token_ids"], features["packing"]
        tf.numpy_function(lambda x: shapes.append(x.shape), [ids], [])
        texts = tf.where(packing >= 0, packing // tf.maximum(tf.shape(ids)[1], 1), 0)
        values = tf.gather(tf.reshape(ids, (-1,)), tf.maximum(packing, 0))
        values = tf.where(packing >= 0, values, 0)
        return {"sum": tf.math.unsorted_segment_sum(values, texts, tf.shape(ids)[0])}

    tensors = {name: tf.constant(value) for name, value in features.items()}
    found = read_in_batches_of_like_length(sums, tensors, side, packs=True)
    assert found["sum"].numpy().tolist() == features["token_ids"].sum(axis=1).tolist()
    last = [number % 16] if number % 16 or not number else []
    assert [rows for rows, _ in shapes] == [16] * (number // 16) + last


@pytest.mark.parametrize("side", ["left", "right"])
def test_answers_are_those_of_the_model(tokenizer, side):
    """A request of one text, and one of many, beside the model on padded rows."""
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=48, padding_side=side)
    model = XLNetTextClassifier(small_backbone(), num_classes=3, preprocessor=preprocessor)
    reader = TokenReader(model, None, lambda x, _: {"probabilities": x})
    texts = ["free", "call me when you can", "a prize of 500 is waiting: call now, it is free"] * 9
    features = preprocessor(texts)
    expected = model.predict(texts, verbose=0, batch_size=32, pack=False)
    for number in (1, 3, 27):
        rows = {name: value[:number] for name, value in features.items()}
        found = reader(**rows)["probabilities"]
        np.testing.assert_allclose(found, expected[:number], atol=2e-6)


def test_the_model_reads_fewer_places_than_padded_rows(tokenizer, monkeypatch):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=64)
    model = XLNetTextClassifier(small_backbone(), num_classes=2, preprocessor=preprocessor)
    shapes = []
    block = type(model.backbone.blocks[0])
    call = block.call

    def recorded(self, content, *args, **kwargs):
        tf.numpy_function(lambda x: shapes.append(x.shape), [content], [])
        return call(self, content, *args, **kwargs)

    monkeypatch.setattr(block, "call", recorded)
    reader = TokenReader(model, None, lambda x, _: {"probabilities": x})
    features = preprocessor(["a", "free", "win a free prize now " * 5] * 5)
    reader(**features)
    longest = max(int(n) for n in tf.reduce_sum(tf.cast(features["padding_mask"], tf.int32), 1))
    assert shapes and all(rows * length < 0.7 * 15 * longest for rows, length, _ in shapes)

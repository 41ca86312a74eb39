"""Rows that are read in batches of like length: the same outputs with less padding."""

import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.serving.like_length import read_in_batches, read_in_batches_of_like_length

LENGTH = 64


def rows_of(lengths, side):
    """Rows whose first real token is the number of the row, and the others are 1."""
    mask = np.arange(LENGTH) < np.array(lengths, int).reshape(-1, 1)
    ids = np.where(mask, 1, 0)
    ids[:, 0] = np.where(mask[:, 0], np.arange(len(mask)), 0)
    if side == "left":
        mask, ids = mask[:, ::-1], ids[:, ::-1]
    return {"token_ids": ids.astype("int32"), "padding_mask": mask}


def read(lengths, side="right"):
    """Returns the sums of rows, and the shapes that were read."""
    shapes = []
    specs = {
        "token_ids": tf.TensorSpec((None, None), tf.int32),
        "padding_mask": tf.TensorSpec((None, None), tf.bool),
    }

    @tf.function(input_signature=[specs])
    def sums(features):
        tf.numpy_function(lambda x: shapes.append(x.shape), [features["token_ids"]], [])
        ids, mask = features["token_ids"], features["padding_mask"]
        return {"sum": tf.reduce_sum(tf.where(mask, ids, 0), axis=1), "is_even": ids[:, 0] % 2 == 0}

    @tf.function
    def graph(features):
        return read_in_batches_of_like_length(sums, features, side)

    found = graph({name: tf.constant(value) for name, value in rows_of(lengths, side).items()})
    return found["sum"].numpy().tolist(), shapes


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("number", [1, 7, 8, 9, 40])
def test_all_rows_in_their_order(number, side):
    lengths = np.random.default_rng(number).integers(1, LENGTH + 1, number)
    found, shapes = read(lengths, side)
    assert found == [row + length - 1 for row, length in enumerate(lengths)]
    assert sum(rows for rows, _ in shapes) == number


def test_padding_to_the_longest_row_in_steps_of_16():
    assert read([3, 17, 20])[1] == [(3, 32)]
    assert read([16])[1] == [(1, 16)]
    assert read([LENGTH])[1] == [(1, LENGTH)]


def test_rows_of_different_lengths_are_read_apart():
    _, shapes = read([60, 2] * 16)
    assert shapes == [(8, 16), (8, 16), (8, 64), (8, 64)]


def test_rows_of_one_length_are_read_together():
    assert read([50] * 32)[1] == [(32, 64)]


def test_no_rows():
    found, shapes = read([])
    assert found == [] and shapes == [(0, 16)]


def test_several_texts_in_a_row():
    features = rows_of([3, 40, 20, 5], "right")
    features = {name: tf.reshape(value, (2, 2, LENGTH)) for name, value in features.items()}
    shapes = []
    specs = {name: tf.TensorSpec((None, None, None), x.dtype) for name, x in features.items()}

    @tf.function(input_signature=[specs])
    def sums(features):
        tf.numpy_function(lambda x: shapes.append(x.shape), [features["token_ids"]], [])
        return {"sum": tf.reduce_sum(features["token_ids"], axis=-1)}

    found = read_in_batches_of_like_length(sums, features, "right")
    assert found["sum"].numpy().tolist() == [[2, 40], [21, 7]]
    assert shapes == [(2, 2, 48)]


@pytest.mark.parametrize("side", ["left", "right"])
def test_outputs_of_tokens_are_as_long_as_the_features(side):
    lengths = [3, 60, 7, 33, 9, 2, 50, 1, 1, 1]
    features = rows_of(lengths, side)
    specs = {name: tf.TensorSpec((None, None), x.dtype) for name, x in features.items()}

    @tf.function(input_signature=[specs])
    def twice(features):
        return {"twice": features["token_ids"] * 2, "first": features["token_ids"][:, 0]}

    tensors = {name: tf.constant(value) for name, value in features.items()}
    found = read_in_batches_of_like_length(twice, tensors, side, of_tokens=["twice"])
    assert found["twice"].numpy().tolist() == (features["token_ids"] * 2).tolist()
    assert found["first"].shape == (len(lengths),)


@pytest.mark.parametrize("number", [1, 3, 4, 6])
def test_batches_of_one_size(number):
    """The shapes that are read are static; those of the outputs are not."""
    features = rows_of([5] * number, "right")
    specs = {name: tf.TensorSpec((3, LENGTH), x.dtype) for name, x in features.items()}

    @tf.function(input_signature=[specs])
    def first(features):
        return {"first": features["token_ids"][:, 0]}

    @tf.function
    def graph(features):
        found = read_in_batches(first, features, 3)
        assert found["first"].shape == (None,)
        return found

    found = graph({name: tf.constant(value) for name, value in features.items()})
    assert found["first"].numpy().tolist() == [*range(number)]

"""`StatefulMemory` returns what `RecurrentMemory` would have been given from call to call."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.layers import RecurrentMemory, StatefulMemory

BATCH, LENGTH, WIDTH = 3, 5, 4


@pytest.fixture
def segments(rng):
    return rng.normal(size=(4, BATCH, LENGTH, WIDTH)).astype("float32")


def pure_memories(segments, reuse_length, resets=None):
    pure, memory = RecurrentMemory(7, reuse_length), np.zeros((BATCH, 7, WIDTH), "float32")
    for i, segment in enumerate(segments):
        if resets is not None:
            memory = np.where(resets[i][:, None, None], 0, memory)
        yield memory
        memory = np.asarray(pure(segment, memory))


@pytest.mark.parametrize("reuse_length", [None, 2])
@pytest.mark.parametrize("compiled", [None, False, True])
def test_equals_memory_that_is_passed_on(segments, reuse_length, compiled):
    layer = StatefulMemory(7, reuse_length)
    call = layer if compiled is None else tf.function(layer, jit_compile=compiled)
    for segment, expected in zip(segments, pure_memories(segments, reuse_length), strict=True):
        np.testing.assert_array_equal(call(segment), expected)


def test_rows_that_begin_something_new_forget(segments, rng):
    layer, resets = StatefulMemory(7), rng.random((4, BATCH)) < 0.4
    assert 0 < resets.sum() < resets.size
    for segment, reset, expected in zip(
        segments, resets, pure_memories(segments, None, resets), strict=True
    ):
        np.testing.assert_array_equal(layer(segment, reset=reset), expected)


def test_masks_tell_which_rows_of_memory_are_real():
    layer = StatefulMemory(4, reuse_length=2)
    padding_mask = np.array([[0, 1, 1], [1, 1, 1]], "bool")
    layer(padding_mask)
    remembered = layer(padding_mask, reset=np.array([False, True]))
    assert remembered.dtype == tf.bool
    np.testing.assert_array_equal(remembered, [[0, 0, 0, 1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(layer(padding_mask), [[0, 1, 0, 1], [0, 0, 1, 1]])


def test_training_and_evaluation_are_two_memories(segments):
    layer = StatefulMemory(7)
    layer(segments[0], training=True)
    layer(segments[1])
    assert not np.array_equal(layer(segments[2]), layer(segments[2], training=True))
    layer.reset_evaluation_state()
    assert not np.any(layer(segments[0]))
    assert np.any(layer(segments[0], training=True))
    layer.reset_state()
    assert not np.any(layer(segments[0], training=True))


def test_memory_has_no_gradient_and_is_in_the_compute_dtype(segments):
    layer = StatefulMemory(7, dtype="mixed_bfloat16")
    content = tf.constant(segments[0], "bfloat16")
    with tf.GradientTape() as tape:
        tape.watch(content)
        layer(content)
        memory = layer(content)
    assert memory.dtype == tf.bfloat16 and np.any(tf.cast(memory, "float32"))
    assert tape.gradient(memory, content) is None
    assert not layer.trainable_variables


def model_of(batch_size, stateful=True):
    inputs = keras.Input((LENGTH, WIDTH), batch_size=batch_size)
    memory = StatefulMemory if stateful else RecurrentMemory
    return keras.Model(inputs, memory(7, name="memory")(inputs))


def test_saved_and_loaded_with_the_weights(segments, tmp_path):
    model = model_of(BATCH)
    model(segments[0], training=True)
    model(segments[1])
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    for training in (True, False):
        expected = model(segments[2], training=training)
        assert np.any(expected)
        np.testing.assert_array_equal(copy(segments[2], training=training), expected)


def test_weights_of_another_batch_size_or_without_memory_start_empty(segments, tmp_path):
    model = model_of(BATCH)
    model(segments[0], training=True)
    model.save_weights(tmp_path / "model.weights.h5")
    other = model_of(2)
    other(segments[0, :2], training=True)
    other.load_weights(tmp_path / "model.weights.h5")
    assert not np.any(other(segments[1, :2], training=True))
    model_of(BATCH, stateful=False).save_weights(tmp_path / "pure.weights.h5")
    model.load_weights(tmp_path / "pure.weights.h5")
    assert not np.any(model(segments[1], training=True))


def test_every_replica_remembers_its_own_rows(two_replicas, segments, tmp_path):
    with two_replicas.scope():
        model = model_of(BATCH)
    rows = np.concatenate([segments, 2 * segments], axis=1)
    run = tf.function(lambda x: two_replicas.run(lambda y: model(y, training=True), (x,)))
    for step, expected in enumerate(pure_memories(segments, None)):
        halves = two_replicas.experimental_distribute_values_from_function(
            lambda c, step=step: tf.constant(
                rows[step][BATCH * c.replica_id_in_sync_group :][:BATCH]
            )
        )
        first, second = two_replicas.experimental_local_results(run(halves))
        np.testing.assert_array_equal(first, expected)
        np.testing.assert_array_equal(second, 2 * expected)
    # Not saved: only the memory of replica 0 would be.
    with two_replicas.scope():
        model.save_weights(tmp_path / "model.weights.h5")
    single = model_of(BATCH)
    single(segments[0], training=True)
    single.load_weights(tmp_path / "model.weights.h5")
    assert not np.any(single(segments[1], training=True))


def test_misuse_raises_clear_errors(segments):
    with pytest.raises(ValueError, match="`StatefulMemory` needs a static batch size"):
        StatefulMemory(4)(keras.Input((LENGTH, WIDTH)))
    layer = StatefulMemory(4)
    layer(segments[0])
    with pytest.raises(ValueError, match="has 3 rows.*a batch of 2 rows"):
        layer(segments[0, :2])
    of_any_size = tf.function(layer).get_concrete_function(
        tf.TensorSpec((None, LENGTH, WIDTH), "float32")
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="stateful_memory_needs_full_batches"):
        of_any_size(tf.constant(segments[0, :2]))

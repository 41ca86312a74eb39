"""The random bits of `HashDropout` are as good as those of a random number generator."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_xlnet import layers
from keras_xlnet.ops import hash_dropout, random_bits

ROWS, COLUMNS = 2048, 512
# Of a standard normal variable: beyond it once in 30,000 tests.
UNLIKELY = 4.2


def bits(seed, shape=(ROWS, COLUMNS)):
    return np.asarray(random_bits(shape, np.array(seed, "uint32")))


@pytest.fixture(scope="module")
def numbers():
    return bits((123456789, 7))


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_share_of_zeros_and_mean(rate):
    x = np.ones((ROWS, COLUMNS), "float32")
    dropped = np.asarray(hash_dropout(x, rate, np.array([1, 2], "uint32")))
    spread = np.sqrt(rate * (1 - rate) / x.size)
    assert abs((dropped == 0).mean() - rate) < UNLIKELY * spread
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / (1 - rate)], rtol=1e-6)
    assert abs(dropped.mean() - 1) < UNLIKELY * spread / (1 - rate)


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_have_their_share(numbers, axis):
    # The sum of squared deviations has a chi-square distribution: neither too even nor too uneven.
    rate = 0.1
    zeros = (numbers < rate * 2**32).sum(axis=axis)
    n = numbers.shape[axis]
    chi_square = ((zeros - n * rate) ** 2 / (n * rate * (1 - rate))).sum()
    freedom = len(zeros)
    assert abs(chi_square - freedom) / np.sqrt(2 * freedom) < UNLIKELY


@pytest.mark.parametrize("bit", range(32))
def test_each_bit_is_set_in_half_of_the_numbers(numbers, bit):
    share = ((numbers >> np.uint32(bit)) & 1).mean()
    assert abs(share - 0.5) < UNLIKELY * 0.5 / np.sqrt(numbers.size)


@pytest.mark.parametrize("step", [1, 2, 3, 64, COLUMNS, COLUMNS + 1, 64 * COLUMNS, 2**19])
def test_masks_of_places_near_and_far_are_independent(numbers, step):
    mask = (numbers < 0.1 * 2**32).ravel()
    _assert_independent(mask[:-step], mask[step:])


@pytest.mark.parametrize(
    "other",
    [(123456789, 8), (123456789, 7 + 2**16), (123456788, 7), (7, 123456789), (0, 0), (1, 0)],
)
def test_masks_of_other_seeds_are_independent(numbers, other):
    _assert_independent(numbers < 0.1 * 2**32, bits(other) < 0.1 * 2**32)


def test_masks_of_counted_up_seeds_are_independent_of_place():
    # One place in 4096 calls: what a weight sees in training.
    seeds = tf.stack([tf.fill([4096], 5), tf.range(4096)], axis=1)
    masks = tf.function(
        lambda: tf.map_fn(
            lambda seed: random_bits((4, 8), seed), seeds, fn_output_signature="uint32"
        )
    )
    seen = masks().numpy() < 0.1 * 2**32
    shares = seen.mean(axis=0)
    assert np.abs(shares - 0.1).max() < UNLIKELY * np.sqrt(0.09 / len(seen))
    _assert_independent(seen[:-1], seen[1:])


def test_other_tensors_of_a_seed_have_other_masks():
    small, large = bits((3, 4), (64, 64)), bits((3, 4), (64, 128))
    assert (small == large[:, :64]).mean() < 0.1


def _assert_independent(first, second):
    together = (first & second).mean()
    expected = first.mean() * second.mean()
    assert abs(together - expected) < UNLIKELY * np.sqrt(expected / first.size)


def test_graph_xla_and_eager_draw_the_same():
    def call():
        return random_bits((5, 7), tf.constant([11, 12], "int64"))

    expected = call()
    for jit_compile in (False, True):
        np.testing.assert_array_equal(tf.function(call, jit_compile=jit_compile)(), expected)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_the_gradient_has_the_mask_of_the_forward_pass(dtype):
    layer = layers.HashDropout(0.4, seed=3, dtype=dtype)
    x = tf.Variable(np.random.default_rng(0).normal(size=(16, 32)).astype("float32"))

    @tf.function
    def both():
        with tf.GradientTape() as tape:
            dropped = layer(x, training=True)
            total = tf.reduce_sum(tf.cast(dropped, "float32"))
        return dropped, tape.gradient(total, x)

    first, gradient = both()
    np.testing.assert_array_equal(np.asarray(ops.cast(first, "float32")) != 0, gradient != 0)
    second, _ = both()
    assert (np.asarray(first != 0) != np.asarray(second != 0)).any()


def test_nothing_is_dropped_without_training_or_rate():
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    for layer, training in ((layers.HashDropout(0.5), False), (layers.HashDropout(0.0), True)):
        np.testing.assert_array_equal(layer(x, training=training), x)


def test_replicas_draw_their_own():
    devices = tf.config.list_logical_devices("CPU")
    if len(devices) < 2:
        pytest.skip("needs two logical devices")
    strategy = tf.distribute.MirroredStrategy([d.name for d in devices[:2]])
    with strategy.scope():
        layer = layers.HashDropout(0.5, seed=3)

    @tf.function
    def masks():
        return strategy.run(lambda: layer(tf.ones((64,)), training=True))

    first, second = strategy.experimental_local_results(masks())
    assert (first.numpy() != second.numpy()).any()


def test_a_rate_near_1_leaves_nothing():
    assert not np.asarray(hash_dropout(np.ones(1000, "float32"), 1 - 1e-12, np.array([1, 2]))).any()


def test_rate_is_checked():
    with pytest.raises(ValueError, match="rate"):
        layers.HashDropout(1.0)
    assert keras.layers.deserialize(keras.layers.serialize(layers.HashDropout(0.3))).rate == 0.3

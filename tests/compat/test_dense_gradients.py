"""The update with dense gradients is that of the sum of the sparse ones.

TensorFlow's kernel of Adam computes `1 - beta_2` in float32, Keras in float64: the second moments
differ by 1e-5, the weights after 4 steps by 2e-6.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.compat.dense_gradients import dense_gradients
from keras_xlnet.training import AdamWeightDecay, LambWeightDecay

STEPS = 4
OPTIMIZERS = {
    "adamw": lambda: keras.optimizers.AdamW(0.1),
    "clipped": lambda: keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5),
    "schedule": lambda: keras.optimizers.Lamb(keras.optimizers.schedules.CosineDecay(0.1, STEPS)),
    "accumulated": lambda: keras.optimizers.AdamW(0.1, gradient_accumulation_steps=2),
    "averaged": lambda: keras.optimizers.Adam(0.1, use_ema=True, ema_overwrite_frequency=2),
    "scaled": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1), 8.0),
    "ours": lambda: AdamWeightDecay(0.1, weight_decay=0.1),
    "our-lamb": lambda: LambWeightDecay(0.1, weight_decay=0.1),
}


def gradient_steps():
    rng = np.random.default_rng(6)
    for _ in range(STEPS):
        # Token 4 occurs twice.
        rows = tf.constant(rng.normal(size=(3, 2)), "float32")
        rows = tf.IndexedSlices(rows, tf.constant([4, 1, 4]), tf.constant([5, 2]))
        yield tf.constant(rng.normal(size=(3, 2)), "float32"), rows


def trained(optimizer, context, eager=False):
    rng = np.random.default_rng(5)
    variables = [
        keras.Variable(rng.normal(size=s), dtype="float32") for s in ((3, 2), (2,), (5, 2))
    ]
    optimizer.build(variables)

    def step(first, rows):
        with context(optimizer):
            optimizer.apply_gradients(zip((first, None, rows), variables, strict=True))

    def step_of_replica(*args):
        return tf.distribute.get_strategy().run(step, args)

    step_of_all = step if eager else tf.function(step_of_replica)
    for first, rows in gradient_steps():
        step_of_all(first, rows if context is dense_gradients else tf.convert_to_tensor(rows))
    return [np.asarray(v) for v in (*variables, *optimizer.variables)]


def as_it_is(optimizer):
    return tf.name_scope("as_it_is")


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_and_slots_are_those_without(name):
    expected = trained(OPTIMIZERS[name](), as_it_is)
    actual = trained(OPTIMIZERS[name](), dense_gradients)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, atol=5e-6)


def test_the_optimizer_is_left_as_it_was():
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def step():
        with pytest.raises(KeyError), dense_gradients(optimizer):
            assert "apply" in vars(optimizer)
            raise KeyError
        assert "apply" not in vars(optimizer)

    step()


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_eager_steps_and_strategies():
    expected = trained(keras.optimizers.Adam(0.1), as_it_is)
    eager = trained(keras.optimizers.Adam(0.1), dense_gradients, eager=True)
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        distributed = trained(keras.optimizers.Adam(0.1), dense_gradients)
    for actual in (eager, distributed):
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, e, atol=5e-6)

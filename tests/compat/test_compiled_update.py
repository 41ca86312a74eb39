"""The compiled update of the weights is the optimizer's own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.compat.compiled_update import compiled_update
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
        step_of_all(first, rows if context is compiled_update else tf.convert_to_tensor(rows))
    return [np.asarray(v) for v in (*variables, *optimizer.variables)], step_of_all


def as_it_is(optimizer):
    return tf.name_scope("as_it_is")


def functions_for_xla(step):
    (traced,) = step._list_all_concrete_functions()
    library = traced.graph.as_graph_def().library
    return [f.signature.name for f in library.function if "_XlaMustCompile" in f.attr]


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_and_slots_are_those_without(name):
    expected, plain = trained(OPTIMIZERS[name](), as_it_is)
    actual, compiled = trained(OPTIMIZERS[name](), compiled_update)
    assert not functions_for_xla(plain)
    assert functions_for_xla(compiled)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, atol=2e-6)


def test_the_optimizer_is_left_as_it_was():
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def step():
        with pytest.raises(KeyError), compiled_update(optimizer):
            assert "apply" in vars(optimizer)
            raise KeyError
        assert "apply" not in vars(optimizer)

    step()


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_eager_steps_and_strategies_do_without_xla():
    expected, _ = trained(keras.optimizers.Adam(0.1), as_it_is)
    eager, _ = trained(keras.optimizers.Adam(0.1), compiled_update, eager=True)
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        distributed, step = trained(keras.optimizers.Adam(0.1), compiled_update)
    assert not functions_for_xla(step)
    for actual in (eager, distributed):
        for a, e in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, e, atol=2e-6)

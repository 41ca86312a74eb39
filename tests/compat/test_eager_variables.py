"""A model is traced once, and trains and is saved as one that is traced twice."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.compat.dense_gradients import dense_gradients
from keras_xlnet.compat.eager_variables import eager_variables
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier

X = np.random.default_rng(3).normal(size=(8, 3)).astype("float32")
Y = np.arange(8.0)[:, None]
OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.1),
    "averaged": lambda: keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True),
    "accumulated": lambda: keras.optimizers.AdamW(0.1, gradient_accumulation_steps=2),
    "scaled": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.1), 8.0),
}


class Model(keras.Sequential):
    """Counts how often its steps are traced."""

    context = eager_variables

    def train_step(self, data):
        self.traced.append("train")
        with type(self).context(), dense_gradients(self.optimizer):
            return super().train_step(data)

    def test_step(self, data):
        self.traced.append("test")
        with type(self).context():
            return super().test_step(data)


class Plain(Model):
    context = contextlib.nullcontext


def make(model_class, optimizer, **arguments):
    model = model_class([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.traced = []
    model.compile(optimizer, "mse", metrics=["mae", keras.metrics.R2Score()], **arguments)
    return model


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_traced_once_with_the_same_history_and_variables(name):
    results = {}
    for model_class in (Model, Plain):
        model = make(model_class, OPTIMIZERS[name]())
        arguments = {"batch_size": 4, "epochs": 3, "shuffle": False, "verbose": 0}
        history = model.fit(X, Y, validation_data=(X, Y), **arguments).history
        results[model_class] = history, model.optimizer.variables, model.traced
    (history, slots, traced), (plain_history, plain_slots, plain_traced) = results.values()
    assert traced == ["train", "test"]
    assert plain_traced.count("train") == 2
    assert set(history) == set(plain_history)
    for key, values in history.items():
        np.testing.assert_allclose(values, plain_history[key], rtol=1e-5, err_msg=key)
    assert len(slots) == len(plain_slots)
    for slot, plain in zip(slots, plain_slots, strict=True):
        np.testing.assert_allclose(slot, plain, atol=1e-5, err_msg=slot.path)


def test_evaluated_alone_is_traced_once():
    model = make(Model, "sgd")
    found = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert model.traced == ["test"]
    assert found == pytest.approx(make(Plain, "sgd").evaluate(X, Y, verbose=0, return_dict=True))


def test_optimizer_knows_variables_without_a_gradient():
    a, b = keras.Variable([1.0]), keras.Variable([1.0])
    optimizer = keras.optimizers.SGD(0.5)

    @tf.function
    def step(first, *others):
        with eager_variables(), dense_gradients(optimizer):
            gradients = [first, *others] if others else [first, None]
            optimizer.apply_gradients(zip(gradients, [a, b], strict=True))

    step(tf.ones(1))
    step(tf.ones(1), tf.ones(1))
    assert (float(a[0]), float(b[0])) == (0.0, 0.5)


def test_eagerly_and_under_a_strategy_nothing_changes(two_replicas):
    def creators():
        return tf.Variable(0.0, name="here").name, tf.executing_eagerly()

    with eager_variables():
        assert creators() == ("here:0", True)
    with two_replicas.scope(), eager_variables():
        assert isinstance(tf.Variable(0.0), tf.distribute.DistributedValues)


def test_a_value_of_the_graph_is_left_to_tensorflow():
    held = []

    @tf.function
    def step(x):
        with eager_variables():
            if not held:
                held.append(tf.Variable(tf.ones(2)))
            return held[0] + x

    np.testing.assert_array_equal(step(tf.ones(2)), [2.0, 2.0])


def test_models_of_this_package_are_traced_once(monkeypatch):
    traced = []
    compute_loss = XLNetTextClassifier.compute_loss

    def counted(self, *args, **kwargs):
        traced.append("loss")
        return compute_loss(self, *args, **kwargs)

    monkeypatch.setattr(XLNetTextClassifier, "compute_loss", counted)
    model = XLNetTextClassifier(XLNetBackbone(40, 1, 2, 16, 32), 2)
    inputs = {"token_ids": np.random.default_rng(0).integers(9, 40, (4, 5))}
    model.fit(inputs, np.array([0, 1, 1, 0]), batch_size=2, epochs=2, verbose=0)
    assert traced == ["loss"]

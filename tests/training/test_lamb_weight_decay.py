"""LambWeightDecay equals the LAMB optimizer of tensorflow-addons."""

import json

import keras
import numpy as np
import pytest

from keras_xlnet.training import LambWeightDecay
from tests.training.original_steps import steps_of_addons

ATOL = 1e-6


@pytest.mark.parametrize(
    "case, kwargs",
    [
        ("lamb", {"weight_decay": 0.0, "weight_decay_exclusions": []}),
        ("lamb_wd", {"weight_decay_exclusions": []}),
        ("lamb_wd_excl", {"weight_decay_exclusions": ["bias"]}),
    ],
)
def test_steps_of_addons(golden, case, kwargs):
    expected = golden("addons/tfa.npz")
    optimizer = LambWeightDecay(0.01, **{"weight_decay": 0.01, "epsilon": 1e-6, **kwargs})
    for step, values in enumerate(steps_of_addons(golden("addons/traj.npz"), optimizer)):
        for i, value in enumerate(values):
            np.testing.assert_allclose(value, expected[f"{case}_{step}_{i}"], rtol=0, atol=ATOL)


def test_without_decay_it_equals_lamb_of_keras(golden):
    arrays = golden("addons/traj.npz")
    ours = LambWeightDecay(0.01, weight_decay=0, weight_decay_exclusions=[])
    of_keras = keras.optimizers.Lamb(0.01, epsilon=1e-6)
    for a, b in zip(steps_of_addons(arrays, ours), steps_of_addons(arrays, of_keras), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=ATOL)


def test_variables_and_updates_with_norm_zero():
    zeros, ones = (keras.Variable(np.full(2, x), name="kernel") for x in (0.0, 1.0))
    optimizer = LambWeightDecay(0.1, weight_decay=0.0)
    optimizer.apply([np.ones(2, "float32"), np.zeros(2, "float32")], [zeros, ones])
    np.testing.assert_allclose(zeros.numpy(), [-0.1, -0.1], atol=1e-5)
    np.testing.assert_array_equal(ones.numpy(), [1.0, 1.0])


@pytest.mark.parametrize("kwargs", [{"jit_compile": True}, {"run_eagerly": True}])
def test_trains_and_round_trips(kwargs):
    optimizer = LambWeightDecay(0.05, weight_decay=0.1, global_clipnorm=1.0)
    config = json.loads(json.dumps(keras.optimizers.serialize(optimizer)))
    assert config["registered_name"] == "keras_xlnet>LambWeightDecay"
    optimizer = keras.optimizers.deserialize(config)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse", **kwargs)
    x = np.random.default_rng(0).normal(size=(32, 2))
    losses = model.fit(x, x @ [[1.0], [2.0]], epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]

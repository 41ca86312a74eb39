"""The learning rates equal those of the original, step by step."""

import json
import re

import keras
import numpy as np
import pytest

from keras_xlnet.training import AdamWeightDecay, WarmupPolynomialDecay
from tests.training import original_steps


def assert_rates_equal(schedule, steps, expected):
    actual = [keras.ops.convert_to_numpy(schedule(step)) for step in steps]
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-9)


def test_rates_of_the_original(golden):
    for case in golden("optimizer.json")["learning_rates"]:
        flags = {key: value for key, value in case.items() if key not in ("lr", "steps")}
        if "nan" in case["lr"]:
            with pytest.raises(ValueError, match="`warmup_steps` must be .* less than"):
                original_steps.schedule(**flags)
        else:
            assert_rates_equal(original_steps.schedule(**flags), case["steps"], case["lr"])


@pytest.mark.parametrize("file", ["optimizer", "train"])
def test_rates_of_the_steps_of_the_original(golden, file):
    for case, flags in golden(f"{file}.json")["cases"].items():
        expected = golden(f"{file}.npz")[f"{case}{'/' if file == 'optimizer' else '_'}lr"]
        schedule = original_steps.schedule(**flags.get("FLAGS", flags))
        assert_rates_equal(schedule, range(len(expected)), expected)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_in_a_graph_with_the_counter_of_an_optimizer(jit_compile):
    import tensorflow as tf

    schedule = WarmupPolynomialDecay(0.1, 6, 2, min_ratio=0.1, power=2.0)
    rate = tf.function(schedule, jit_compile=jit_compile)
    for step in range(8):
        expected = 0.05 * step if step < 2 else 0.09 * (max(6 - step, 0) / 4) ** 2 + 0.01
        assert float(rate(tf.constant(step, "int64"))) == pytest.approx(expected, rel=1e-6)


def test_counts_in_float32_under_half_precision():
    keras.config.set_floatx("float16")
    try:
        assert float(WarmupPolynomialDecay(0.5, 100_001)(100_000)) == pytest.approx(5e-6, rel=1e-3)
    finally:
        keras.config.set_floatx("float32")


def test_keras_counts_accumulated_batches():
    # A property of Keras that the docstring of the schedule mentions.
    variable = keras.Variable(np.ones(1), name="kernel")
    schedule = WarmupPolynomialDecay(1.0, 100, 50)
    optimizer = AdamWeightDecay(schedule, gradient_accumulation_steps=2)
    for _ in range(4):
        optimizer.apply([np.ones(1, "float32")], [variable])
    assert float(optimizer.learning_rate) == pytest.approx(4 / 50)


def test_config_round_trip():
    schedule = WarmupPolynomialDecay(0.1, 6, warmup_steps=2, min_ratio=0.1, power=2)
    config = keras.optimizers.schedules.serialize(schedule)
    again = keras.optimizers.schedules.deserialize(json.loads(json.dumps(config)))
    assert again.get_config() == schedule.get_config()
    assert float(again(3)) == float(schedule(3))


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"learning_rate": -0.1}, "`learning_rate` must be a number, 0 or above. Received: "),
        ({"learning_rate": "fast"}, "`learning_rate` must be a number, 0 or above"),
        ({"train_steps": 0}, "`train_steps` must be a positive integer"),
        ({"warmup_steps": -1}, "`warmup_steps` must be an integer, 0 or above and less than"),
        ({"warmup_steps": 10}, "Received: warmup_steps=10, train_steps=10"),
        ({"min_ratio": 1.5}, "`min_ratio` must be a number, from 0 to 1. Received: min_ratio=1.5"),
        ({"power": float("nan")}, "`power` must be a number, 0 or above. Received: power=nan"),
    ],
)
def test_wrong_arguments(kwargs, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        WarmupPolynomialDecay(**{"learning_rate": 0.1, "train_steps": 10, **kwargs})

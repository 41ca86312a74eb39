"""The default optimizer of task models: its schedule follows each call of `fit`."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.training import FineTuningAdamW


class Rates(keras.callbacks.Callback):
    """Keeps the rate that each step is done with."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_train_batch_begin(self, batch, logs=None):
        step = keras.ops.convert_to_numpy(self.model.optimizer.iterations)
        self.found.append(float(self.model.optimizer.schedule(step)))


def classifier_of(width=16):
    backbone = XLNetBackbone(40, 1, 2, width, 32)
    return XLNetTextClassifier(backbone, num_classes=2)


def expected_rates(highest, steps, warmup_ratio=0.1):
    """The slow twin, step by step."""
    warmup = max(1.0, warmup_ratio * steps)
    fall = max(1.0, (1 - warmup_ratio) * steps)
    return [highest * min((i + 1) / warmup, (steps - i) / fall, 1.0) for i in range(steps)]


@pytest.fixture
def data(rng):
    return {"token_ids": rng.integers(9, 40, (12, 5))}, np.arange(12) % 2


def test_each_fit_has_its_own_rise_and_fall(data):
    model = classifier_of()
    model.compile(FineTuningAdamW(1e-2))
    for epochs, batch_size in ((5, 2), (2, 4)):
        rates = Rates()
        model.fit(*data, epochs=epochs, batch_size=batch_size, callbacks=rates, verbose=0)
        expected = expected_rates(1e-2, epochs * 12 // batch_size)
        np.testing.assert_allclose(rates.found, expected, rtol=1e-5)


def test_the_compiled_step_takes_the_rate_of_its_own_fit(data):
    """A function that was compiled in the first `fit` would do the second one with a rate of 0."""
    model = classifier_of()
    model.compile(FineTuningAdamW(1e-2, weight_decay=0.0))
    model.fit(*data, epochs=2, verbose=0)
    weights = model.trainable_weights
    before = [keras.ops.convert_to_numpy(weight) for weight in weights]
    model.fit(*data, epochs=2, verbose=0)
    moved = [
        np.abs(keras.ops.convert_to_numpy(w) - b).max()
        for w, b in zip(weights, before, strict=True)
    ]
    assert max(moved) > 1e-3


def test_a_later_epoch_as_the_first_one(data):
    model, rates = classifier_of(), Rates()
    model.compile(FineTuningAdamW(1e-2))
    arguments = {"epochs": 5, "initial_epoch": 3, "batch_size": 4, "verbose": 0}
    model.fit(*data, callbacks=[rates], **arguments)
    np.testing.assert_allclose(rates.found, expected_rates(1e-2, 6), rtol=1e-5)


def test_unknown_length_has_a_constant_rate(data):
    model, rates = classifier_of(), Rates()
    model.compile(FineTuningAdamW(1e-2))
    batches = (({"token_ids": data[0]["token_ids"][:4]}, data[1][:4]) for _ in range(3))
    model.fit(batches, callbacks=[rates], verbose=0)
    np.testing.assert_allclose(rates.found, 1e-2, rtol=1e-6)


def test_train_on_batch_after_fit_has_the_highest_rate(data):
    model = classifier_of()
    model.compile(FineTuningAdamW(1e-2, weight_decay=0.0))
    model.fit(*data, epochs=2, verbose=0)
    weights = model.trainable_weights
    before = [keras.ops.convert_to_numpy(weight) for weight in weights]
    model.train_on_batch(*data)
    moved = [
        np.abs(keras.ops.convert_to_numpy(w) - b).max()
        for w, b in zip(weights, before, strict=True)
    ]
    assert max(moved) > 1e-3


def test_saved_models_have_the_highest_rate_and_not_the_last(data, tmp_path):
    model = classifier_of()
    model.compile(FineTuningAdamW(1e-2, warmup_ratio=0.2))
    model.fit(*data, epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    optimizer = keras.saving.load_model(tmp_path / "model.keras").optimizer
    assert optimizer.schedule.highest == 1e-2
    assert optimizer.schedule.warmup_ratio == 0.2
    assert float(optimizer.learning_rate) == pytest.approx(1e-2)


@pytest.mark.parametrize(("width", "expected"), [(768, 5e-5), (384, 2e-4), (1024, 2.8125e-5)])
def test_the_default_rate_falls_with_the_width(width, expected):
    assert classifier_of(width).optimizer.schedule.highest == pytest.approx(expected)


def test_the_default_rate_of_small_models_is_bounded():
    assert classifier_of(16).optimizer.schedule.highest == 1e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"warmup_ratio": 1.5}, "warmup_ratio"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        FineTuningAdamW(**arguments)

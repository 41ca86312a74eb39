"""The default optimizer of task models: its schedule follows each call of `fit`."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import TransformerXLLanguageModel, XLNetBackbone, XLNetTextClassifier
from keras_xlnet.training import ExactBackupAndRestore, FineTuningAdamW
from tests.training.compute import Rates, rates_and_traces
from tests.training.train_and_be_killed import Interrupt


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


@pytest.mark.parametrize(
    ("arguments", "policy"),
    [
        ({"gradient_accumulation_steps": 4}, "float32"),  # 18 batches: 4 updates, and 2 batches.
        ({"use_ema": True, "ema_overwrite_frequency": 3}, "float32"),
        ({}, "mixed_float16"),  # Another optimizer scales the loss.
    ],
)
def test_later_fits_have_the_rates_of_the_first_and_trace_nothing(arguments, policy):
    found = rates_and_traces(policy, **arguments)
    for rates, _ in found:
        np.testing.assert_allclose(rates, expected_rates(1e-2, 18), rtol=1e-5)
    assert [traces for _, traces in found] == [1, 0, 0]


def test_each_update_has_the_rate_of_the_batch_that_completes_it(data):
    """Weights after an update, and not only what the optimizer says."""
    model = classifier_of()
    model.compile(FineTuningAdamW(1e-2, gradient_accumulation_steps=4, weight_decay=0.0))
    model.fit(*data, batch_size=2, verbose=0)  # 6 batches: two have no update yet.
    updates = []

    class Updates(Rates):
        def on_train_batch_begin(self, batch, logs=None):
            self.before = model.get_weights()

        def on_train_batch_end(self, batch, logs=None):
            moved = zip(model.get_weights(), self.before, strict=True)
            updates.append(max(np.abs(a - b).max() for a, b in moved) > 0)

    rates = Rates()
    model.fit(*data, batch_size=2, epochs=2, callbacks=[Updates(), rates], verbose=0)
    assert updates == [False, True] + 2 * [False, False, False, True] + [False, False]
    np.testing.assert_allclose(rates.found, expected_rates(1e-2, 12), rtol=1e-5)


def test_language_models_have_the_schedule_too(rng):
    model, rates = TransformerXLLanguageModel(40, 1, 2, 16, 32), Rates()
    model.compile(FineTuningAdamW(1e-2), run_eagerly=True)
    ids = rng.integers(0, 40, (8, 4))
    model.fit({"token_ids": ids}, ids, batch_size=2, callbacks=[rates], verbose=0)
    np.testing.assert_allclose(rates.found, expected_rates(1e-2, 4), rtol=1e-5)


def test_a_fit_that_was_interrupted_goes_on_where_it_was(data, tmp_path):
    """Also where the interrupted `fit` was not the first one, and the process is a new one."""
    model = classifier_of()
    model.compile(FineTuningAdamW(1e-2, gradient_accumulation_steps=2), run_eagerly=True)
    arguments = {"epochs": 4, "batch_size": 4, "verbose": 0}
    model.fit(*data, **arguments)
    model.save(tmp_path / "model.keras")
    backup = ExactBackupAndRestore(tmp_path / "backup")
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data, callbacks=[backup, Interrupt(epoch=2, step=1)], **arguments)
    assert float(model.optimizer.learning_rate) == pytest.approx(1e-2)
    model, rates = keras.saving.load_model(tmp_path / "model.keras"), Rates()
    model.fit(*data, callbacks=[backup, rates], **arguments)
    np.testing.assert_allclose(rates.found, expected_rates(1e-2, 12)[6:], rtol=1e-5)


def test_stopped_early_the_next_fit_has_its_own_schedule(data):
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 1

    model, rates = classifier_of(), Rates()
    model.compile(FineTuningAdamW(1e-2), run_eagerly=True)
    model.fit(*data, batch_size=2, callbacks=[Stop()], verbose=0)
    assert float(model.optimizer.learning_rate) == pytest.approx(1e-2)  # In `train_on_batch`.
    model.fit(*data, batch_size=2, callbacks=[rates], verbose=0)
    np.testing.assert_allclose(rates.found, expected_rates(1e-2, 6), rtol=1e-5)


def test_files_without_the_variable_of_the_schedule_are_loaded(data, tmp_path):
    model = classifier_of()
    model.compile(FineTuningAdamW(1e-2), run_eagerly=True)
    model.fit(*data, verbose=0)
    store = {}
    model.optimizer.save_own_variables(store)
    store.popitem()  # Files of older versions.
    new = classifier_of()
    new.compile(FineTuningAdamW(1e-2))
    new.optimizer.build(new.trainable_variables)
    new.optimizer.load_own_variables(store)
    pairs = zip(new.optimizer.variables[:-1], model.optimizer.variables[:-1], strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert int(new.optimizer.iterations) == 1
    assert float(new.optimizer.learning_rate) == pytest.approx(1e-2)


def test_a_later_epoch_as_the_first_one(data):
    model, rates = classifier_of(), Rates()
    model.compile(FineTuningAdamW(1e-2), run_eagerly=True)
    arguments = {"epochs": 5, "initial_epoch": 3, "batch_size": 4, "verbose": 0}
    model.fit(*data, callbacks=[rates], **arguments)
    np.testing.assert_allclose(rates.found, expected_rates(1e-2, 6), rtol=1e-5)


def test_unknown_length_has_a_constant_rate(data):
    model, rates = classifier_of(), Rates()
    model.compile(FineTuningAdamW(1e-2), run_eagerly=True)
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
    model.compile(FineTuningAdamW(1e-2, warmup_ratio=0.2), run_eagerly=True)
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

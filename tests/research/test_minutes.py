import sys
import types

import keras
import numpy as np
import pytest

from tests.examples import RESEARCH

sys.path.insert(0, str(RESEARCH / "pretraining"))
import minutes
from minutes import CpuBudget


@pytest.fixture
def clock(monkeypatch):
    """Processor time that passes only in the callbacks of a test."""
    clock = types.SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(minutes.time, "process_time", lambda: clock.seconds)
    return clock


def fit(path, clock, cpu_minutes, epochs=100, first_step=0.0):
    """Trains with steps of 6 seconds; returns the learning rate of each."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=False)
    rates = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            rates.append(float(model.optimizer.learning_rate))
            clock.seconds += 6.0 + (first_step if len(rates) == 1 else 0.0)

        def on_test_begin(self, logs=None):
            clock.seconds += 1000.0  # Validation does not count.

    x = np.arange(8.0)[:, None]
    budget = CpuBudget(path, cpu_minutes, learning_rate=0.5, warmup_steps=4, decay_share=0.5)
    model.fit(
        x, x, batch_size=1, epochs=epochs, verbose=0, callbacks=[budget, Clock()],
        validation_data=(x, x),
    )  # fmt: skip
    return rates


def test_ends_with_its_budget_and_sets_the_rate(tmp_path, clock):
    rates = fit(tmp_path / "budget.json", clock, cpu_minutes=2.0, first_step=500.0)
    # The first step is compiled and does not count; the others take a twentieth of the budget.
    assert len(rates) == 21
    assert rates[:5] == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5])
    assert rates[10] == pytest.approx(0.5)
    assert np.all(np.diff(rates[12:]) < 0) and rates[-1] == pytest.approx(0.05)


def test_continues_what_was_spent(tmp_path, clock):
    path = tmp_path / "budget.json"
    whole = fit(tmp_path / "whole.json", clock, cpu_minutes=4.0)
    first = fit(path, clock, cpu_minutes=4.0, epochs=2)
    assert len(first) == 16
    second = fit(path, clock, cpu_minutes=4.0)
    # One step more, because each process compiles once.
    assert len(first) + len(second) == len(whole) + 1


def test_a_larger_budget_continues_before_the_fall(tmp_path, clock):
    path = tmp_path / "budget.json"
    fit(path, clock, cpu_minutes=2.0)
    rates = fit(path, clock, cpu_minutes=40.0, epochs=1)
    assert rates == pytest.approx([0.5] * 8)

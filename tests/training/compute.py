"""Runs optimizers and backups on the Keras backend of this process; prints differences as JSON.

KERAS_BACKEND=jax python compute.py
"""

import json
import pathlib
import tempfile

import keras
import numpy as np

from keras_xlnet import models, training
from tests.training import original_steps
from tests.training.train_and_be_killed import Interrupt

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


def adam_weight_decay():
    """Differences from the updates of the original, for two variables (JAX compiles each shape)."""
    arrays = dict(np.load(GOLDEN / "optimizer.npz"))
    flags = json.loads((GOLDEN / "optimizer.json").read_text(encoding="utf-8"))
    flags = flags["cases"]["adamwd_poly"]["FLAGS"]
    optimizer = original_steps.optimizer(flags)
    variables = original_steps.variables(arrays)
    for step in range(original_steps.STEPS):
        raw = [arrays[f"grads/{v.path}"][step] for v in variables]
        gradients = original_steps.clip(raw, flags["clip"])
        optimizer.apply([keras.ops.convert_to_tensor(g) for g in gradients[:2]], variables[:2])
        for v in variables[:2]:
            yield keras.ops.convert_to_numpy(v) - arrays[f"adamwd_poly/var/{v.path}"][step]


def lamb_weight_decay():
    """Differences from the updates of tensorflow-addons."""
    arrays = np.load(GOLDEN / "addons" / "traj.npz")
    arrays = {name: keras.ops.convert_to_tensor(value) for name, value in arrays.items()}
    expected = np.load(GOLDEN / "addons" / "tfa.npz")
    optimizer = training.LambWeightDecay(0.01, weight_decay_exclusions=["bias"])
    for step, values in enumerate(original_steps.steps_of_addons(arrays, optimizer)):
        for i, value in enumerate(values):
            yield value - expected[f"lamb_wd_excl_{step}_{i}"]


def fitted(*callbacks, batch_size=2, dropout=0.0, **kwargs):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            keras.layers.Embedding(5, 4),
            keras.layers.Flatten(),
            keras.layers.Dropout(dropout, seed=3),
            keras.layers.Dense(1),
        ]
    )
    model.compile(training.AdamWeightDecay(0.1, **kwargs), "mse")
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 5, (8, 6)), rng.normal(size=(8, 1))
    model.fit(
        x, y, batch_size=batch_size, epochs=3, shuffle=False, callbacks=list(callbacks), verbose=0
    )
    return model.get_weights()


def accumulation():
    """Differences of steps on two accumulated half batches from steps on whole batches."""
    whole = fitted(batch_size=8)
    halves = fitted(batch_size=4, gradient_accumulation_steps=2)
    return (a - b for a, b in zip(halves, whole, strict=True))


def resume():
    """Differences of an interrupted and resumed run with dropout from an uninterrupted run."""
    expected = fitted(dropout=0.5, use_ema=True)
    with tempfile.TemporaryDirectory() as directory:
        backup = training.ExactBackupAndRestore(directory)
        try:
            fitted(backup, Interrupt(), dropout=0.5, use_ema=True)
        except KeyboardInterrupt:
            actual = fitted(backup, dropout=0.5, use_ema=True)
    return (a - b for a, b in zip(actual, expected, strict=True))


class CountedLoss(keras.losses.SparseCategoricalCrossentropy):
    """Counts how often Python computes it: once for each trace of a step."""

    traces = 0

    def call(self, y_true, y_pred):
        self.traces += 1
        return super().call(y_true, y_pred)


class Rates(keras.callbacks.Callback):
    """Keeps the rate that each step is done with."""

    def on_train_begin(self, logs=None):
        self.found = []

    def on_train_batch_begin(self, batch, logs=None):
        if getattr(self.model, "_jax_state", None):
            self.model.jax_state_sync()
        self.found.append(float(self.model.optimizer.learning_rate))


def rates_and_traces(policy="float32", num_fits=3, **arguments):
    """The rates of each of several calls of `fit`, and how often each traced its step."""
    backbone = models.XLNetBackbone(40, 1, 2, 8, 8, dtype=policy)
    model = models.XLNetTextClassifier(backbone, num_classes=2)
    loss, rates, found = CountedLoss(), Rates(), []
    model.compile(training.FineTuningAdamW(1e-2, **arguments), loss)
    x = {"token_ids": np.random.default_rng(3).integers(0, 40, (12, 5))}
    for _ in range(num_fits):
        loss.traces = 0
        model.fit(x, np.arange(12) % 2, batch_size=2, epochs=3, callbacks=rates, verbose=0)
        found.append((rates.found, loss.traces))
    return found


def later_fits():
    """Differences of the rates of three fits from their mean, and the traces of the later ones."""
    found = rates_and_traces(gradient_accumulation_steps=4)
    rates = np.array([rates for rates, _ in found])
    yield rates - rates.mean(axis=0)
    assert rates[0, 0] < rates[0, 1] > rates[0, -1]
    if keras.backend.backend() != "torch":  # It computes the loss in each step.
        yield np.array([traces for _, traces in found[1:]])


if __name__ == "__main__":
    computations = (adam_weight_decay, lamb_weight_decay, accumulation, later_fits, resume)
    found = {f.__name__: f() for f in computations}
    worst = {name: max(float(np.abs(d).max()) for d in found[name]) for name in found}
    print(json.dumps(worst))

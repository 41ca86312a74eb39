"""Runs optimizers and backups on the Keras backend of this process; prints differences as JSON.

KERAS_BACKEND=jax python compute.py
"""

import json
import pathlib
import tempfile

import keras
import numpy as np

from keras_xlnet import training
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


if __name__ == "__main__":
    found = {f.__name__: f() for f in (adam_weight_decay, lamb_weight_decay, accumulation, resume)}
    worst = {name: max(float(np.abs(d).max()) for d in found[name]) for name in found}
    print(json.dumps(worst))

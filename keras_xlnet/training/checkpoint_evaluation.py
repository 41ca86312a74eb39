import pathlib
import re
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.types import PathLike

_SUFFIXES = (".weights.h5", ".keras")


def evaluate_checkpoints(
    model: keras.Model,
    paths: PathLike | Sequence[PathLike],
    x: Any,
    y: Any = None,
    verbose: str | int = "auto",
    **arguments: Any,
) -> dict[str, dict[str, float]]:
    """Evaluates all checkpoints of a run, for example to find the best epoch on new data.

    Args:
        model: A built and compiled Keras model. Its weights, memory, random seeds and metrics are
            restored afterwards; its optimizer is not touched.
        paths: A directory, whose `.weights.h5` and `.keras` files are evaluated in the order of the
            numbers in their names, as `keras.callbacks.ModelCheckpoint` writes them; or a list of
            files.
        x, y: As in `model.evaluate`.
        verbose: 0 for silence; otherwise a progress bar over the checkpoints.
        **arguments: Other arguments of `model.evaluate`.

    Returns:
        A dict from the name of each file to its metrics, a dict of floats.

    Raises:
        ValueError: If there is no checkpoint, two have the same name, or a file does not fit the
            model.

    Example:

    >>> import pathlib, tempfile
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    >>> model.compile(loss="mse")
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for epoch, value in enumerate([3.0, 2.0, 1.0]):
    ...     model.set_weights([np.full((1, 1), value)])
    ...     model.save_weights(folder / f"epoch_{epoch}.weights.h5")
    >>> found = keras_xlnet.training.evaluate_checkpoints(
    ...     model, folder, np.ones((4, 1)), np.full((4, 1), 2.0), verbose=0)
    >>> found
    {'epoch_0.weights.h5': {'loss': 1.0},
     'epoch_1.weights.h5': {'loss': 0.0},
     'epoch_2.weights.h5': {'loss': 1.0}}
    >>> min(found, key=lambda name: found[name]["loss"])
    'epoch_1.weights.h5'
    """
    files = _checkpoints(paths)
    bar = keras.utils.Progbar(len(files), verbose=0 if verbose == 0 else 1, unit_name="checkpoint")
    changed = [*model.variables, *model.metrics_variables]
    before = [(variable, ops.copy(variable.value)) for variable in changed]
    found = {}
    try:
        for count, file in enumerate(files, 1):
            _load_weights(model, file)
            metrics = model.evaluate(x, y, verbose=0, return_dict=True, **arguments)
            bar.stateful_metrics.update(metrics)
            bar.update(count, [*metrics.items()])
            found[file.name] = {name: float(value) for name, value in metrics.items()}
    finally:
        model.reset_metrics()  # Also metrics without variables before the first batch.
        for variable, value in before:
            variable.assign(value)
    return found


def _load_weights(model, file):
    """Loads a checkpoint without the state of the optimizer, which evaluating does not need."""
    optimizer, model.optimizer = model.optimizer, None
    try:
        model.load_weights(file)
    finally:
        model.optimizer = optimizer


def _checkpoints(paths):
    if isinstance(paths, (str, pathlib.Path)) and pathlib.Path(paths).is_dir():
        files = [f for f in pathlib.Path(paths).iterdir() if f.name.endswith(_SUFFIXES)]
        files.sort(key=lambda file: _numbers(file.name))
    elif isinstance(paths, (str, bytes, pathlib.Path)):
        raise ValueError(f"`paths` must be a directory or a list of files. Received: {paths!r}")
    else:
        files = [pathlib.Path(path) for path in paths]
    if not files:
        raise ValueError(
            f"`paths` must have {' or '.join(_SUFFIXES)} files. Received: {paths}, without one"
        )
    names = [file.name for file in files]
    if len({*names}) < len(names):
        raise ValueError(f"`paths` must have different names. Received: {names}")
    return files


def _numbers(name):
    """The parts of a name, with its numbers as numbers: epoch 10 is after epoch 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]

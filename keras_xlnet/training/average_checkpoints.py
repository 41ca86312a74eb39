from collections.abc import Sequence

import keras
import numpy as np

from keras_xlnet.types import PathLike


def load_average(model: keras.Model, paths: Sequence[PathLike]) -> None:
    """Gives a model the mean weights of several checkpoints, such as the last epochs of a run.

    The mean of a few checkpoints of one run is often better than the last. To average during
    training, Keras has `keras.optimizers.AdamW(use_ema=True)` and
    `keras.callbacks.SwapEMAWeights`.

    Args:
        model: A built Keras model.
        paths: List of paths that `model.load_weights` reads: `.weights.h5` files of
            `keras.callbacks.ModelCheckpoint(save_weights_only=True)`, or `.keras` files.

    Raises:
        ValueError: If `paths` is empty, or a file does not fit the model. The model then keeps its
            weights.

    Example:

    >>> import pathlib, tempfile
    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for value in (1.0, 3.0):
    ...     model.set_weights([np.full((2, 1), value), np.zeros(1)])
    ...     model.save_weights(folder / f"{value}.weights.h5")
    >>> keras_xlnet.training.load_average(model, sorted(folder.iterdir()))
    >>> model.get_weights()[0].tolist()
    [[2.0], [2.0]]
    """
    if isinstance(paths, (str, bytes)) or not len(paths):
        raise ValueError(f"`paths` must be a list of files. Received: paths={paths!r}")
    before = model.get_weights()
    total = [np.zeros(value.shape) for value in before]
    try:
        for path in paths:
            model.load_weights(path)
            weights = model.get_weights()
            total = [t + weight.astype("float64") for t, weight in zip(total, weights, strict=True)]
    except Exception:
        model.set_weights(before)
        raise
    means = [value / len(paths) for value in total]
    # Seeds and counters are whole numbers.
    is_float = [keras.backend.is_float_dtype(variable.dtype) for variable in model.weights]
    rounded = [m if f else np.round(m) for m, f in zip(means, is_float, strict=True)]
    model.set_weights([m.astype(old.dtype) for m, old in zip(rounded, before, strict=True)])

"""Batches that several JAX devices can divide.

Upstream: with `keras.distribution` on JAX, Keras divides the rows of a batch between the devices,
and JAX refuses a number of rows that it cannot divide equally, for example in the last batch.
Reproduction: docs/upstream.md, "Batches that devices cannot divide are refused".
Delete this file when: `fit` takes such batches.

Such a batch is padded with copies of its last row before it goes to the devices. The compiled step
removes the added rows before it computes anything, and each device computes the whole batch. So all
numbers, including random ones, are the same as on one device.
"""

import inspect
import math
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.text_batches import split_rows
from keras_xlnet.training.full_batches import fill_last_batch, number_of_rows

_DATA = ("x", "y", "sample_weight")


def num_shards() -> int:
    """Returns the number of parts into which `keras.distribution` divides the rows of a batch."""
    distribution = keras.distribution.distribution()
    if distribution is None or keras.backend.backend() != "jax":
        return 1
    import jax

    if jax.process_count() > 1:  # Each process has a part of the rows.
        return 1
    layout: Any = distribution.get_data_layout((1,))
    mesh = layout.device_mesh
    return mesh.shape[mesh.axis_names.index(layout.axes[0])]


class _Filled(NamedTuple):
    """The inputs of a batch with added rows at its end."""

    inputs: Any
    # An empty array `(rows, given rows, 0)`: its shape is known when a step is compiled.
    given: Any


def divisible_arguments(
    method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Returns the arguments of `fit`, `evaluate` or `predict` with batches that devices can divide.

    Args:
        method: The method of Keras.
        args, kwargs: Its arguments.
    """
    given = _by_name(method, args, kwargs)
    data = tuple(map(given.get, _DATA))
    size, shuffle, validation = map(given.get, ("batch_size", "shuffle", "validation_data"))
    rows = number_of_rows(data)
    if rows is not None:
        replaced = {"y": None, "sample_weight": None, "batch_size": None, "shuffle": False}
        given |= {name: value for name, value in replaced.items() if name in given}
        if given.get("validation_split") and validation is None:
            data, validation = split_rows(data, given["validation_split"])
            given["validation_split"] = 0.0
    if validation is not None:
        parts = tuple(validation) if isinstance(validation, (tuple, list)) else (validation,)
        given["validation_data"] = _divisible_batches(
            keras.utils.unpack_x_y_sample_weight(parts),
            given["validation_batch_size"] or size,
            given["validation_steps"],
        )
    steps = given.get("steps_per_epoch", given.get("steps"))
    return {**given, "x": _divisible_batches(data, size, steps, shuffle)}


def filled_arguments(
    method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Returns the arguments of `train_on_batch` or `test_on_batch` with a padded batch."""
    given = _by_name(method, args, kwargs)
    return given | dict(zip(_DATA, _fill_batch(*map(given.get, _DATA)), strict=True))


def _by_name(method, args, kwargs):
    """All arguments of a call, by name."""
    bound = inspect.signature(method).bind(*args, **kwargs)
    bound.apply_defaults()
    others = bound.arguments.pop("kwargs", {})
    return {**bound.arguments, **others}


def _fill_batch(x, y, sample_weight):
    """Inputs, labels and weights of a batch, padded to a number of rows that devices can divide."""
    (x, y, sample_weight), rows = fill_last_batch((x, y, sample_weight), num_shards())
    if rows is None:
        return x, y, sample_weight
    filled = rows + -rows % num_shards()
    return _Filled(x, np.empty((filled, rows, 0), bool)), y, sample_weight


def without_added_rows(data: Any) -> Any:
    """Returns a batch without the rows that were added, or the batch if there are none."""
    x, *others = data if isinstance(data, (tuple, list)) and len(data) else (data,)
    if not isinstance(x, _Filled):
        return data
    rows, given, _ = x.given.shape
    if rows == given:
        return (x.inputs, *others)
    mesh = keras.distribution.distribution().device_mesh

    def cut(array):
        if array is None:
            return None
        everywhere = keras.distribution.TensorLayout((None,) * len(array.shape), mesh)
        return keras.distribution.distribute_tensor(array[:given], everywhere)

    return keras.tree.map_structure(cut, (x.inputs, *others))


def _divisible_batches(data, batch_size, steps, shuffle=False):
    """Batches that devices can divide, of data in one of the forms that `fit` takes.

    Arrays and a `PyDataset` give a `PyDataset`, a generator and a `tf.data.Dataset` one of their
    kind. Other data are returned unchanged.
    """
    x, rows = data[0], number_of_rows(data)
    if rows is not None:
        batch_size = batch_size or (math.ceil(rows / steps) if steps else 32)
        return _Divisible(_Batches(data, rows, batch_size, shuffle))
    if isinstance(x, keras.utils.PyDataset):
        return x if isinstance(x, _Divisible) else _Divisible(x)
    if isinstance(x, types.GeneratorType):
        return (_fill(batch) for batch in x)
    return x.map(_fill_in_graph) if hasattr(x, "element_spec") else x


def _fill(batch):
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
    return keras.utils.pack_x_y_sample_weight(*_fill_batch(x, y, sample_weight))


def _fill_in_graph(*batch):
    rows = tf.shape(tf.nest.flatten(batch)[0])[0]
    missing = -rows % num_shards()
    x, *others = tf.nest.map_structure(
        lambda array: tf.concat([array, tf.repeat(array[-1:], missing, axis=0)], axis=0), batch
    )
    return (_Filled(x, tf.zeros((rows + missing, rows, 0), "bool")), *others)


class _Divisible(keras.utils.PyDataset):
    """Batches of another `PyDataset`, padded."""

    def __init__(self, batches):
        super().__init__(workers=batches.workers, max_queue_size=batches.max_queue_size)
        self._given = batches
        self.on_epoch_begin, self.on_epoch_end = batches.on_epoch_begin, batches.on_epoch_end

    @property
    def num_batches(self):
        return self._given.num_batches

    def __getitem__(self, index):
        return _fill(self._given[index])


class _Batches(keras.utils.PyDataset):
    """Batches of arrays, in the order in which Keras would take them."""

    def __init__(self, data, rows, batch_size, shuffle):
        super().__init__()
        counts = {len(array) for array in keras.tree.flatten(data) if array is not None}
        if len(counts) > 1:
            raise ValueError(f"All arrays must have equally many rows. Received: {sorted(counts)}")
        self._data = keras.tree.map_structure(
            lambda array: None if array is None else ops.convert_to_numpy(array), data
        )
        self._rows, self._batch_size, self._shuffle = rows, batch_size, shuffle
        self._order = np.arange(rows)

    def __len__(self):
        return math.ceil(self._rows / self._batch_size)

    def __getitem__(self, index):
        if not index and self._shuffle and self._shuffle != "batch":
            self._order = np.random.permutation(self._rows)
        rows = self._order[index * self._batch_size : (index + 1) * self._batch_size]
        if self._shuffle == "batch":
            rows = np.random.permutation(rows)
        return keras.utils.pack_x_y_sample_weight(
            *keras.tree.map_structure(lambda a: None if a is None else a[rows], self._data)
        )

"""Batches that Python makes one by one: `keras.utils.PyDataset` and generators."""

import types
from collections.abc import Callable
from typing import Any

import keras


def is_python_batches(x: Any) -> bool:
    """Whether `x` is a `keras.utils.PyDataset` or a generator."""
    return isinstance(x, (keras.utils.PyDataset, types.GeneratorType))


def map_python_batches(batches: Any, function: Callable[[Any], Any]) -> Any:
    """Returns the same batches, each changed by a function when it is needed."""
    if isinstance(batches, keras.utils.PyDataset):
        return _MappedBatches(batches, function)
    return (function(batch) for batch in batches)


class _MappedBatches(keras.utils.PyDataset):
    """The batches of another `PyDataset`, which threads make and change, not processes."""

    def __init__(self, batches, function):
        super().__init__(workers=batches.workers, max_queue_size=batches.max_queue_size)
        self.batches = batches
        self.function = function

    @property
    def num_batches(self):
        return self.batches.num_batches

    def __getitem__(self, index):
        return self.function(self.batches[index])

    def on_epoch_begin(self):
        self.batches.on_epoch_begin()

    def on_epoch_end(self):
        self.batches.on_epoch_end()

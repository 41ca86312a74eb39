"""Datasets of what a Python generator yields, without `tf.data.Dataset.from_generator`.

Upstream: on Python 3.11 and later, the first `from_generator` of a process tells glibc to return
each block of more than 128 KiB to the operating system as soon as it is freed. From then on, nearly
every tensor of every operation is new memory, whose pages the kernel maps and clears.
Without it: `python -m benchmarks.workarounds generated_dataset`: the first `fit` of texts takes 1.3
times the time of a processor, the second one 1.8 times.
Reproduction: docs/upstream.md, "`from_generator` slows all of TensorFlow down".
Delete this file when: `from_generator` leaves the allocator alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from keras_xlnet.lazy_modules import tf


def generated_dataset(
    generate: Callable[[], Iterator[Any]], spec: Any, length: int | None = None
) -> tf.data.Dataset:
    """Returns a dataset of what a generator yields. Each iterator of it has its own generator.

    Args:
        generate: Function without arguments that returns an iterator.
        spec: Nested structure of `tf.TensorSpec`s, of what it yields.
        length: Int, how many elements it yields at least, of which the dataset has so many. `None`
            for all.
    """
    specs = keras.tree.flatten(spec)
    generators: dict[int, Iterator[Any]] = {}
    numbers = itertools.count()

    def begin():
        number = next(numbers)
        generators[number] = generate()
        return np.int64(number)

    def advance(number, index):
        element = next(generators[number], None)
        if element is None or index + 1 == length:
            del generators[number]
        if element is None:
            return False, *(tf.zeros([n or 0 for n in s.shape], s.dtype).numpy() for s in specs)
        # A part may be a list of what an array holds.
        arrays = keras.tree.map_structure_up_to(spec, _as_array, spec, element)
        return True, *keras.tree.flatten(arrays)

    def elements(_):
        number = tf.numpy_function(begin, [], tf.int64)

        def element(index):
            dtypes = [tf.bool, *(s.dtype for s in specs)]
            exists, *parts = tf.numpy_function(advance, [number, index], dtypes)
            exists.set_shape(())
            for part, s in zip(parts, specs, strict=True):
                part.set_shape(s.shape)
            return exists, keras.tree.pack_sequence_as(spec, parts)

        indices = tf.data.Dataset.counter() if length is None else tf.data.Dataset.range(length)
        found = indices.map(element).take_while(lambda exists, _: exists)
        return found.map(lambda _, each: each)

    return tf.data.Dataset.from_tensors(0).flat_map(elements)


def _as_array(spec, part):
    return np.asarray(part, spec.dtype.as_numpy_dtype)

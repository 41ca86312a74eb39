"""Matches the weights of a model with the arrays of a file, by the rows of a weight mapping."""

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_xlnet.checkpoints.family import Family
from keras_xlnet.models.weight_rows import Row
from keras_xlnet.preset_files.weights import FLOATS, View, WeightMatch

# The placeholder for the index of a layer in a name.
_LAYER = re.compile(r"\{layer\}|\{number\}")


def match_weights(
    weights: dict[str, Any],
    rows: Sequence[Row],
    family: Family,
    task_name: str = "task",
    found: Collection[str] = (),
) -> list[WeightMatch]:
    """Finds the name that every weight of a model has in a format.

    Args:
        weights: `{path: variable}`, as `model_weights` returns.
        rows: List of `Row`s. Those of weights that the model does not have are skipped.
        family: `Family` of the format.
        task_name: Value of `{task_name}`.
        found: The names in a file, to choose among several possible names.

    Returns:
        A list of `WeightMatch`es in the order of `rows`. A weight has several if the format
        repeats it in every layer.

    Raises:
        ValueError: If a weight is quantized, has no name in this format, or fits several rows.
    """
    fitting = []
    for path, weight in weights.items():
        _check_float(path, weight)
        (index, layer), *others = _fits(path, rows) or [(None, None)]
        if index is None or not rows[index].names(family.name):
            raise ValueError(
                f"{family.owner} has no name for the weight {path!r}. The `backbone` can be "
                "loaded (`task=None`) and saved without a head"
            )
        if others:
            raise ValueError(f"The weight {path!r} fits {1 + len(others)} rows of the mapping")
        fitting.append((index, layer, path))
    num_layers = 1 + max((layer for _, layer, _ in fitting if layer is not None), default=-1)
    matches = []
    for index, layer, path in sorted(fitting):
        names = [name.replace("{task_name}", task_name) for name in rows[index].names(family.name)]
        name = next((name for name in names if name in found), names[0])
        row = rows[index]
        axes, view = row.axes(family.name), row.view(family.name)
        match = WeightMatch(path, weights[path], name, axes, view)
        matches += _of_layers(match, layer, num_layers)
    return matches


def _check_float(path, weight):
    dtype = keras.backend.standardize_dtype(weight.dtype)
    if dtype not in FLOATS:
        raise ValueError(
            f"`model` is quantized: {path!r} is of dtype {dtype}. Save the model as it was before "
            "`quantize`"
        )


def _fits(path, rows):
    """Returns the indices of the rows that a path fits, with the index of the layer or `None`."""
    fits = []
    for index, row in enumerate(rows):
        match = re.fullmatch(re.escape(row.path).replace(r"\{layer\}", r"(\d+)"), path)
        if match:
            fits.append((index, int(match[1]) if match.groups() else None))
    return fits


def _of_layers(match, layer, num_layers):
    """Returns the match with its layer filled in, once for each layer that repeats the weight."""
    if not _LAYER.search(match.name):
        if layer is None:
            return [match]
        shape = (num_layers, *match.shape)
        return [dataclasses.replace(match, view=View(shape, shape, (layer,)))]
    return [
        dataclasses.replace(
            match, name=match.name.replace("{layer}", str(i)).replace("{number}", str(i + 1))
        )
        for i in (range(num_layers) if layer is None else [layer])
    ]


def layer_prefixes(rows: Sequence[Row], family: Family) -> set[str]:
    """Returns the prefixes, before the layer's index, of the names of weights in layers."""
    names = [name for row in rows for name in row.names(family.name)]
    return {_LAYER.split(name)[0] for name in names if _LAYER.search(name)}


def values_to_save(matches: Iterable[WeightMatch]) -> dict[str, np.ndarray]:
    """Returns `{name: float32 array}` for the files of another implementation."""
    values = {}
    for match in matches:
        value, view = match.to_file("float32"), match.view
        if view is None:
            values[match.name] = value
        else:
            array = values.setdefault(match.name, np.zeros(view.file_shape, "float32"))
            np.reshape(array, view.shape)[view.index] = value
    return values

"""Weight mappings: the names and axes that a model's weights have in other implementations.

A mapping is a list of rows, read in both directions: loading, saving, `xlnet inspect` and the tests
use the same rows.
"""

import dataclasses
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_xlnet.preset_files.weights import FLOATS, View, WeightMatch

OWNERS = {
    "original": "The original",
    "huggingface": "Hugging Face's transformers",
    "keras_hub": "KerasHub",
    "keras_xlnet_h5": "The old keras-xlnet",
    "bert": "BERT",
}
# The placeholder for the index of a layer in a name.
_LAYER = re.compile(r"\{layer\}|\{number\}")


@dataclasses.dataclass(frozen=True)
class Row:
    """One weight of a model, and its names in the other formats.

    `{layer}` in a path or name is replaced by the index of a layer, `{number}` in a name by the
    index plus 1. If only our path has one, the other format has one array of all layers; if only
    the other name has one, that format repeats the weight in every layer. `{task_name}` in a name
    is replaced by the value of the original's `--task_name`.

    Args:
        path: Path of our variable.
        original: Name in a checkpoint of the original. `None` if it has no such weight.
        huggingface: Name in a directory of Hugging Face's transformers, or a tuple of names, of
            which a file has one and the first is written. `None` if it has no such weight.
        original_axes: How to transpose the original's array into ours, as in `numpy.transpose`.
            `None`: not at all.
        huggingface_axes: The same for Hugging Face's.
        original_view: `View` that picks our array from the original's, before it is transposed.
            `None`: the whole array.
        huggingface_view: The same for Hugging Face's.
        keras_hub, keras_hub_axes, keras_hub_view: The same for KerasHub.
        keras_xlnet_h5, keras_xlnet_h5_axes, keras_xlnet_h5_view: The same for the old keras-xlnet.
    """

    path: str
    original: str | None = None
    huggingface: str | tuple[str, ...] | None = None
    original_axes: tuple[int, ...] | None = None
    huggingface_axes: tuple[int, ...] | None = None
    original_view: View | None = None
    huggingface_view: View | None = None
    keras_hub: str | None = None
    keras_hub_axes: tuple[int, ...] | None = None
    keras_hub_view: View | None = None
    keras_xlnet_h5: str | None = None
    keras_xlnet_h5_axes: tuple[int, ...] | None = None
    keras_xlnet_h5_view: View | None = None

    def names(self, format: str) -> tuple[str, ...]:
        """Returns a tuple of the names in a format, `()` if it has no such weight."""
        names = getattr(self, format)
        return (names,) if isinstance(names, str) else names or ()

    def axes(self, format: str) -> tuple[int, ...] | None:
        """Returns how to transpose the array of a format into ours, or `None`."""
        return getattr(self, f"{format}_axes")

    def view(self, format: str) -> View | None:
        """Returns the `View` of the array of a format, or `None`."""
        return getattr(self, f"{format}_view")


def kernel(path: str, original: str | None, huggingface: Any) -> Row:
    """Returns the row of a dense layer's kernel. PyTorch's `Linear` has it transposed."""
    theirs = _under(huggingface, ".weight")
    return Row(f"{path}/kernel", _under(original, "/kernel"), theirs, huggingface_axes=(1, 0))


def dense(path: str, original: str | None, huggingface: Any) -> list[Row]:
    """Returns the rows of a dense layer's kernel and bias, from the names of the layer."""
    bias = Row(f"{path}/bias", _under(original, "/bias"), _under(huggingface, ".bias"))
    return [kernel(path, original, huggingface), bias]


def norm(path: str, original: str | None, huggingface: Any) -> list[Row]:
    """Returns the rows of a layer normalization, from the names of the layer."""
    return [
        Row(f"{path}/{ours}", _under(original, f"/{ours}"), _under(huggingface, f".{theirs}"))
        for ours, theirs in (("gamma", "weight"), ("beta", "bias"))
    ]


def _under(name, suffix):
    if isinstance(name, tuple):
        return tuple(_under(alternative, suffix) for alternative in name)
    return None if name is None else name + suffix


def match_weights(
    weights: dict[str, Any],
    rows: Sequence[Row],
    format: str,
    task_name: str = "task",
    found: Collection[str] = (),
) -> list[WeightMatch]:
    """Finds the name that every weight of a model has in a format.

    Args:
        weights: `{path: variable}`, as `model_weights` returns.
        rows: List of `Row`s. Those of weights that the model does not have are skipped.
        format: A key of `OWNERS`.
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
        if index is None or not rows[index].names(format):
            raise ValueError(
                f"{OWNERS[format]} has no name for the weight {path!r}. The `backbone` can be "
                "loaded (`task=None`) and saved without a head"
            )
        if others:
            raise ValueError(f"The weight {path!r} fits {1 + len(others)} rows of the mapping")
        fitting.append((index, layer, path))
    num_layers = 1 + max((layer for _, layer, _ in fitting if layer is not None), default=-1)
    matches = []
    for index, layer, path in sorted(fitting):
        names = [name.replace("{task_name}", task_name) for name in rows[index].names(format)]
        name = next((name for name in names if name in found), names[0])
        row = rows[index]
        match = WeightMatch(path, weights[path], name, row.axes(format), row.view(format))
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


def layer_prefixes(rows: Sequence[Row], format: str) -> set[str]:
    """Returns the prefixes, before the layer's index, of the names of weights in layers."""
    names = [name for row in rows for name in row.names(format)]
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

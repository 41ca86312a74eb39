"""Weight mappings: the names and axes that a model's weights have in other implementations.

A mapping is a list of rows, read in both directions: loading, saving, `xlnet inspect` and the tests
use the same rows.
"""

import dataclasses
from typing import Any

from keras_xlnet.preset_files.weights import View


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

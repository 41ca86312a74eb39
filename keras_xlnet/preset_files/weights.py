"""Weights of models and of files: matched by name, checked from headers, then assigned."""

import dataclasses
import operator
import os
import pathlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preset_files.safetensors_files import SafetensorsFiles, write_safetensors
from keras_xlnet.preset_files.shipped import TRAINED_FROM, origin_recorded
from keras_xlnet.types import PathLike

FLOATS = ("float16", "bfloat16", "float32", "float64")
# The dtype that floating-point weights were converted to when they were saved. It is in the file of
# the weights, as is `TRAINED_FROM`, and not in the config, so that it cannot be combined with the
# weights of another model.
_STORED_DTYPE = "stored_dtype"
_BLOCK_BYTES = 2**24
_NUM_NAMED = 3


def save_weights(model: keras.Model, file: PathLike, dtype: str | None = None) -> None:
    """Writes the weights of a model as safetensors, under the paths of its variables.

    The state of its optimizer and the memories of a stateful model are not saved. LoRA is merged
    into weights that are not quantized, so that they fit a model without it too.

    Args:
        model: A built model.
        file: Path of the file.
        dtype: Optional name of a dtype that floating-point weights are converted to. The file
            declares it, and `load_weights` converts them back.

    Raises:
        ValueError: If a weight is infinite in `dtype`.
    """
    write_weights(model_weights(model), file, dtype, getattr(model, "trained_from", None))


def write_weights(
    weights: dict[str, Any],
    file: PathLike,
    dtype: str | None = None,
    trained_from: str | None = None,
) -> None:
    """Writes weights, `{path: variable or tensor}`, to a file as `save_weights` does."""
    matches = [WeightMatch(path, value, path) for path, value in weights.items()]
    arrays = {match.name: _converted(match, dtype) for match in matches}
    metadata = {_STORED_DTYPE: dtype, TRAINED_FROM: trained_from}
    write_safetensors(file, arrays, {key: value for key, value in metadata.items() if value})


def _converted(match, dtype):
    value = match.to_file()
    if dtype is None or match.dtype not in FLOATS:
        return value
    converted = match.to_file(dtype)
    if np.any(np.isinf(converted) & ~np.isinf(value)):
        raise ValueError(
            f"{match.path!r} cannot be saved with dtype={dtype!r}: it has values as large as "
            f"{np.max(np.abs(value)):.6g}, which would be infinite"
        )
    return converted


def load_weights(model: keras.Model, file: PathLike, cast: bool = False) -> None:
    """Reads the weights that `save_weights` wrote.

    The headers of the file are compared with the model first: a model gets all of its weights or
    none. Floating-point weights of the dtype that the file declares are converted. LoRA that was
    merged starts with a product of 0.

    Args:
        model: A built model.
        file: Path of the file.
        cast: Whether weights of one floating-point dtype may have another one in the file.

    Raises:
        ValueError: If the file is damaged, or the names, shapes or dtypes of the weights in it are
            not those of the model.
    """
    weights = model_weights(model, merge_lora=False)
    matches = [WeightMatch(path, value, path) for path, value in weights.items()]
    files = SafetensorsFiles([file], file)
    unexpected = sorted(set(files.shapes) - {match.name for match in matches})
    check_matches(matches, files, FLOATS if cast else _declared_dtypes(files), unexpected)
    assign_matches(matches, files)
    model.trained_from = origin_recorded(pathlib.Path(file).parent, files.metadata)
    for layer in _layers_to_merge(model):
        _, second = _matrices(layer)
        second.assign(keras.ops.zeros(second.shape))  # It is in the weights.


def _declared_dtypes(files):
    dtype = files.metadata.get(_STORED_DTYPE)
    if dtype not in (None, *FLOATS):
        raise ValueError(f"{files} declares {_STORED_DTYPE}={dtype!r}, expected one of {FLOATS}")
    return () if dtype is None else (dtype,)


def model_weights(model: keras.Model, merge_lora: bool = True) -> dict[str, keras.Variable]:
    """Returns the weights of a model that are saved: `{path: variable}`.

    The paths are the paths of the variables, without the name scope in which the model was made,
    for example of a layer that makes a backbone when it is built. Left out are the memories of a
    stateful model, which `model.memories` lists, and the variables of LoRA, except where the
    layer is quantized: its weights would be rounded again, with LoRA in them.

    Args:
        model: A built model.
        merge_lora: Whether weights have LoRA merged into them, to be saved: they are tensors then.

    Raises:
        ValueError: If two variables have the same path.
    """
    memories = {id(v) for memory in getattr(model, "memories", ()) for v in memory.weights}
    variables = [variable for variable in model.weights if id(variable) not in memories]
    path_of = getattr(model, "weight_path", operator.attrgetter("path"))
    weights = {path_of(variable): variable for variable in variables}
    if len(weights) < len(variables):
        paths = [*map(path_of, variables)]
        repeated = sorted(path for path in weights if paths.count(path) > 1)
        raise ValueError(
            f"`model` has several variables with the same path: {repeated[:_NUM_NAMED]}. Give "
            "their layers different names"
        )
    for layer in _layers_to_merge(model):
        for variable in _matrices(layer):
            weights.pop(path_of(variable), None)
        if merge_lora:
            weight, merged = _merged_weight(layer)
            weights[path_of(weight)] = merged
    scope = _common_scope(weights)
    return {path.removeprefix(scope): weight for path, weight in weights.items()}


def layers_with_lora(model: keras.Model) -> list[Any]:
    """Returns the layers of a model that have LoRA."""
    return [layer for layer in model._flatten_layers() if getattr(layer, "lora_enabled", False)]


def _layers_to_merge(model):
    return [layer for layer in layers_with_lora(model) if layer.quantization_mode is None]


def _matrices(layer):
    """The two variables of a layer's LoRA, in the order of their product."""
    matrices = {v.name[-1]: v for v in layer.weights if v.name.startswith("lora_")}
    return matrices["a"], matrices["b"]


def _common_scope(paths):
    parts = os.path.commonprefix([path.split("/")[:-1] for path in paths])
    return "".join(f"{part}/" for part in parts)


def _merged_weight(layer):
    """Returns the weight of a layer, and its value with LoRA merged into it."""
    first, second = _matrices(layer)
    name = first.name.removeprefix("lora_").removesuffix("_a")
    weight = next(variable for variable in layer.weights if variable.name == name)
    product = layer.lora_alpha / layer.lora_rank * keras.ops.matmul(first, second)
    return weight, keras.ops.cast(keras.ops.add(weight, product), weight.dtype)


@dataclasses.dataclass(frozen=True)
class View:
    """A part of a file's array, where one array holds several weights of a model.

    Args:
        file_shape: Shape of the array.
        shape: Shape that the array is viewed in.
        index: What picks the part from the view, a tuple of ints and slices.
    """

    file_shape: tuple[int, ...]
    shape: tuple[int, ...]
    index: tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class WeightMatch:
    """A weight of a model, and where it is in a file.

    Args:
        path: Path of the model's variable.
        weight: The variable; a tensor if the weight is only to be saved.
        name: Name in the file.
        axes: How to transpose the file's array into the model's, as in `numpy.transpose`. `None`:
            not at all.
        view: `View` of the file's array that picks the weight, which is then transposed. `None`:
            the whole array.
    """

    path: str
    weight: Any
    name: str
    axes: tuple[int, ...] | None = None
    view: View | None = None

    @property
    def dtype(self) -> str:
        """Name of the dtype of the model's weight."""
        return keras.backend.standardize_dtype(self.weight.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape that the file's array must have."""
        if self.view is not None:
            return self.view.file_shape
        shape = tuple(self.weight.shape)
        return shape if self.axes is None else tuple(shape[i] for i in np.argsort(self.axes))

    def to_model(self, value: Any) -> Any:
        """Returns the model's array for an array or `StoredTensor` of the file."""
        if self.view is not None:
            value = np.reshape(value[...], self.view.shape)[self.view.index]
        return value if self.axes is None else np.transpose(value[...], self.axes)

    def to_file(self, dtype: str | None = None) -> np.ndarray:
        """Returns the file's array, or the part of it, as a NumPy array, converted to `dtype`."""
        value = keras.ops.convert_to_numpy(keras.ops.convert_to_tensor(self.weight, dtype))
        if self.axes is not None:
            value = np.transpose(value, np.argsort(self.axes))
        return value


def check_matches(
    matches: Sequence[WeightMatch],
    files: Any,
    other_dtypes: Collection[str] = (),
    unexpected: Collection[str] = (),
) -> None:
    """Compares weights of a model with the headers of files.

    Args:
        matches: `WeightMatch`es.
        files: Object with `shapes` and `dtypes` (dicts by name) and `file_of(name)`, that is
            printed as what errors call it.
        other_dtypes: Names of dtypes that floating-point weights may have in the file, besides
            the model's own.
        unexpected: Names in the files that no weight may have.

    Raises:
        ValueError: If a weight is missing, unexpected, or of another shape or dtype.
    """
    shapes = {match.name: match.shape for match in matches}
    names = list(shapes)
    missing = [name for name in names if name not in files.shapes]
    if missing:
        others = sorted(set(files.shapes) - set(names))
        hint = f". It has, for example, {_named(others)}" if others else ""
        raise ValueError(
            f"{files} lacks {len(missing)} of {len(names)} weights of the model: {_named(missing)}"
            f"{hint}. Expected {missing[0]!r} of shape {shapes[missing[0]]}"
        )
    problems = [
        f"{name!r} in {files.file_of(name)} is not a weight of the model that its configuration "
        "describes"
        for name in unexpected
    ]
    problems += filter(None, (_problem(match, files, other_dtypes) for match in matches))
    if problems:
        more = len(problems) - 1
        raise ValueError(problems[0] + (f" (and {more} more problems)" if more else ""))


def _problem(match, files, other_dtypes):
    what = f"{match.name!r} in {files.file_of(match.name)}"
    shape, dtype = tuple(files.shapes[match.name]), files.dtypes[match.name]
    if shape != match.shape:
        return f"{what} has shape {shape}, expected {match.shape} by its configuration"
    expected = {match.dtype}
    if match.dtype in FLOATS:
        expected |= set(other_dtypes)
    if dtype in expected:
        return None
    hint = f". To load a model of this dtype, pass dtype={dtype!r}" if dtype in FLOATS else ""
    return f"{what} is of dtype {dtype}, expected {' or '.join(sorted(expected))}{hint}"


def _named(names):
    more = len(names) - _NUM_NAMED
    text = ", ".join(repr(name) for name in names[:_NUM_NAMED])
    return f"{text} and {more} more" if more > 0 else text


def assign_matches(matches: Iterable[WeightMatch], files: Any) -> None:
    """Assigns weights that `check_matches` has checked, one array in memory at a time.

    Args:
        matches: `WeightMatch`es.
        files: As for `check_matches`, with `read(name)`, which returns an array or what slices of
            are arrays.
    """
    for match in matches:
        assign_in_blocks(match.weight, match.to_model(files.read(match.name)))


def assign_in_blocks(variable: keras.Variable, array: Any) -> None:
    """Assigns an array to a variable, a block of rows at a time if that saves memory.

    For a whole assignment TensorFlow holds two more copies of a variable, besides the old value
    and the array: for the embeddings of a large model that is a quarter of its weights.

    Args:
        variable: A Keras variable.
        array: A NumPy array, or an object whose slices are NumPy arrays.

    Example:

    >>> variable = keras.Variable(np.zeros((3, 2)))
    >>> keras_xlnet.preset_files.assign_in_blocks(variable, np.ones((3, 2)))
    >>> float(keras.ops.sum(variable))
    6.0
    """
    num_bytes = 4 * keras.ops.size(variable)
    if num_bytes <= _BLOCK_BYTES or not _can_assign_rows(variable):
        variable.assign(array[...])
        return
    num_rows = variable.shape[0]
    step = max(1, num_rows * _BLOCK_BYTES // int(num_bytes))
    for start in range(0, num_rows, step):
        # safetensors refuses slices that end after the last row.
        rows = slice(start, min(start + step, num_rows))
        variable.value[rows].assign(keras.ops.cast(array[rows], variable.dtype))


def _can_assign_rows(variable):
    if keras.backend.backend() != "tensorflow":
        return False
    # A variable of a strategy consists of several.
    return not tf.distribute.has_strategy() and isinstance(variable.value, tf.Variable)

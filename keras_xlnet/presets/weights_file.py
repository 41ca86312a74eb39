"""`model.weights.h5`: written by Keras, and looked through before Keras reads it."""

import contextlib
import pathlib
import tempfile

import h5py
import keras
import numpy as np

from keras_xlnet.presets.assign_in_blocks import assign_in_blocks

_NAMED = 3


def save_weights(model, file):
    """Writes the weights of a model, without its optimizer and what a stateful one remembers."""
    keras.saving.save_weights(model, file, objects_to_skip=_no_weights(model))


def load_weights(model, file, cast=False):
    """Reads weights that `save_weights` wrote.

    What is in the file is compared with the model first, from the headers of its arrays, so that
    a model gets all of its weights or none. Keras itself would convert other dtypes silently, and
    ignore what it has no variable for.

    Args:
        model: A built model.
        file: `pathlib.Path` of the file.
        cast: Whether floating-point weights may have another floating-point dtype in the file.

    Raises:
        ValueError: If the file is damaged, holds other weights than those of the model, or refers
            to other files.
    """
    expected = _layout(model)
    try:
        with h5py.File(file, "r") as h5:
            found = dict(_arrays(h5, "", set()))
    except (OSError, RuntimeError, KeyError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read as HDF5: {error}") from error
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    problems = list(_problems(expected, found, cast))
    if problems:
        more = f" (and {len(problems) - _NAMED} more)" if len(problems) > _NAMED else ""
        raise ValueError(
            f"{file} does not fit the model of its config: {'; '.join(problems[:_NAMED])}{more}"
        )
    embeddings = _plain_embeddings(model, found, expected)
    try:
        skipped = [*_no_weights(model), *embeddings]
        keras.saving.load_weights(model, file, objects_to_skip=skipped)
        with h5py.File(file, "r") as h5:
            for layer, path in embeddings.items():
                assign_in_blocks(layer.embeddings, h5[path])
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error


def _no_weights(model):
    state = [getattr(model, "optimizer", None), *getattr(model, "memories", ())]
    return [part for part in state if part is not None]


def _plain_embeddings(model, found, expected):
    """`{layer: path in the file}` of embeddings, by far the largest weights, that are floats."""
    paths = {name: path for path, (name, *_) in expected.items()}
    layers = [
        layer for layer in model._flatten_layers() if isinstance(layer, keras.layers.Embedding)
    ]
    variables = {layer: paths.get(getattr(layer.embeddings, "path", None)) for layer in layers}
    return {
        layer: path
        for layer, path in variables.items()
        if path in found and found[path][1] == "float32"
    }


def _problems(expected, found, cast):
    for path, (name, shape, dtype) in expected.items():
        if path not in found:
            yield f"{name} ({path}) is missing"
        elif found[path][0] != shape:
            yield f"{name} ({path}) has shape {found[path][0]}, expected {shape}"
        elif found[path][1] != dtype and not (cast and _is_float(dtype, found[path][1])):
            yield f"{name} ({path}) is {found[path][1]}, expected {dtype}"
    for path in found:
        if path not in expected:
            yield f"{path} is of no variable"


def _is_float(*dtypes):
    return set(dtypes) <= {"float16", "bfloat16", "float32", "float64"}


# === What the model has ===


def _layout(model):
    """`{path in the file: (path of the variable, shape, dtype)}`, as Keras would save the model.

    Only Keras knows where in a file it looks for which variable. So it saves the model, with every
    value replaced by its number.
    """
    variables = []
    with contextlib.ExitStack() as stack:
        for layer in model._flatten_layers():
            layer.save_own_variables = _numbered(layer.save_own_variables, variables)
            stack.callback(delattr, layer, "save_own_variables")
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        file = pathlib.Path(folder) / "layout.weights.h5"
        save_weights(model, file)
        with h5py.File(file, "r") as h5:
            return {path: variables[int(h5[path][()])] for path, _ in _arrays(h5, "", set())}


def _numbered(save_own_variables, variables):
    def save(store):
        own = {}
        save_own_variables(own)
        for key, value in own.items():
            store[key] = np.array(len(variables))
            shape, dtype = tuple(value.shape), keras.backend.standardize_dtype(value.dtype)
            variables.append((getattr(value, "path", key), shape, dtype))

    return save


# === What the file has ===


def _arrays(group, prefix, seen):
    """Yields (path, (shape, dtype)) of all arrays, and refuses all but plain ones."""
    for name in group:
        path = f"{prefix}{name}"
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise ValueError(f"{path} is a link, to another file or place")
        entry = group[name]
        address = h5py.h5o.get_info(entry.id).addr
        if address in seen:
            raise ValueError(f"{path} is there under another name, too")
        seen.add(address)
        if isinstance(entry, h5py.Group):
            yield from _arrays(entry, f"{path}/", seen)
        elif not isinstance(entry, h5py.Dataset):
            raise ValueError(f"{path} is no array")
        elif entry.external or entry.is_virtual:
            raise ValueError(f"{path} has its values in another file")
        else:
            yield path, (entry.shape, _dtype(entry))


def _dtype(dataset):
    # HDF5 has no bfloat16: Keras saves two bytes, and the name beside them.
    named = dataset.attrs.get("dtype")
    if named is None:
        return dataset.dtype.name
    return str(named) if dataset.dtype.kind == "V" else f"{dataset.dtype.name} marked {named}"

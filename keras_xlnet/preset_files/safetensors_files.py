"""Weights in the safetensors format, in one file or in several."""

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import safetensors
from safetensors.numpy import save_file

from keras_xlnet.types import PathLike

_DTYPES = {"BF16": "bfloat16", "BOOL": "bool"}
_KINDS = {"F": "float", "I": "int", "U": "uint"}


class SafetensorsFiles:
    """Reads the tensors of safetensors files, each when it is needed.

    Args:
        files: Paths of the files.
        name: What errors call the files together.

    Attributes:
        shapes: Dict of shapes by the names of the tensors.
        dtypes: Dict of the names of their dtypes, as NumPy has them.
        metadata: Dict of the strings in the headers of the files.

    Raises:
        ValueError: If a file is damaged, or two files have a tensor of the same name.
    """

    def __init__(self, files: Iterable[PathLike], name: Any) -> None:
        self._name = str(name)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self._files: dict[str, PathLike] = {}
        for file in files:
            with _open(file) as tensors:
                self.metadata |= tensors.metadata() or {}
                for name in tensors.keys():
                    if name in self._files:
                        raise ValueError(f"{name!r} is in {self._files[name]} and in {file}")
                    tensor = tensors.get_slice(name)
                    self._files[name] = file
                    self.shapes[name] = tuple(tensor.get_shape())
                    self.dtypes[name] = _dtype(tensor.get_dtype())

    def __str__(self) -> str:
        return self._name

    def file_of(self, name: str) -> PathLike:
        """Returns the path of the file that holds a tensor."""
        return self._files[name]

    def read(self, name: str) -> "StoredTensor":
        """Returns a `StoredTensor`: slices of it are arrays."""
        return StoredTensor(self._files[name], name)


class StoredTensor:
    """A tensor in a file. `tensor[...]` reads all of it, `tensor[start:stop]` some of its rows."""

    def __init__(self, file: PathLike, name: str) -> None:
        self._file, self._name = file, name

    def __getitem__(self, rows: Any) -> np.ndarray:
        # The file is opened each time: it is mapped into memory, and pages that have been read
        # would stay there until it is closed.
        with _open(self._file) as tensors:
            if rows is Ellipsis:
                return tensors.get_tensor(self._name)
            return tensors.get_slice(self._name)[rows]


def write_safetensors(
    file: PathLike, arrays: dict[str, np.ndarray], metadata: dict[str, str] | None = None
) -> None:
    """Writes `{name: NumPy array}` and a dict of strings to a file."""
    # safetensors 0.8.0 writes wrong values of arrays in another order: safetensors#825.
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # transformers refuses files that do not say which framework wrote them.
    save_file(arrays, file, metadata={"format": "pt", **(metadata or {})})


@contextlib.contextmanager
def _open(file):
    try:
        with safetensors.safe_open(file, "np") as tensors:
            yield tensors
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{file} cannot be read as safetensors: {error}") from error


def _dtype(name):
    """Returns NumPy's name of a dtype: `"float16"` for `"F16"`."""
    kind, bits = name[:1], name[1:]
    return (
        f"{_KINDS[kind]}{bits}" if kind in _KINDS and bits.isdecimal() else _DTYPES.get(name, name)
    )

"""Weights in an HDF5 file, as Keras writes them. Only numbers are read: nothing is executed."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import h5py
import ml_dtypes
import numpy as np

from keras_xlnet.types import PathLike


class HDF5File:
    """Reads the arrays of an HDF5 file lazily.

    Links, in the file or to other files, are not followed.

    Args:
        file: Path of the file.
        name_of: Optional function from the path of an array in the file to its name, or to `None`
            for an array to leave out. By default the path is the name.

    Attributes:
        shapes: Dict of shapes by the names of the arrays.
        dtypes: Dict of the names of their dtypes, as NumPy has them.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged or not HDF5, two arrays have the same name, or an array
            is not stored as Keras writes it.
    """

    def __init__(
        self, file: PathLike, name_of: Callable[[str], str | None] = lambda path: path
    ) -> None:
        self._file, self._name_of = file, name_of
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        with _open(file) as root:
            # Symbolic and external links are not followed.
            root.visititems(self._add)

    def _add(self, path, entry):
        name = self._name_of(path) if isinstance(entry, h5py.Dataset) else None
        if name is None:
            return
        if name in self._paths:
            raise ValueError(
                f"{self._file} has several weights {name!r}: {self._paths[name]} and {path}"
            )
        _check_stored(self._file, path, entry)
        self._paths[name] = path
        self.shapes[name] = entry.shape
        self.dtypes[name] = _dtype(entry)

    def __str__(self) -> str:
        return str(self._file)

    def file_of(self, name: str) -> PathLike:
        """Returns the path of the file."""
        return self._file

    def read(self, name: str) -> "StoredArray":
        """Returns a `StoredArray`: slices of it are arrays."""
        return StoredArray(self._file, self._paths[name])

    def attribute(self, name: str) -> Any:
        """Returns an attribute of the file, `None` if it has none of that name."""
        with _open(self._file) as root:
            return root.attrs.get(name)


class StoredArray:
    """An array in a file. `array[...]` reads all of it, `array[start:stop]` some of its rows."""

    def __init__(self, file: PathLike, path: str) -> None:
        self._file, self._path = file, path

    def __getitem__(self, rows: Any) -> np.ndarray:
        with _open(self._file) as root:
            value = root[self._path][rows]
        return value.view(ml_dtypes.bfloat16) if value.dtype.kind == "V" else value


@contextlib.contextmanager
def _open(file: PathLike) -> Iterator[h5py.File]:
    try:
        with h5py.File(file, "r") as root:
            yield root
    except FileNotFoundError:
        raise
    # h5py also raises RuntimeError and KeyError if the middle of a file is damaged.
    except (OSError, RuntimeError, KeyError) as error:
        raise ValueError(f"{file} cannot be read as HDF5: {error}") from error


def _check_stored(file, path, array):
    """Refuses arrays that are stored in other files, and arrays larger than their stored data."""
    is_elsewhere = array.is_virtual or array.external
    if array.shape is None or is_elsewhere or array.id.get_storage_size() < array.nbytes:
        raise ValueError(
            f"{path!r} in {file} is empty, compressed or stored in another file, which Keras does "
            "not write"
        )


def _dtype(array):
    # HDF5 has no bfloat16: Keras writes two bytes and an attribute.
    if array.dtype == np.dtype("V2") and array.attrs.get("dtype") == "bfloat16":
        return "bfloat16"
    return array.dtype.name

"""Columns of texts as lists of strings, whatever container they come in.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

import itertools
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

# Libraries whose columns are neither NumPy arrays nor lists.
_COLUMN_LIBRARIES = ("datasets", "polars", "pyarrow")


def plain_columns(x: Any) -> Any:
    """Returns columns of text as lists, whatever their container is.

    All methods that take texts or labels read them through this function. A column is a column of
    pandas, polars, Arrow or Hugging Face `datasets`, an array or tensor of strings, or a Python
    collection. In a tuple or a dict, a column may also be an iterator.

    Args:
        x: What a user passed: a column, or a tuple or dict of columns. A tuple without columns
            is itself a column. Arrays of numbers, tables, datasets and batches are returned
            unchanged.
    """
    if isinstance(x, Mapping):
        return {name: plain_columns(_listed(column)) for name, column in x.items()}
    if isinstance(x, tuple):
        if not any(hasattr(part, "__iter__") and not isinstance(part, (str, bytes)) for part in x):
            return list(x)
        return tuple(plain_columns(_listed(part)) for part in x)
    if isinstance(x, list) and x and hasattr(x[0], "as_py"):  # Scalars of Arrow.
        return [part.as_py() if hasattr(part, "as_py") else part for part in x]
    if isinstance(x, (list, str, bytes)) or is_table(x):
        return x
    library = type(x).__module__.partition(".")[0]
    if library in _COLUMN_LIBRARIES or getattr(getattr(x, "dtype", None), "kind", "?") in "OSUT":
        names = ("to_pylist", "to_list", "tolist")
        convert = next((getattr(x, name) for name in names if hasattr(x, name)), None)
        return list(x) if convert is None else convert()
    if hasattr(x, "dtype"):
        is_string_tensor = getattr(x.dtype, "name", "") == "string"
        values = getattr(x, "to_list", None) or getattr(x, "numpy", None)
        if not is_string_tensor or values is None:  # Numbers, or a symbolic tensor.
            return x
        found = values()
        return found.tolist() if hasattr(found, "tolist") else found
    return list(x) if isinstance(x, Collection) else x


def plain_texts(x: Any) -> Any:
    """Returns what `plain_columns` does. An iterator of strings is a column too.

    Args:
        x: As in `plain_columns`. The first item of an iterator is consumed, so use the result.
    """
    if isinstance(x, Iterator):
        first = list(itertools.islice(x, 1))
        rest = itertools.chain(first, x)
        return rest if first and not isinstance(first[0], (str, bytes)) else list(rest)
    return plain_columns(x)


def _listed(x):
    return list(x) if isinstance(x, Iterator) else x


def is_table(x: Any) -> bool:
    """Whether `x` is a table of pandas, polars, Arrow or Hugging Face `datasets`."""
    return hasattr(x, "column_names") or (hasattr(x, "columns") and hasattr(x, "dtypes"))


def categories_of(column: Any) -> list[Any] | None:
    """Returns the categories of a column in order, or `None` if it has none.

    Args:
        column: A categorical column of pandas, an `Enum` of polars or an ordered dictionary of
            Arrow. Other categories of polars and Arrow have no order.
    """
    found: Any = getattr(getattr(column, "dtype", column), "categories", None)
    if getattr(getattr(column, "type", None), "ordered", False):
        column = column.unify_dictionaries().chunk(0) if hasattr(column, "chunk") else column
        found = column.dictionary.to_pylist()
    return list(found) if hasattr(found, "__len__") else None


def as_text(name: str, row: int | str, text: Any) -> str:
    """Returns a text as a string. Raises `ValueError` with the name and the row for other types."""
    if isinstance(text, list) and len(text) == 1:  # From an array or a table with one column.
        text = text[0]
    text = text.numpy() if hasattr(text, "numpy") else text  # From a list of tensors.
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if not isinstance(text, str):
        raise ValueError(f"`{name}` must be strings. Received in row {row}: {text!r}")
    return text


def texts_of_corpus(files: Any) -> Iterator[str] | None:
    """Returns the texts of an argument `files` that is not paths, one by one; `None` for paths.

    Args:
        files: A path or a list of paths; or any other iterable of texts, such as an iterator, a
            column of a table or a `tf.data.Dataset`.
    """
    if isinstance(files, (str, os.PathLike, list, tuple)):
        return None
    return (as_text("files", row, text) for row, text in enumerate(files))


def as_texts(texts: Any, name: str = "x") -> list[str]:
    """Returns a column of texts as a list of strings.

    Raises:
        ValueError: If it is a single string, or something is not text. The message names the row.
    """
    texts = plain_texts(texts)
    if isinstance(texts, (str, bytes)):
        raise ValueError(f"`{name}` must be a batch of texts: pass a list. Received: {texts!r}")
    if not isinstance(texts, list):
        raise ValueError(f"`{name}` must be texts. Received: {texts!r}")
    return [as_text(name, row, text) for row, text in enumerate(texts)]

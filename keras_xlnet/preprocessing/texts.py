"""Raw text in the forms that users have it: lists, arrays, columns of tables, datasets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

# The names that TensorFlow and pandas give their text types.
_TEXT_DTYPES = ("<dtype: 'string'>", "string", "str", "object")


# Libraries whose columns are neither NumPy arrays nor lists.
_COLUMN_LIBRARIES = ("datasets", "polars", "pyarrow")


def plain_columns(x: Any) -> Any:
    """Returns `x` with columns of Hugging Face `datasets`, polars and Arrow as lists.

    Args:
        x: What a user passed: a column, or a tuple or dict of columns. Anything else is returned
            unchanged.
    """
    if isinstance(x, dict):
        return {name: plain_columns(column) for name, column in x.items()}
    if isinstance(x, tuple):
        return tuple(map(plain_columns, x))
    is_column = type(x).__module__.partition(".")[0] in _COLUMN_LIBRARIES and not is_table(x)
    if not is_column:
        return x
    convert = getattr(x, "to_pylist", None) or getattr(x, "to_list", None)
    return list(x) if convert is None else convert()


def is_table(x: Any) -> bool:
    """Whether `x` is a table of pandas, polars, Arrow or Hugging Face `datasets`."""
    return hasattr(x, "column_names") or (hasattr(x, "columns") and hasattr(x, "dtypes"))


def is_dataset(x: Any) -> bool:
    """Whether `x` is a `tf.data.Dataset`."""
    return hasattr(x, "element_spec")


def is_text(x: Any) -> bool:
    """Whether `x` (or the specification of a dataset) is text, or a tuple that starts with it."""
    if isinstance(x, dict):
        return is_text(x.get("text"))
    if isinstance(x, (tuple, list)) and x:
        return is_text(x[0])
    dtype = getattr(x, "dtype", None)
    is_text_array = isinstance(dtype, np.dtype) and dtype.kind in "OSUT"
    return isinstance(x, (str, bytes)) or is_text_array or str(dtype) in _TEXT_DTYPES


def has_text(x: Any, *keys: str) -> bool:
    """Whether `x` is text, or a dict with text for one of some keys."""
    return any(is_text(x.get(key)) for key in keys) if isinstance(x, dict) else is_text(x)


def split_spec(spec: Any) -> tuple[Any, Any]:
    """Returns the specification of the inputs, and of labels and weights, of a dataset.

    As in Keras, the first part of a tuple is the inputs, and the others are labels and weights,
    whatever their dtypes: pairs of texts are a dict, or a tuple in this tuple.

    Args:
        spec: The `element_spec` of a dataset.
    """
    return (spec[0], spec[1:]) if isinstance(spec, tuple) else (spec, ())


def check_container(x: Any, row_name: str = "text") -> None:
    """Raises `ValueError` if `x` is a table, has no rows, or is a dataset without batches.

    Args:
        x: What a user passed.
        row_name: String, what a row is called in errors.
    """
    if is_table(x):
        names = list(getattr(x, "column_names", None) or x.columns)
        raise ValueError(
            "`x` must be one column of a table, such as df['text'], or two for pairs of texts: "
            f"(df['text'], df['pair']). Received: a table with the columns {names}"
        )
    if is_dataset(x):
        _check_batched(split_spec(x.element_spec)[0])
    elif _is_empty(x):
        raise ValueError(f"`x` must have at least one {row_name}. Received: x={x!r}")


def _is_empty(x):
    if hasattr(x, "shape"):  # Symbolic tensors refuse `len`.
        return x.shape[:1] == (0,)
    return hasattr(x, "__len__") and not len(x)


def _check_batched(spec):
    if not isinstance(spec, dict):
        spec = dict(enumerate(spec if isinstance(spec, (tuple, list)) else [spec]))
    for name, part in spec.items():
        rank = getattr(getattr(part, "shape", None), "rank", None)
        smallest = 1 if is_text(part) else 2 if name == "token_ids" else 0
        if rank is not None and rank < smallest:
            raise ValueError(
                "`x` must be a dataset of batches: call `x.batch(32)`. Received: a dataset of "
                f"single texts, {part}"
            )


def text_columns(x: Any, names: Sequence[str] = ("text", "pair")) -> dict[str, np.ndarray]:
    """Returns a dict of object arrays of equal length: the texts of each row by name.

    Args:
        x: Texts, a tuple of several of these, or a dict with some of `names`. Texts are a list, an
            array, a column of a table or a string tensor. Or by row: a list of tuples, or an array
            `(batch, number of texts)`.
        names: Strings, what the texts of a row are called. Rows may have fewer texts.

    Raises:
        ValueError: If the lengths differ, something is not a string or a row has too many texts.
            The message names the row.
    """
    parts: dict[str, Any]
    if isinstance(x, dict):
        parts = x
    elif isinstance(x, tuple):
        parts = dict(zip(_first_names(names, x), x, strict=True))
    elif has_rows(x):
        found = _first_names(names, x[0])
        parts = dict(zip(found, columns_of_rows(x, f"({', '.join(found)})"), strict=True))
    else:
        parts = {names[0]: x}
    # Without other columns, users know the argument by Keras' name.
    called = {key: "x" if len(parts) == 1 else key for key in parts}
    parts = {key: _as_column(value, called[key]) for key, value in parts.items()}
    lengths = {key: len(part) for key, part in parts.items()}
    if len(set(lengths.values())) > 1:
        given = " and ".join(f"`{name}`" for name in lengths)
        raise ValueError(f"{given} must have equal lengths. Received: {lengths}")
    return parts


def _first_names(names, texts):
    """The names of the texts of a row. All rows together can have fewer than `names`."""
    if not 1 < len(texts) <= len(names):
        forms = " or ".join(f"({', '.join(names[: n + 1])})" for n in range(1, len(names)))
        raise ValueError(f"`x` must have rows {forms}. Received in row 0: {len(texts)} texts")
    return names[: len(texts)]


def has_rows(x: Any) -> bool:
    """Whether `x` has several texts per row: a list of tuples or lists, or an array of rank 2."""
    if isinstance(x, list):
        return isinstance(x[0], (tuple, list))
    return len(getattr(x, "shape", ())) == 2 and x.shape[1] > 1


def columns_of_rows(x: Any, form: str) -> list[tuple[Any, ...]]:
    """Returns the columns of rows that are all as long as `form` has names.

    Args:
        x: List of tuples or lists, or an array of rank 2.
        form: String, such as `"(text, pair)"`, for errors.

    Raises:
        ValueError: If a row has another length. The message names the row.
    """
    width = form.count(",") + 1
    for row, values in enumerate(x):
        if (
            isinstance(values, (str, bytes))
            or not hasattr(values, "__len__")
            or len(values) != width
        ):
            raise ValueError(f"`x` must have rows {form}. Received in row {row}: {values!r}")
    return list(zip(*x, strict=True))


def one_text(name: str, row: int, text: Any) -> str:
    """Returns a text as a string; `ValueError` with the name and the row if it is not text."""
    text = text.decode() if isinstance(text, bytes) else text
    if not isinstance(text, str):
        raise ValueError(f"`{name}` must be strings. Received in row {row}: {text!r}")
    return text


def several_texts(name: str, row: int, texts: Any) -> list[str]:
    """Returns the texts of a row as strings, at least one; `ValueError` as `one_text` does."""
    if isinstance(texts, (str, bytes)) or not hasattr(texts, "__len__") or not len(texts):
        raise ValueError(f"`{name}` must be lists of strings. Received in row {row}: {texts!r}")
    return [one_text(name, row, text) for text in texts]


def _as_column(texts, name):
    if isinstance(texts, (str, bytes)):
        raise ValueError(f"`{name}` must be a batch of texts: pass a list. Received: {texts!r}")
    texts = np.asarray(texts, dtype=object)
    for row, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            raise ValueError(f"`{name}` must be strings. Received in row {row}: {text!r}")
    return texts

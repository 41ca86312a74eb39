"""Raw text in all forms that users pass: lists, arrays, columns of tables, datasets."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.results import short
from keras_xlnet.tokenizers.text_columns import (
    as_text,
    as_texts,
    is_table,
    plain_columns,
    plain_texts,
)

# The names of text types in TensorFlow and pandas.
_TEXT_DTYPES = ("<dtype: 'string'>", "string", "str", "object")


# Columns with several texts in each row.
_LISTS = ("documents", "choices")


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


def is_raw(x: Any) -> bool:
    """Whether the result of `plain_columns` is read as text: not arrays, not batches."""
    if isinstance(x, dict):
        return "token_ids" not in x
    if isinstance(x, tuple):
        return any(map(is_raw, x))
    return isinstance(x, (list, str, bytes)) or is_text(x)


def split_spec(spec: Any) -> tuple[Any, Any]:
    """Returns the specification of the inputs, and of labels and weights, of a dataset.

    As in Keras, the first part of a tuple is the inputs, and the others are labels and weights,
    whatever their dtypes: pairs of texts are a dict, or a tuple in this tuple.

    Args:
        spec: The `element_spec` of a dataset.
    """
    return (spec[0], spec[1:]) if isinstance(spec, tuple) else (spec, ())


def check_container(x: Any, row_name: str = "text") -> None:
    """Raises `ValueError` for a table, no rows, lists of numbers, and a dataset without batches.

    Args:
        x: What a user passed.
        row_name: String, the name of a row in errors.
    """
    if is_table(x):
        names = list(getattr(x, "column_names", None) or x.columns)
        raise ValueError(
            "`x` must be one column of a table, such as df['text'], or two for pairs of texts: "
            f"(df['text'], df['pair']). Received: a table with the columns {names}"
        )
    if is_dataset(x):
        _check_batched(split_spec(x.element_spec)[0])
    elif x is None or isinstance(x, (int, float)):
        raise ValueError(f"`x` must be texts, or the features of a preprocessor. Received: {x!r}")
    elif isinstance(x, os.PathLike):
        raise ValueError(
            "`x` must be texts: `keras_xlnet.task_files` reads them from a file. Received: the "
            f"path {os.fspath(x)!r}"
        )
    elif _is_empty(x):
        raise ValueError(f"`x` must have at least one {row_name}. Received: x={x!r}")
    elif _is_numbers(x):
        raise ValueError(
            "`x` must be texts, or token ids in a dict: {'token_ids': array}. Received: numbers, "
            f"{short(x)}"
        )


def _is_empty(x):
    if hasattr(x, "shape"):  # Symbolic tensors refuse `len`.
        return x.shape[:1] == (0,)
    return hasattr(x, "__len__") and not len(x)


def _is_numbers(x):
    """Whether numbers were given. Errors name the row of a single number in a list."""
    depth = 0
    while isinstance(x, (list, tuple)) and x:
        x, depth = x[0], depth + 1
    kind = getattr(getattr(x, "dtype", None), "kind", "?")
    return depth > 1 and isinstance(x, int) or kind in "biuf"


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


def read_columns(x: Any, forms: Sequence[tuple[str, ...]]) -> dict[str, list[Any]]:
    """Returns a dict of lists of equal length: the texts of each row by name.

    Args:
        x: What a user passed: a tuple or dict of columns, or a list of rows, tuples or dicts, of
            one of `forms`; or a column, if a form has one name. Columns are as in `plain_columns`.
        forms: Tuples of strings, the names of the texts of a row. `documents` and `choices` are
            lists of texts.

    Raises:
        ValueError: If the lengths differ or are 0, or something is not a string. The message names
            the row.
    """
    x = plain_columns(x)
    by_length = {len(form): form for form in forms}
    expected = " or ".join(f"({', '.join(form)})" for form in forms if len(form) > 1)
    if isinstance(x, list) and x and isinstance(x[0], dict):
        keys = x[0].keys()
        for row, values in enumerate(x):
            if not isinstance(values, dict) or values.keys() != keys:
                raise ValueError(
                    f"`x` must have rows with the keys {sorted(keys)}. Received in row {row}: "
                    f"{values!r}"
                )
        x = {name: [values[name] for values in x] for name in keys}
    if isinstance(x, dict):
        if set(x) not in [set(form) for form in forms]:
            keys = " or ".join(" and ".join(f'"{name}"' for name in form) for form in forms)
            raise ValueError(f"`x` must be a dict with the keys {keys}. Received: {sorted(x)}")
        columns = x
    elif isinstance(x, tuple):
        if len(x) not in by_length:
            raise ValueError(f"`x` must be columns {expected}. Received: a tuple of {len(x)}")
        columns = dict(zip(by_length[len(x)], x, strict=True))
    elif isinstance(x, list) and x and (_is_row(x[0]) or 1 not in by_length):
        names = by_length.get(len(x[0]) if _is_row(x[0]) else 0, ())
        for row, values in enumerate(x):
            if not names or not _is_row(values) or len(values) != len(names):
                raise ValueError(
                    f"`x` must have rows {expected}. Received in row {row}: {values!r}"
                )
        columns = dict(zip(names, zip(*x, strict=True), strict=True))
    else:
        columns = {by_length[min(by_length)][0]: x}
    # Without other columns, users know the argument by Keras' name.
    called = {name: "x" if len(columns) == 1 else name for name in columns}
    found = {
        name: several_texts(called[name], column)
        if name in _LISTS
        else as_texts(column, called[name])
        for name, column in columns.items()
    }
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        given = " and ".join(f"`{name}`" for name in lengths)
        raise ValueError(f"{given} must have equal lengths. Received: {lengths}")
    if not all(lengths.values()):
        raise ValueError(f"`x` must have at least one row. Received: {lengths}")
    return found


def _is_row(x):
    return hasattr(x, "__len__") and not isinstance(x, (str, bytes, dict))


def several_texts(name: str, rows: Any) -> list[list[str]]:
    """Returns a column with a list of texts in each row, none of them empty, as `as_texts` does."""
    found = []
    for row, texts in enumerate(plain_texts(rows)):
        texts = plain_texts(texts)
        if not isinstance(texts, (list, tuple)) or not texts:
            raise ValueError(f"`{name}` must be lists of strings. Received in row {row}: {texts!r}")
        found.append([as_text(name, row, text) for text in texts])
    return found


def one_row(x: Any, *others: Any) -> tuple[Any, bool]:
    """Returns the columns that a method was given, and whether they are a single row of strings.

    Args:
        x: Texts in any form, or the first column.
        others: For methods with several texts per row: the other columns, or `None` if `x` has all.
    """
    for column in others:
        if isinstance(column, (int, float)):
            raise ValueError(
                "The second argument must be a column of texts, or a text: pass numbers such as "
                f"`batch_size` by name. Received: {column}"
            )
    columns = (x, *(column for column in others if column is not None))
    x = columns if len(columns) > 1 else x
    first = next(iter(x.values()), None) if isinstance(x, dict) else x
    if others and isinstance(x, tuple) and x:
        first = x[0]
    if not isinstance(first, (str, bytes)):
        return x, False
    if isinstance(x, dict):
        return {name: [text] for name, text in x.items()}, True
    return tuple([text] for text in x) if isinstance(x, tuple) else [x], True

"""Labels and class weights in the forms that users have them, and their checks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_xlnet.inputs.texts import is_text


def as_label_array(labels: Any) -> Any:
    """Returns labels as a NumPy array: of numbers, or an object array of strings.

    Args:
        labels: List, tuple, array, tensor or column of a table. What is none of these, such as a
            dict or `None`, is returned as it is.

    Raises:
        ValueError: If some labels are strings and others are not. The message names the row.
    """
    if ops.is_tensor(labels) and not is_text(labels):
        return ops.convert_to_numpy(labels)
    if isinstance(labels, dict) or not hasattr(labels, "__len__"):
        return labels
    try:
        array = np.asarray(labels)
    except ValueError:
        lengths = [np.shape(row) for row in labels]
        raise ValueError(f"`y` must be rows of equal lengths. Received: {lengths[:10]}") from None
    if array.dtype.kind not in "OSUT":
        return array
    rows = np.asarray(labels, dtype=object)
    is_string = [isinstance(label, (str, bytes)) for label in rows.ravel()]
    if not any(is_string):
        return _as_numbers(rows)
    if rows.ndim != 1 or not all(is_string):
        row = is_string.index(False) if rows.ndim == 1 else 0
        raise ValueError(f"`y` must be strings, or numbers. Received in row {row}: {rows[row]!r}")
    return np.array([x.decode() if isinstance(x, bytes) else x for x in rows], dtype=object)


def as_weight_array(weights: Any) -> Any:
    """Returns sample weights as an array if they are a list of numbers, and else as they are."""
    return np.asarray(weights, "float32") if isinstance(weights, (list, tuple)) else weights


def _as_numbers(labels):
    """An object array of numbers as floats, with NaN for None."""
    for row, label in enumerate(labels):
        try:
            np.asarray(label, "float64")
        except (TypeError, ValueError):
            raise ValueError(
                f"`y` must be strings, or numbers. Received in row {row}: {label!r}"
            ) from None
    return labels.astype("float64")


def is_names(labels: Any) -> bool:
    """Whether what `as_label_array` returned are strings."""
    return isinstance(labels, np.ndarray) and labels.dtype == object


def learn_class_names(labels: Any, num_classes: int) -> list[str]:
    """Returns the names of classes: the categories of a column, or the sorted labels.

    Args:
        labels: Labels as the user has them, strings.
        num_classes: Int, how many there have to be.

    Raises:
        ValueError: If there are more or fewer.
    """
    categories = getattr(getattr(labels, "cat", labels), "categories", None)
    names = sorted(set(as_label_array(labels))) if categories is None else list(categories)
    if len(names) != num_classes:
        raise ValueError(
            f"`y` must have `num_classes` different names, or the model needs `class_names`. "
            f"Received: {len(names)} names, {names[:10]}, and num_classes={num_classes}"
        )
    return names


def encode_names(labels: np.ndarray, class_names: Sequence[str]) -> np.ndarray:
    """Returns the int32 indices of the names of classes.

    Raises:
        ValueError: If a label is not the name of a class. The message names the row.
    """
    index = {name: i for i, name in enumerate(class_names)}
    for row, label in enumerate(labels):
        if label not in index:
            raise ValueError(
                f"`y` must be names in class_names={class_names}. Received in row {row}: {label!r}"
            )
    return np.array([index[label] for label in labels], "int32")


def encode_class_weight(
    class_weight: dict[Any, float], class_names: Sequence[str]
) -> dict[int, float]:
    """Returns the weights of classes by index, of weights by name or index.

    Raises:
        ValueError: If a name is not that of a class.
    """
    index = {name: i for i, name in enumerate(class_names)}
    unknown = [name for name in class_weight if isinstance(name, str) and name not in index]
    if unknown:
        raise ValueError(
            f"`class_weight` must have names in class_names={class_names}. Received: {unknown[0]!r}"
        )
    return {index.get(name, name): weight for name, weight in class_weight.items()}


def check_no_missing(labels: Any) -> None:
    """Raises `ValueError` if a label is NaN. The message names the row."""
    if not isinstance(labels, np.ndarray) or labels.dtype.kind != "f":
        return
    missing = np.isnan(labels)
    if missing.any():
        row = int(np.argwhere(missing)[0][0])
        raise ValueError(f"`y` must not have missing values. Received in row {row}: {labels[row]}")


def as_columns(labels: Any, width: int, reason: str) -> Any:
    """Returns labels `(texts, width)`; from `(texts,)` for a width of 1.

    Raises:
        ValueError: If they have another shape.
    """
    if not isinstance(labels, np.ndarray):
        return labels
    shapes = {(width,), ()} if width == 1 else {(width,)}
    if labels.shape[1:] not in shapes:
        raise ValueError(
            f"`y` must have shape (texts, {width}) ({reason}). Received: shape {labels.shape}"
        )
    return labels.reshape(-1, width)


def as_class_indices(labels: Any, num_classes: int, ignored: int | None = None) -> Any:
    """Returns indices of classes, `(texts,)`.

    Args:
        labels: Array `(texts,)` or `(texts, 1)`.
        num_classes: Int.
        ignored: Optional int that is allowed too.

    Raises:
        ValueError: If a label is not an index of a class. The message names the row.
    """
    if not isinstance(labels, np.ndarray):
        return labels
    if labels.shape[1:] not in ((), (1,)):
        raise ValueError(
            f"`y` must be class indices of shape (texts,), or names. For vectors of {num_classes} "
            "values, compile with `loss='categorical_crossentropy'`, or use "
            f"activation='sigmoid' for several classes a text. Received: shape {labels.shape}"
        )
    labels = labels.ravel()
    wrong = (labels < 0) | (labels >= num_classes) | (labels != np.floor(labels))
    if ignored is not None:
        wrong &= labels != ignored
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(
            f"`y` must be class indices from 0 to {num_classes - 1} (num_classes={num_classes}). "
            f"Received in row {row}: {labels[row]}"
        )
    return labels

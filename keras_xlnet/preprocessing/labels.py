"""Reads and checks labels in all forms that users pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.arguments import check_number
from keras_xlnet.preprocessing.weights import weights_of_classes
from keras_xlnet.tokenizers.text_columns import categories_of, plain_columns, plain_texts
from keras_xlnet.types import Tensor

# How far the probabilities of a row may sum from 1.
_TOLERANCE = 1e-3
DEFAULT_THRESHOLD = 0.5


@dataclasses.dataclass(frozen=True)
class Classes:
    """The classes of a model, and the form of its labels.

    Args:
        num_classes: Int.
        class_names: List of `num_classes` strings, or `None`.
        activation: `"softmax"` for exclusive classes, `"sigmoid"` for several classes per text, or
            `"linear"` for numbers.
        takes_vectors: Bool, whether the loss takes a vector for each text with exclusive classes.
        ignored: Optional int, an additional index that the loss ignores.
    """

    num_classes: int
    class_names: Sequence[str] | None = None
    activation: str = "softmax"
    takes_vectors: bool = False
    ignored: int | None = None

    @property
    def names(self) -> list[str]:
        """List of the names, or of the indices as strings if the classes have no names."""
        names = range(self.num_classes) if self.class_names is None else self.class_names
        return [str(name) for name in names]

    def encode(self, y: Any) -> Any:
        """Returns the labels of texts as numbers, checked.

        Args:
            y: Names, indices or vectors, an array, list or column of a table. Anything else is
                returned unchanged.

        Raises:
            ValueError: If a label is missing, is not a class, or has another shape. The message
                names the row.
        """
        if self.activation == "sigmoid" and is_lists_of_names(y):
            if self.class_names is None:
                raise ValueError(
                    "`y` has lists of names: that needs `class_names`, or a `fit` that learns them"
                )
            return encode_lists_of_names(y, self.class_names)
        y = as_label_array(y)
        check_finite(y)
        if is_names(y):
            self._check_takes_names()
            return encode_names(y, self.class_names)  # type: ignore[arg-type]  # Checked.
        if self.activation == "softmax":
            return as_class_labels(y, self.num_classes, self.takes_vectors, self.ignored)
        reason = f"activation={self.activation!r}, num_classes={self.num_classes}"
        y = as_columns(y, self.num_classes, reason)
        if self.activation == "sigmoid":
            check_zeros_and_ones(y)
        return y

    def is_ignored(self, labels: np.ndarray) -> np.ndarray:
        """Returns which rows the loss ignores, bool `(texts,)`, of labels from `encode`."""
        if self.ignored is None or labels.ndim > 1:
            return np.zeros(len(labels), "bool")
        return labels == self.ignored

    def lookup(self) -> keras.layers.Layer:
        """Returns a layer from names to indices, for `tf.data`."""
        self._check_takes_names()
        return keras.layers.StringLookup(vocabulary=self.class_names, num_oov_indices=0)

    def weights(self, class_weight: Any) -> tuple[float, ...]:
        """Returns the weight of each class, 1 for a class without one.

        Args:
            class_weight: Dict of weights, by name or index.

        Raises:
            ValueError: If the classes are not exclusive, a key is not a class, or a weight is not a
                finite number of at least 0.
        """
        if self.activation == "sigmoid" and self.num_classes == 1:
            return weights_of_classes(class_weight, ["", *(self.class_names or ["1"])], 2)
        if self.activation != "softmax":
            raise ValueError(
                "`class_weight` needs exclusive classes. Use `sample_weight`, which gives each "
                f"text a weight. Received: class_weight={class_weight!r} for a model with "
                f"activation={self.activation!r} and num_classes={self.num_classes}"
            )
        return weights_of_classes(class_weight, self.names, self.num_classes)

    def indices(self, probabilities: Tensor, threshold: float = DEFAULT_THRESHOLD) -> Tensor:
        """Returns the class of each text.

        Args:
            probabilities: Tensor `(batch, num_classes)`.
            threshold: Float from 0 to 1. Of two classes, a text has the second if its probability
                is at least this; with `"sigmoid"` it has each class with such a probability.

        Returns:
            Int32 tensor `(batch,)`; with `"sigmoid"` `(batch, num_classes)`, 1 for each class that
            a text has.
        """
        if self.activation == "sigmoid":
            return ops.cast(probabilities >= threshold, "int32")
        if self.num_classes == 2:
            return ops.cast(probabilities[:, 1] >= threshold, "int32")
        return ops.cast(ops.argmax(probabilities, axis=-1), "int32")

    def _check_takes_names(self):
        if self.activation != "softmax" or self.class_names is None:
            raise ValueError(
                "String labels need `class_names`, or a `fit` on lists or arrays, which "
                "learns them, and activation='softmax'. Received: "
                f"class_names={self.class_names}, activation={self.activation!r}"
            )


def as_label_array(labels: Any) -> Any:
    """Returns labels as a NumPy array: of numbers, or an object array of strings.

    Args:
        labels: A column of `plain_columns`, or an array or a tensor. Strings may also be
            `(texts, 1)`, such as a table of one column. Anything else, such as a dict or `None`, is
            returned unchanged.

    Raises:
        ValueError: If some labels are strings and others are not. The message names the row.
    """
    labels = plain_texts(labels)
    if ops.is_tensor(labels):
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
    if rows.shape[1:] == (1,):
        rows = rows.ravel()
    is_string = [isinstance(label, (str, bytes)) for label in rows.ravel()]
    if not any(is_string):
        return _as_numbers(rows)
    if rows.ndim != 1 or not all(is_string):
        row = is_string.index(False) if rows.ndim == 1 else 0
        raise ValueError(f"`y` must be strings, or numbers. Received in row {row}: {rows[row]!r}")
    return np.array([x.decode() if isinstance(x, bytes) else x for x in rows], dtype=object)


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


def check_number_of_rows(labels: Any, rows: int) -> None:
    """Raises `ValueError` unless every row has a label; in a dict, one of each task."""
    for part in labels.values() if isinstance(labels, dict) else [labels]:
        if isinstance(part, np.ndarray) and len(part) != rows:
            raise ValueError(
                f"`y` must have a label for each of {rows} rows. Received: {len(part)}"
            )


def is_names(labels: Any) -> bool:
    """Whether the result of `as_label_array` has strings."""
    return isinstance(labels, np.ndarray) and labels.dtype == object


def is_lists_of_names(labels: Any) -> bool:
    """Whether labels are a list of names for each text. Lists may be empty."""
    if not hasattr(labels, "__len__") or isinstance(labels, (str, bytes, dict)):
        return False
    is_list = [isinstance(row, (list, tuple, set, frozenset)) for row in labels]
    names = (name for row, flag in zip(labels, is_list, strict=True) if flag for name in row)
    return all(is_list) and isinstance(next(names, None), str)


def encode_lists_of_names(labels: Any, class_names: Sequence[str]) -> np.ndarray:
    """Returns vectors of 0 and 1, float32, `(texts, classes)`, for a list of names for each text.

    Raises:
        ValueError: If a label is not the name of a class. The message names the row.
    """
    index = {name: i for i, name in enumerate(class_names)}
    vectors = np.zeros((len(labels), len(class_names)), "float32")
    for row, names in enumerate(labels):
        for name in names:
            if name not in index:
                raise ValueError(
                    f"`y` must be lists of names in class_names={list(class_names)}. Received in "
                    f"row {row}: {name!r}"
                )
            vectors[row, index[name]] = 1.0
    return vectors


def learn_class_names(labels: Any, num_classes: int) -> list[str]:
    """Returns the names of classes: the categories of a column, or the sorted labels.

    Args:
        labels: Labels as the user has them, strings.
        num_classes: Int, how many there have to be.

    Raises:
        ValueError: If there are more or fewer.
    """
    if hasattr(labels, "columns"):  # A table of one column.
        labels = labels[labels.columns[0]]
    names = categories_of(labels)
    labels = plain_columns(labels)
    if names is not None:
        pass
    elif is_lists_of_names(labels):
        names = sorted(set().union(*labels))
    else:
        names = sorted(set(as_label_array(labels)))
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


def check_finite(labels: Any) -> None:
    """Raises `ValueError` if a label is NaN or infinite. The message names the row."""
    if not isinstance(labels, np.ndarray) or labels.dtype.kind != "f":
        return
    wrong = ~np.isfinite(labels)
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        expected = "not have missing values" if np.isnan(labels).any() else "be finite numbers"
        raise ValueError(f"`y` must {expected}. Received in row {row}: {labels[row]}")


def numbers_of_strings(labels: np.ndarray) -> np.ndarray:
    """Returns the numbers that strings stand for, float64.

    Raises:
        ValueError: If a string is not a number. The message names the row.
    """
    numbers = np.empty(len(labels), "float64")
    for row, label in enumerate(labels):
        try:
            numbers[row] = float(label)
        except ValueError:
            raise ValueError(f"`y` must be numbers. Received in row {row}: {label!r}") from None
    return numbers


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


def check_zeros_and_ones(labels: Any) -> None:
    """Raises `ValueError` if a label is neither 0 nor 1. The message names the row."""
    if not isinstance(labels, np.ndarray):
        return
    wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(
            "`y` must be 1 for each class that a text has, and 0 for the others. Received in row "
            f"{row}: {labels[row]}"
        )


def as_class_labels(
    labels: Any, num_classes: int, takes_vectors: bool, ignored: int | None = None
) -> Any:
    """Returns indices of classes `(texts,)`, or their probabilities `(texts, num_classes)`.

    Args:
        labels: Array `(texts,)`, `(texts, 1)` or `(texts, num_classes)`.
        num_classes: Int.
        takes_vectors: Whether the loss takes probabilities.
        ignored: Optional int that is allowed too.

    Raises:
        ValueError: If a label is not an index of a class, or probabilities are not from 0 to 1
            or do not add up to 1. The message names the row.
    """
    if not isinstance(labels, np.ndarray):
        return labels
    if takes_vectors and labels.shape[1:] == (num_classes,):
        _check_probabilities(labels)
        return labels
    if labels.shape[1:] not in ((), (1,)):
        raise ValueError(
            f"`y` must be class indices of shape (texts,), or names. For vectors of {num_classes} "
            "values, compile with `loss='categorical_crossentropy'`, or use "
            f"activation='sigmoid' for several classes a text. Received: shape {labels.shape}"
        )
    labels = labels.ravel()
    check_class_indices(labels, num_classes, ignored)
    return labels


def check_class_indices(labels: Any, num_classes: int, ignored: int | None = None) -> None:
    """Raises `ValueError` if a label is not the index of a class. The message names the row.

    Args:
        labels: Array of any shape, with a row for each text.
        num_classes: Int.
        ignored: Optional int that is allowed too.
    """
    if not isinstance(labels, np.ndarray):
        return
    wrong = (labels < 0) | (labels >= num_classes) | (labels != np.floor(labels))
    if ignored is not None:
        wrong &= labels != ignored
    if wrong.any():
        row, hint = int(np.argwhere(wrong)[0][0]), ""
        if (labels != np.floor(labels)).any():
            hint = ". XLNetTextRegressor learns numbers"
        elif (labels.min(), labels.max()) == (1, num_classes):
            hint = (
                f". For labels from 1 to {num_classes} pass `y - 1`, or strings, which become "
                "`class_names`. XLNetTextRegressor learns them as numbers"
            )
        raise ValueError(
            f"`y` must be class indices from 0 to {num_classes - 1} (num_classes={num_classes}). "
            f"Received in row {row}: {labels[wrong][0]}{hint}"
        )


def _check_probabilities(labels):
    wrong = ((labels < 0) | (labels > 1)).any(axis=1)
    wrong |= np.abs(labels.sum(axis=1, dtype="float64") - 1) > _TOLERANCE
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(
            "`y` must be vectors of probabilities of classes, such as [0, 1]: from 0 to 1, with "
            f"the sum 1. Received in row {row}: {labels[row]}"
        )


def check_threshold(threshold: float, num_classes: int, activation: str) -> None:
    """Raises `ValueError` if `threshold` is not from 0 to 1, or has no effect."""
    check_number("threshold", threshold, high=1)
    if threshold != DEFAULT_THRESHOLD:
        check_has_threshold("threshold", threshold, num_classes, activation)


def has_threshold(num_classes: int, activation: str) -> bool:
    """Returns whether labels depend on a threshold, not on the largest probability."""
    return activation == "sigmoid" or (activation, num_classes) == ("softmax", 2)


def check_has_threshold(name: str, given: object, num_classes: int, activation: str) -> None:
    """Raises `ValueError` if a model decides without a threshold. `name` names the argument."""
    if not has_threshold(num_classes, activation):
        raise ValueError(
            f"`{name}` can only be given for two classes with activation='softmax', or for "
            f"activation='sigmoid'. Received: {name}={given!r} for activation={activation!r}, "
            f"num_classes={num_classes}"
        )

"""Texts and pairs of texts with the labels of several tasks, some of which may be missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras import ops

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.preprocessor import Encoded
from keras_xlnet.preprocessing.text_preprocessor import XLNetTextPreprocessor
from keras_xlnet.registration import register
from keras_xlnet.tokenizers.text_columns import plain_columns, plain_texts
from keras_xlnet.types import Tensor

# Of the index of a class. Other labels are NaN.
_NO_CLASS = -1


@register
class MultiTaskPreprocessor(XLNetTextPreprocessor):
    """Converts texts, or pairs of texts, and the labels of several tasks to arrays of `MultiTask`.

    Arguments, call arguments and features are as in `XLNetTextClassifierPreprocessor`. Labels are a
    dict by task. `MultiTask` makes a preprocessor of this class from those of its tasks.

    Example:

    >>> from keras_xlnet.preprocessing import MultiTaskPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = MultiTaskPreprocessor(tokenizer, sequence_length=16)
    >>> preprocessor.encode(["a rose", "is"]).features["token_ids"].shape
    (2, 16)
    """

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Any = None) -> Any:
        """Returns the labels of arrays, checked.

        Args:
            y: Dict of labels by task, or `None`.
            features: As in `Preprocessor.check_labels`.
            classes: Dict of the preprocessor's class and the `Classes` of each task.

        Returns:
            Dict of arrays. Missing labels are -1 among indices of classes, otherwise NaN.
        """
        if y is None:
            return None
        _check_names(y, classes)
        return {
            name: _read(name, y[name], features, *of_task)
            for name, of_task in classes.items()
            if name in y
        }

    @classmethod
    def label_mapper(cls, spec: Any, classes: Any = None) -> Callable[[Any], Any] | None:
        _check_names(spec, classes)
        of_tasks = {
            name: (preprocessor_cls.label_mapper(spec[name], of_task), of_task)
            for name, (preprocessor_cls, of_task) in classes.items()
            if name in spec
        }

        def encode(labels):
            found = {}
            for name, (encode_one, of_task) in of_tasks.items():
                found[name] = labels[name] if encode_one is None else encode_one(labels[name])
                if of_task.activation != "softmax":  # -1 is a number like others.
                    found[name] = tf.cast(found[name], tf.float32)
            return found

        return encode

    def encode_weights(self, weights: Any, encoded: Encoded) -> Any:
        encode = super().encode_weights
        if not isinstance(weights, dict):
            return encode(weights, encoded)
        return {name: encode(of_task, encoded) for name, of_task in weights.items()}


def present_labels(labels: Any) -> Any:
    """Returns a column of labels without those that are missing, of pandas with its categories."""
    if hasattr(labels, "dropna"):
        return labels.dropna()
    labels = plain_columns(labels)
    if not hasattr(labels, "__len__") or isinstance(labels, (str, bytes, dict)):
        return labels
    return [label for label in labels if not _is_missing(label)]


def has_label(labels: Tensor) -> Tensor:
    """Returns which rows have a label, bool `(batch,)`, of labels as `check_labels` returns them.

    Args:
        labels: Tensor `(batch, ...)`.
    """
    is_index = "int" in ops.dtype(labels)
    found = labels > _NO_CLASS if is_index else ops.logical_not(ops.isnan(labels))
    return ops.all(ops.reshape(found, (ops.shape(labels)[0], -1)), axis=1)


def _check_names(y, classes):
    if not hasattr(y, "keys") or not {*y} <= classes.keys() or not {*y}:
        received = sorted(map(str, y)) if hasattr(y, "keys") else type(y).__name__
        raise ValueError(
            f"`y` must be a dict with the labels of some of {[*classes]}. Received: {received}"
        )


def _read(name, labels, features, preprocessor_cls, classes):
    """The labels of a task as an array with -1 or NaN for missing ones."""
    labels = plain_texts(labels)
    if ops.is_tensor(labels):
        labels = ops.convert_to_numpy(labels)
    if not hasattr(labels, "__len__") or isinstance(labels, (str, bytes, dict)):
        raise ValueError(f"`y[{name!r}]` must be a column of labels. Received: {labels!r}")
    takes_indices = classes.activation == "softmax" and not classes.takes_vectors
    missing = [
        _is_missing(label) or (takes_indices and np.array_equal(label, _NO_CLASS))
        for label in labels
    ]
    if all(missing):
        found = np.zeros((len(missing), *(() if takes_indices else (classes.num_classes,))))
    else:
        # A label of another row in their place keeps the numbers of rows in errors right.
        other = next(x for x, is_missing in zip(labels, missing, strict=True) if not is_missing)
        if any(missing):
            pairs = zip(labels, missing, strict=True)
            labels = [other if is_missing else label for label, is_missing in pairs]
        try:
            found = preprocessor_cls.check_labels(labels, features, classes)
        except ValueError as error:
            raise ValueError(f"Labels of the task {name!r}: {error}") from error
    is_index = classes.activation == "softmax" and found.ndim == 1
    found = found.astype("int32" if is_index else "float32")
    found[np.array(missing, bool)] = _NO_CLASS if is_index else np.nan
    return found


def _is_missing(label):
    """Whether a label is None, NaN or pandas' NA, or all numbers of a row are."""
    if isinstance(label, (list, tuple)):
        return bool(label) and all(map(_is_missing, label))
    try:
        return label is None or bool(label != label)
    except TypeError:  # Of NA.
        return True
    except ValueError:  # Of an array.
        return bool(np.all(label != label))

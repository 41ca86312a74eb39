"""Weights of rows, labels and classes in the loss."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_xlnet.arguments import check_count
from keras_xlnet.types import Tensor


def as_weight_array(weights: Any, rows: int | None = None) -> Any:
    """Returns sample weights as a float32 array, checked.

    Args:
        weights: List, array, tensor or column of a table. A dict or `None` is returned unchanged.
        rows: Optional int, the number of rows that the weights must have.

    Raises:
        ValueError: If a weight is not a finite number, or the number of rows is another one. The
            message names the row.
    """
    if weights is None or isinstance(weights, dict):
        return weights
    if ops.is_tensor(weights):
        weights = ops.convert_to_numpy(weights)
    if not hasattr(weights, "__len__") or isinstance(weights, str):
        raise ValueError(f"`sample_weight` must be a list or an array. Received: {weights!r}")
    try:
        array = np.asarray(weights, "float32")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`sample_weight` must be rows of numbers, all of one length ({error})"
        ) from None
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise ValueError(
            f"`sample_weight` must be finite numbers. Received in row {row}: {array[row]}"
        )
    if rows is not None and len(array) != rows:
        raise ValueError(
            f"`sample_weight` must have a weight for each of {rows} rows. Received: {len(array)}"
        )
    return array


def weights_of_labels(weights: Tensor, labels: Tensor) -> Tensor:
    """Returns a float32 weight for each label; the weight of a row applies to all of its labels.

    Args:
        weights: Tensor `(batch,)`, `(batch, 1)` or of the shape of `labels`.
        labels: Tensor `(batch,)` or `(batch, labels)`.
    """
    # For any rank: TensorFlow does not know it in a step that is traced for two ranks.
    shape = (-1,) if len(labels.shape) == 1 else (ops.shape(labels)[0], -1)
    weights = ops.reshape(ops.cast(weights, "float32"), shape)
    return weights * ops.ones_like(labels, dtype="float32")


def weights_of_classes(
    class_weight: Any, class_names: Sequence[str], num_classes: int
) -> tuple[float, ...]:
    """Returns the weights of all classes, 1 for a class without one.

    Args:
        class_weight: Dict of the weights of classes, by name or index.
        class_names: List of strings. Names take precedence over indices.
        num_classes: Int.

    Raises:
        ValueError: If a key is not a class, a class has two weights, or a weight is not a finite
            number of at least 0.
    """
    if not hasattr(class_weight, "items"):
        raise ValueError(
            "`class_weight` must be a dict of weights by name or index of the class. Received: "
            f"class_weight={class_weight!r}"
        )
    index = {name: i for i, name in enumerate(class_names)}
    found: dict[int, float] = {}
    for key, weight in class_weight.items():
        place = index.get(key, key)
        if place not in range(num_classes):  # Numbers equal to an index are also in it.
            raise ValueError(
                f"`class_weight` must have names in class_names={list(class_names)}, or indices "
                f"from 0 to {num_classes - 1}. Received: {key!r}"
            )
        if int(place) in found:
            raise ValueError(
                "`class_weight` must have one weight for each class. Received two for class "
                f"{int(place)}: class_weight={class_weight}"
            )
        if not isinstance(weight, (int, float, np.number)) or not 0 <= weight < np.inf:
            raise ValueError(
                "`class_weight` must have finite weights of at least 0. Received for "
                f"{key!r}: {weight!r}"
            )
        found[int(place)] = float(weight)
    return tuple(found.get(i, 1.0) for i in range(num_classes))


def weights_by_class(class_weights: Sequence[float], labels: Tensor, rank: int) -> Tensor:
    """Returns the weight of the class of each label; 1 for labels that are not a class.

    Args:
        class_weights: The weights of all classes.
        labels: Tensor of class indices, or of vectors with an entry for each class.
        rank: Int, the rank of class indices: 1 for a label for each row.

    Returns:
        Float32 tensor of rank `rank`.
    """
    if len(labels.shape) > rank:
        is_index = labels.shape[-1] == 1
        labels = ops.squeeze(labels, -1) if is_index else ops.argmax(labels, axis=-1)
    index = ops.cast(labels, "int32")
    is_class = ops.logical_and(index >= 0, index < len(class_weights))
    weights = ops.take(
        ops.convert_to_tensor(class_weights, "float32"), ops.where(is_class, index, 0)
    )
    return ops.where(is_class, weights, ops.ones_like(weights))


def token_weights(
    weights: Any, sentences: Sequence[Sequence[str]], word_index: np.ndarray, sentence: np.ndarray
) -> Any:
    """Returns the weights of windows `(windows,)`, or of tokens `(windows, length)`.

    Args:
        weights: A weight for each sentence; or a list for each sentence, with a weight for each of
            its words; or `None`.
        sentences: List of lists of words.
        word_index, sentence: As in `EncodedWords`.

    Raises:
        ValueError: If the number of weights is not the number of sentences, or of words in a
            sentence. The message names the row.
    """
    if weights is None:
        return None
    weights = list(ops.convert_to_numpy(weights) if ops.is_tensor(weights) else weights)
    if not weights or not hasattr(weights[0], "__len__"):
        return as_weight_array(weights, len(sentences))[sentence]
    given = f"`sample_weight` must have a row for each of {len(sentences)} sentences. Received: "
    check_count(weights, len(sentences), given)
    for row, (values, words) in enumerate(zip(weights, sentences, strict=True)):
        given = f"`sample_weight` must have a weight for each word. Received in row {row}: "
        check_count(values, len(words), given, f" for {len(words)} words")
    of_words = [as_weight_array(values) for values in weights]
    found = np.zeros(word_index.shape, "float32")
    for row, counts in enumerate(word_index >= 0):
        found[row, counts] = of_words[sentence[row]][word_index[row, counts]]
    return found

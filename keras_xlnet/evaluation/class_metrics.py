"""Metrics of classes and ratings over the whole dataset: Matthews correlation, F1 and kappa."""

from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_int, check_positive_int
from keras_xlnet.registration import register
from keras_xlnet.types import DType, Tensor


class _ConfusionMatrixMetric(keras.metrics.Metric):
    """Base class of metrics that are computed from a confusion matrix.

    `counts[i, j]` is the weight of the rows of class `i` for which `j` was predicted.
    """

    def __init__(self, num_classes: int, name: str, dtype: DType | None) -> None:
        super().__init__(name=name, dtype=dtype)
        check_positive_int("num_classes", num_classes)
        self.num_classes = num_classes
        self.counts = self.add_variable((num_classes, num_classes), "zeros", name="counts")

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        indices = self._indices(ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred))
        true, found = (ops.one_hot(ops.reshape(x, (-1,)), self.num_classes) for x in indices)
        if sample_weight is not None:
            weights = ops.reshape(ops.cast(sample_weight, true.dtype), (-1, 1))
            true = true * weights
        self.counts.assign_add(ops.matmul(ops.transpose(true), found))

    def _indices(self, y_true, y_pred):
        """The classes of the rows and of their predictions, int32."""
        return ops.cast(y_true, "int32"), ops.argmax(y_pred, axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_classes": self.num_classes}


@register
class MatthewsCorrelation(_ConfusionMatrixMetric):
    """Computes the correlation coefficient of Matthews, the metric of CoLA.

    It is 1 for perfect predictions, and 0 for predictions that do not depend on the classes. It is
    computed over all rows, not as a mean over batches. With several classes it is Gorodkin's R_K.
    Keras has no such metric.

    Args:
        num_classes: Int.
        name: String, the name of the metric.
        dtype: The dtype of the result.

    Call arguments:
        y_true: Class indices `(...)`.
        y_pred: Probabilities or logits `(..., num_classes)`.
        sample_weight: Optional weights `(...)`.

    Example:

    >>> metric = keras_xlnet.evaluation.MatthewsCorrelation()
    >>> probabilities = np.eye(2)[[0, 1, 1, 1]]
    >>> round(float(metric(np.array([0, 0, 1, 1]), probabilities)), 3)
    0.577

    To stop early by it: `keras.callbacks.EarlyStopping("val_matthews_correlation", mode="max")`.

    Source: Matthews 1975; Gorodkin 2004, "Comparing two K-category assignments by a K-category
    correlation coefficient".
    """

    def __init__(
        self,
        num_classes: int = 2,
        name: str = "matthews_correlation",
        dtype: DType | None = None,
    ) -> None:
        super().__init__(num_classes, name, dtype)

    def result(self) -> Tensor:
        counts = ops.convert_to_tensor(self.counts)
        total = ops.sum(counts)
        # Shares, because products of the counts of large data sets are too large for float32.
        shares = ops.divide_no_nan(counts, total)
        true, found = ops.sum(shares, axis=1), ops.sum(shares, axis=0)
        covariance = ops.trace(shares) - ops.sum(true * found)
        variances = (1.0 - ops.sum(true**2)) * (1.0 - ops.sum(found**2))
        # If all rows or all predictions have one class, the variance is 0 except for rounding.
        root = ops.sqrt(ops.maximum(variances, 0.0))
        return ops.where(root > 1e-6, covariance / ops.maximum(root, 1e-6), 0.0)


@register
class ClassF1(_ConfusionMatrixMetric):
    """Computes the F1 of one class, the metric of MRPC.

    `keras.metrics.F1Score` takes vectors of 0 and 1 as labels; this takes class indices.

    Args:
        class_index: Int, the class whose F1 is computed.
        num_classes: Int.
        name: String, the name of the metric.
        dtype: The dtype of the result.

    Call arguments:
        y_true: Class indices `(...)`.
        y_pred: Probabilities or logits `(..., num_classes)`.
        sample_weight: Optional weights `(...)`.

    Raises:
        ValueError: If `class_index` is not a class.

    Example:

    >>> metric = keras_xlnet.evaluation.ClassF1(class_index=1)
    >>> probabilities = np.eye(2)[[0, 1, 1, 1]]
    >>> round(float(metric(np.array([0, 0, 1, 1]), probabilities)), 3)
    0.8
    """

    def __init__(
        self,
        class_index: int = 1,
        num_classes: int = 2,
        name: str = "f1",
        dtype: DType | None = None,
    ) -> None:
        super().__init__(num_classes, name, dtype)
        if not isinstance(class_index, int) or not 0 <= class_index < num_classes:
            raise ValueError(
                f"`class_index` must be from 0 to {num_classes - 1} (num_classes={num_classes}). "
                f"Received: class_index={class_index!r}"
            )
        self.class_index = class_index

    def result(self) -> Tensor:
        counts = ops.convert_to_tensor(self.counts)
        correct = counts[self.class_index, self.class_index]
        true, found = ops.sum(counts[self.class_index]), ops.sum(counts[:, self.class_index])
        return ops.divide_no_nan(2.0 * correct, true + found)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "class_index": self.class_index}


@register
class QuadraticWeightedKappa(_ConfusionMatrixMetric):
    """Computes Cohen's kappa with quadratic weights, the metric of essay scores.

    It is 1 if all predicted ratings are right and 0 for chance. An error of `d` counts `d` squared.
    It is computed over all rows, and equals scikit-learn's `cohen_kappa_score` with
    `weights="quadratic"`. Rows whose own rating is out of range do not count.

    Args:
        min_rating, max_rating: Ints, the lowest and the highest rating.
        name: String, the name of the metric.
        dtype: The dtype of the result.

    Call arguments:
        y_true: Ratings, of the shape of `y_pred`; for a classifier class indices, 0 for
            `min_rating`.
        y_pred: Numbers, which are rounded and clipped to the range; or the probabilities or logits
            `(..., ratings)` of a classifier with a class for each rating.
        sample_weight: Optional weights `(...)`.

    Raises:
        ValueError: If a rating is not an int, or `max_rating` is not above `min_rating`.

    Example:

    >>> metric = keras_xlnet.evaluation.QuadraticWeightedKappa(1, 6)
    >>> metric.update_state(np.array([[1], [2], [4], [6]]), np.array([[1.2], [2.7], [4.1], [7.5]]))
    >>> round(float(metric.result()), 3)
    0.964

    To stop early by it: `EarlyStopping("val_quadratic_weighted_kappa", mode="max")`.

    Source: Cohen 1968, "Weighted kappa: nominal scale agreement provision for scaled disagreement
    or partial credit".
    """

    def __init__(
        self,
        min_rating: int,
        max_rating: int,
        name: str = "quadratic_weighted_kappa",
        dtype: DType | None = None,
    ) -> None:
        if not isinstance(min_rating, int) or not isinstance(max_rating, int):
            raise ValueError(
                "`min_rating` and `max_rating` must be integers. Received: "
                f"min_rating={min_rating!r}, max_rating={max_rating!r}"
            )
        check_int("max_rating", max_rating, min_rating + 1, ", above `min_rating`")
        super().__init__(max_rating - min_rating + 1, name, dtype)
        self.min_rating = min_rating
        self.max_rating = max_rating

    def _indices(self, y_true, y_pred):
        highest = self.num_classes - 1
        has_classes = len(y_pred.shape) > 1 and y_pred.shape[-1] == self.num_classes
        if has_classes and (len(y_true.shape) < len(y_pred.shape) or y_true.shape[-1] == 1):
            return super()._indices(y_true, y_pred)
        true, found = (
            ops.round(ops.cast(y, "float32")) - self.min_rating for y in (y_true, y_pred)
        )
        is_rating = ops.logical_and(true >= 0, true <= highest)
        # A row of -1 counts for no class.
        true, found = ops.where(is_rating, true, -1.0), ops.clip(found, 0, highest)
        return ops.cast(true, "int32"), ops.cast(found, "int32")

    def result(self) -> Tensor:
        counts = ops.convert_to_tensor(self.counts)
        shares = ops.divide_no_nan(counts, ops.sum(counts))
        ratings = ops.arange(self.num_classes, dtype=counts.dtype)
        distances = (ratings[:, None] - ratings) ** 2
        by_chance = ops.outer(ops.sum(shares, axis=1), ops.sum(shares, axis=0))
        wrong, expected = ops.sum(distances * shares), ops.sum(distances * by_chance)
        return ops.where(expected > 0.0, 1.0 - ops.divide_no_nan(wrong, expected), 0.0)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["num_classes"]
        return {**config, "min_rating": self.min_rating, "max_rating": self.max_rating}

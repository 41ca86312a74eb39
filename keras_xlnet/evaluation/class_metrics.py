"""Classification metrics over the whole dataset: Matthews correlation and F1."""

from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_positive_int
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
        y_pred = ops.convert_to_tensor(y_pred)
        true = ops.one_hot(ops.reshape(ops.cast(y_true, "int32"), (-1,)), self.num_classes)
        found = ops.one_hot(ops.reshape(ops.argmax(y_pred, axis=-1), (-1,)), self.num_classes)
        if sample_weight is not None:
            weights = ops.reshape(ops.cast(sample_weight, true.dtype), (-1, 1))
            true = true * weights
        self.counts.assign_add(ops.matmul(ops.transpose(true), found))

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

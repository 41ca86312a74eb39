import keras
from keras import ops

from keras_xlnet.registration import register
from keras_xlnet.types import DType, Tensor


@register
class PearsonCorrelation(keras.metrics.Metric):
    """Computes the linear correlation of numbers and their predictions, the metric of STS-B.

    It is computed over all rows. `keras.metrics.PearsonCorrelation` is the mean of the correlations
    of single rows of several outputs, or of batches.

    Args:
        name: String, the name of the metric.
        dtype: The dtype of the result.

    Call arguments:
        y_true, y_pred: Tensors of the same number of values.
        sample_weight: Optional weights of these values.

    Example:

    >>> metric = keras_xlnet.evaluation.PearsonCorrelation()
    >>> metric.update_state(np.array([[1.0], [2.0]]), np.array([[0.0], [2.0]]))
    >>> metric.update_state(np.array([[3.0]]), np.array([[1.0]]))
    >>> round(float(metric.result()), 3)
    0.5

    To stop early by it: `keras.callbacks.EarlyStopping("val_pearson_correlation", mode="max")`.

    Source: Chan et al. 1979, "Updating Formulae and a Pairwise Algorithm for Computing Sample
    Variances".
    """

    def __init__(self, name: str = "pearson_correlation", dtype: DType | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.weight = self.add_variable((), "zeros", name="weight")
        # The means of both numbers, and the sums of the products of their deviations.
        self.means = self.add_variable((2,), "zeros", name="means")
        self.products = self.add_variable((2, 2), "zeros", name="products")

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        pairs = [ops.reshape(ops.cast(y, "float32"), (-1,)) for y in (y_true, y_pred)]
        values = ops.stack(pairs, axis=1)
        weights = ops.ones_like(values[:, 0])
        if sample_weight is not None:
            weights = ops.reshape(ops.cast(sample_weight, "float32"), (-1,))
        weights = ops.expand_dims(weights, 1)
        added = ops.sum(weights)
        means = ops.divide_no_nan(ops.sum(weights * values, axis=0), added)
        deviations = values - means
        total = self.weight + added
        shift = means - self.means
        between = ops.divide_no_nan(self.weight * added, total) * ops.outer(shift, shift)
        within = ops.matmul(ops.transpose(deviations), weights * deviations)
        self.products.assign_add(within + between)
        self.means.assign_add(shift * ops.divide_no_nan(added, total))
        self.weight.assign(total)

    def result(self) -> Tensor:
        variances = ops.diagonal(self.products)
        return ops.divide_no_nan(self.products[0, 1], ops.sqrt(ops.prod(variances)))

"""The `loss` that `fit` and `evaluate` report: the loss of all rows as one batch.

Upstream: Keras reports the mean of the losses of batches, weighted by their numbers of rows. If a
loss is divided by another count, such as the number of labels, this mean depends on the batch size.
The losses of several outputs are averaged with the same weights. On several replicas, losses of
layers and regularizers are added once per replica.
Without it: `evaluate` of 32 rows of 1 to 12 labels reports 5.75, 5.88 and 5.96 with batches of 2, 8
and 32 rows; with it, 5.96 for each.
Reproduction: docs/upstream.md, "The reported loss depends on the batch size".
Delete this file when: Keras divides the sum of all losses by the sum of the batches' divisors.
"""

from typing import Any

import keras
from keras import ops

from keras_xlnet.replicas import num_replicas
from keras_xlnet.types import Tensor


class LossTracker(keras.metrics.Metric):
    """The metric `loss` of a compiled model, which replaces the metric of Keras.

    A loss that batches divide by a count, such as the number of labels, is the sum over all batches
    divided by the sum of the counts. Other terms, such as regularization, are means over rows.

    Args:
        compile_loss: The losses of all outputs, which Keras made in `compile`; or `None`.
    """

    def __init__(self, compile_loss: Any = None) -> None:
        super().__init__(name="loss")
        self._own = _RecordedMean(name="loss")
        self._rest = keras.metrics.Mean(name="rest")
        # The recorded losses of the batch, which `update_state` gets with the rest.
        self._of_batch = self.add_variable((), "zeros", name="of_batch")
        # The means of outputs and their weights. Metrics of several outputs belong to Keras.
        self.__dict__["_parts"] = [(self._own, 1.0)]
        if compile_loss is not None:
            self._record_losses_of(compile_loss)

    def weighted_mean(self, losses: Tensor, weights: Tensor | None = None) -> Tensor:
        """Returns the loss of a batch for losses that a model computes itself.

        Args:
            losses: Tensor of losses.
            weights: Optional tensor of their weights, of the same shape.

        Returns:
            Scalar, the sum of weighted losses divided by the sum of weights.
        """
        loss = _Losses(losses, reduction="mean_with_sample_weight")
        return _RecordedLoss(loss, None, self._own, self)(losses, losses, weights)

    def update_state(self, values: Tensor, sample_weight: Any = None) -> None:
        """Adds the loss of a batch. Keras calls this with the number of rows."""
        recorded = self._of_batch * num_replicas()  # Keras has multiplied `values` by it.
        self._rest.update_state(ops.cast(values, self.dtype) - recorded, sample_weight)
        self._of_batch.assign(0.0)

    def record(self, loss: Tensor) -> None:
        """Adds a recorded loss to the losses of the batch."""
        self._of_batch.assign_add(ops.cast(loss, self.dtype))

    def result(self) -> Tensor:
        total = self._rest.result()
        for mean, weight in self._parts:
            total = total + (1.0 if weight is None else weight) * mean.result()
        return total

    def _record_losses_of(self, compile_loss):
        """Makes losses record their values, once Keras has built them."""
        build = compile_loss.build

        def build_with_records(y_true, y_pred):
            build(y_true, y_pred)
            losses = compile_loss._flat_losses
            means = [self._own]
            if len(losses) > 1:
                means = [_RecordedMean(name=mean.name) for mean in compile_loss.metrics]
                compile_loss.metrics[:] = means
            self._parts[:] = [
                (mean, loss.loss_weights) for mean, loss in zip(means, losses, strict=True)
            ]
            compile_loss._flat_losses = [
                each._replace(loss=_RecordedLoss(each.loss, weight, mean, self))
                for each, (mean, weight) in zip(losses, self._parts, strict=True)
            ]

        compile_loss.build = build_with_records


class _RecordedMean(keras.metrics.Mean):
    """The sum of losses divided by the sum of counts, or the sum if losses are not divided."""

    is_sum = False

    def record(self, total, count):
        self.total.assign_add(ops.cast(total, self.dtype))
        self.count.assign_add(ops.cast(count, self.dtype))

    def update_state(self, *args, **kwargs):
        """Does nothing, because the loss was recorded. Keras calls this for several outputs."""

    def result(self):
        return self.total + 0.0 if self.is_sum else super().result()


class _RecordedLoss(keras.losses.Loss):
    """A loss that records the sum of its values and their divisor.

    Args:
        loss: A `keras.losses.Loss`.
        weight: The weight of the loss in the loss of the model.
        mean: The `_RecordedMean` of this loss.
        tracker: The `LossTracker`.
    """

    def __init__(self, loss, weight, mean, tracker):
        super().__init__(loss.name, loss.reduction, loss.dtype)
        self._loss, self._mean, self._tracker = loss, mean, tracker
        self._weight = 1.0 if weight is None else weight
        # A layer, because Keras keeps the mask of `ignore_class` with the tensor.
        self._ones = keras.layers.Activation(ops.ones_like, dtype="float32", autocast=False)
        mean.is_sum = loss.reduction == "sum"

    def call(self, y_true, y_pred):
        self._values = self._loss.call(y_true, y_pred)
        return self._values

    def __call__(self, y_true, y_pred, sample_weight=None):
        self._values = None
        is_of_keras = type(self._loss).__call__ is keras.losses.Loss.__call__
        compute = super().__call__ if is_of_keras else self._loss
        loss = compute(y_true, y_pred, _copied(sample_weight))
        values, self._values = self._values, None
        mean = ops.mean(loss)
        if values is None or not len(values.shape):  # A function that returns a mean over rows.
            count = ops.cast(ops.shape(keras.tree.flatten(y_pred)[0])[0], mean.dtype)
            total = mean * count
        else:
            total = self._sum(values, y_pred, sample_weight)
            is_weighted = self.reduction == "mean_with_sample_weight"
            count = self._sum(self._ones(values), y_pred, sample_weight if is_weighted else None)
        self._mean.record(total, count)
        self._tracker.record(mean * self._weight)
        return loss

    def _sum(self, values, y_pred, sample_weight):
        loss = _Losses(values, reduction="sum", dtype=self.dtype)
        return loss(y_pred, y_pred, _copied(sample_weight))


def _copied(sample_weight):
    # On PyTorch, Keras multiplies weights by the mask in place.
    return keras.tree.map_structure(
        lambda weight: None if weight is None else ops.copy(weight), sample_weight
    )


def with_mask(x: Tensor, mask: Tensor) -> Tensor:
    """Returns predictions with a mask: losses and metrics of Keras skip positions that are False.

    Args:
        x: Tensor `(batch, ...)`.
        mask: Bool tensor `(batch, ...)`, of the shape of losses.
    """
    layer = keras.layers.Lambda(
        lambda x: x, mask=lambda *_: mask, dtype="float32", autocast=False, name="mask"
    )
    return layer(x)


class _Losses(keras.losses.Loss):
    """Reduces given values as `keras.losses.Loss` does."""

    def __init__(self, values, **kwargs):
        super().__init__(name="losses", **kwargs)
        self._values = values

    def call(self, y_true, y_pred):
        return self._values

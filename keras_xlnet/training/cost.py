"""Estimates how long training takes before it starts."""

import dataclasses
import math
from typing import Any

from keras_xlnet.training.dtypes import products_per_second

# The fraction of the speed of large matrix products that a training step reaches: rows are padded
# to the length of their batch, and softmax, normalization and the optimizer are not products.
_EFFICIENCY = 0.25


@dataclasses.dataclass(frozen=True)
class TrainingCost:
    """The cost of a call of `fit`.

    Args:
        epochs: Int.
        tokens: Int, tokens of an epoch, without padding.
        operations: Float, floating-point operations of all epochs.
        seconds: Float, a rough estimate of the time on this machine.
    """

    epochs: int
    tokens: int
    operations: float
    seconds: float

    def __str__(self) -> str:
        minutes = max(1, round(self.seconds / 60))
        return (
            f"{self.epochs} epochs of {self.tokens:,} tokens, {self.operations / 1e12:.1f} TFLOP: "
            f"about {minutes} min on this machine"
        )


def training_cost(model: Any, encoded: Any, epochs: int) -> TrainingCost:
    """Estimates the operations and the time of `model.fit(encoded, ..., epochs=epochs)`.

    It counts the matrix products of the blocks: for each token and weight 2 operations forward, 2
    backward for the inputs, and 2 for the gradient of a trained weight. Frozen weights below all
    trained weights need only the forward pass.

    Args:
        model: A task model.
        encoded: The result of `model.preprocessor.encode(texts)`.
        epochs: Int.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(backbone, num_classes=2)
    >>> x = {"padding_mask": np.ones((4, 3), "int32")}
    >>> cost = keras_xlnet.training.training_cost(classifier, x, epochs=2)
    >>> cost.tokens, cost.operations
    (12, 343296.0)
    """
    features = getattr(encoded, "features", encoded)
    tokens = int(features["padding_mask"].sum())
    operations = float(epochs * tokens * _operations_per_token(model.backbone.blocks))
    rate = _EFFICIENCY * products_per_second(model.backbone.compute_dtype)
    return TrainingCost(epochs, tokens, operations, operations / rate)


def _operations_per_token(blocks):
    total, below_is_trained = 0, False
    for block in blocks:
        matrices = [weight for weight in block.weights if len(weight.shape) > 1]
        size = sum(math.prod(weight.shape) for weight in matrices)
        trained = sum(math.prod(weight.shape) for weight in matrices if weight.trainable)
        below_is_trained = below_is_trained or trained > 0
        total += 2 * size + 2 * trained + (2 * size if below_is_trained else 0)
    return total

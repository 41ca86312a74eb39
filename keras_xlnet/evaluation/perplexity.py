from typing import Any

import keras
from keras import ops

from keras_xlnet.preprocessing.weights import weights_of_labels
from keras_xlnet.registration import register
from keras_xlnet.types import DType, Tensor


@register
class Perplexity(keras.metrics.Mean):
    """Computes the perplexity of a language model, the exponential of the mean cross-entropy.

    Use it as a weighted metric, `compile(weighted_metrics={"logits": [Perplexity()]})`, so that
    tokens of weight 0 are ignored. The output of a `TransformerXLLanguageModel` is `"log_probs"`.
    All tokens count alike, whatever the lengths of the batches.

    Args:
        from_logits: Bool, whether predictions are logits or log-probabilities. `False` for
            probabilities.
        name: String, the name of the metric.
        dtype: The dtype of the result.

    Call arguments:
        y_true: Int tensor `(...)`, the token ids.
        y_pred: Float tensor `(..., vocabulary_size)`, logits, log-probabilities or probabilities.
        sample_weight: Optional float tensor `(...)`, or `(batch,)` for the tokens of each row.

    Example:

    >>> perplexity = keras_xlnet.evaluation.Perplexity()
    >>> round(float(perplexity(np.array([[3, 1]]), np.zeros((1, 2, 50)))), 4)
    50.0

    Source: Dai et al. 2019 (Transformer-XL), section 4.
    """

    def __init__(
        self, from_logits: bool = True, name: str = "perplexity", dtype: DType | None = None
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.from_logits = from_logits

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        losses = keras.losses.sparse_categorical_crossentropy(
            y_true, ops.cast(y_pred, "float32"), from_logits=self.from_logits
        )
        # As one axis: Keras takes the mean of each row first, which weighs the tokens of short
        # batches more.
        if len(losses.shape) > 1:
            losses = ops.reshape(losses, (ops.shape(losses)[0], -1))
        if sample_weight is not None:
            sample_weight = ops.reshape(weights_of_labels(sample_weight, losses), (-1,))
        return super().update_state(ops.reshape(losses, (-1,)), sample_weight=sample_weight)

    def result(self) -> Tensor:
        return ops.exp(super().result())

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "from_logits": self.from_logits}

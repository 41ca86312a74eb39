from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.registration import register
from keras_xlnet.types import DType, Tensor


@register
class BitsPerCharacter(keras.metrics.Metric):
    """Computes the cross-entropy of a language model in bits per character of its targets.

    Losses per token of models with different vocabularies cannot be compared: a large vocabulary
    has fewer, longer tokens. Losses per character can. Special tokens have no characters, and a
    space counts as one.

    Use it as a weighted metric, `compile(weighted_metrics={"logits": [metric]})`, so that tokens of
    weight 0 are ignored. The output of a `TransformerXLLanguageModel` is `"log_probs"`.

    Args:
        characters: Sequence of ints, the number of characters of each token. For a tokenizer,
            `BitsPerCharacter.of(tokenizer)` counts them.
        from_logits: Bool, whether predictions are logits or log-probabilities. `False` for
            probabilities.
        name: String, the name of the metric.
        dtype: The dtype of the result.

    Call arguments:
        y_true: Int tensor `(...)`, the token ids.
        y_pred: Float tensor `(..., vocabulary_size)`, logits, log-probabilities or probabilities.
        sample_weight: Optional float tensor `(...)`.

    Raises:
        ValueError: If `characters` is not a sequence of numbers of at least 0.

    Example:

    >>> metric = keras_xlnet.evaluation.BitsPerCharacter(characters=[0, 1, 3, 4])
    >>> float(metric(np.array([[1, 2]]), np.zeros((1, 2, 4))))  # 2 bits a token, 4 characters
    1.0

    Source: Dai et al. 2019 (Transformer-XL), section 4.1, where tokens are characters.
    """

    def __init__(
        self,
        characters: Sequence[int],
        from_logits: bool = True,
        name: str = "bits_per_character",
        dtype: DType | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self.characters = [int(count) for count in characters]
        if not self.characters or min(self.characters) < 0:
            raise ValueError(
                "`characters` must hold the number of characters of each token, 0 or more. "
                f"Received: characters={self.characters[:10]}"
            )
        self.from_logits = from_logits
        self.bits = self.add_variable((), "zeros", name="bits")
        self.count = self.add_variable((), "zeros", name="count")

    @classmethod
    def of(cls, tokenizer: keras.layers.Layer, **kwargs: Any) -> "BitsPerCharacter":
        """Returns the metric for the pieces of an `XLNetTokenizer`.

        Args:
            tokenizer: An `XLNetTokenizer`.
            **kwargs: Other arguments of the class.
        """
        pieces = [tokenizer.id_to_token(i) for i in range(tokenizer.vocabulary_size())]
        special = tokenizer.special_token_ids
        lengths = [0 if i in special else len(piece) for i, piece in enumerate(pieces)]
        return cls(lengths, **kwargs)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        losses = keras.losses.sparse_categorical_crossentropy(
            y_true, ops.cast(y_pred, "float32"), from_logits=self.from_logits
        )
        counts = ops.take(ops.convert_to_tensor(self.characters, "float32"), y_true)
        if sample_weight is not None:
            weights = ops.cast(sample_weight, "float32")
            losses, counts = losses * weights, counts * weights
        self.bits.assign_add(ops.sum(losses) / np.log(2.0))
        self.count.assign_add(ops.sum(counts))

    def result(self) -> Tensor:
        return ops.divide_no_nan(self.bits, self.count)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "characters": self.characters,
            "from_logits": self.from_logits,
        }

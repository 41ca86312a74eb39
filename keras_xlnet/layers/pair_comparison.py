from typing import Any

from keras import ops

from keras_xlnet.arguments import check_positive_int, check_rate
from keras_xlnet.compat.lora import Dense
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.ops.similarity import pair_similarity
from keras_xlnet.registration import register
from keras_xlnet.types import Shape, Tensor

_FIRST, _SECOND = 0, 1  # Segment ids of the two texts.
_NUM_SPECIAL = 9  # Token ids below this are special tokens, which are not compared.
# Most cosines of related texts are near the first number. The two scale features alike.
_USUAL_SIMILARITY, _SCALE = 0.6, 8.0


@register
class PairComparison(RestoresSublayers, ConfiguredLayer):
    """Compares two texts that a model read together, `[A, <sep>, B, <sep>, <cls>]`.

    Each token is matched with the most similar token of the other text, on every level that is
    given, such as the embeddings and the outputs of all blocks. The weight of a token is
    learned from its embedding, the first level. Similarities, lengths, and the difference and
    the product of the means of the last level go through a dense layer with GELU. Even a small
    model learns from few examples how similar two texts are, because embeddings show much of it.

    Args:
        units: Int, the width of the dense layer.
        dropout: Float, dropout rate of its outputs.
        seed: Optional int that fixes the dropout masks.

    Call arguments:
        levels: Tensor `(batch, length, num_levels, hidden_dim)`: each token on each level, from
            its embedding to the last output.
        token_ids: Int tensor `(batch, length)`. Ids from 0 to 8, the special tokens, are left out.
        segment_ids: Int tensor `(batch, length)`, 0 for the first text and 1 for the second.
        padding_mask: Optional tensor `(batch, length)`, `True` / 1 for real tokens.
        training: Whether dropout is applied.

    Returns:
        Tensor `(batch, units)`, float32.

    Example:

    >>> levels = np.random.normal(size=(3, 7, 2, 16)).astype("float32")
    >>> token_ids = np.tile([11, 12, 4, 13, 11, 4, 3], (3, 1))
    >>> segment_ids = np.tile([0, 0, 0, 1, 1, 1, 2], (3, 1))
    >>> comparison = keras_xlnet.layers.PairComparison(units=8)
    >>> comparison(levels, token_ids=token_ids, segment_ids=segment_ids).shape
    TensorShape([3, 8])

    Source: Zhang et al. 2020 (BERTScore), section 3; Conneau et al. 2017 (InferSent), section 3.1,
    for difference and product.
    """

    def __init__(
        self, units: int, dropout: float = 0.0, seed: int | None = None, **kwargs: Any
    ) -> None:
        # Half precision is too coarse for the cosines of similar tokens.
        super().__init__(**{**kwargs, "dtype": "float32"})
        self.units = check_positive_int("units", units)
        self.dropout = check_rate("dropout", dropout)
        self.seed = seed
        self.dense = Dense(units, activation="gelu", dtype="float32", name="dense")
        self.dropout_layer = HashDropout(dropout, seed=seed, dtype="float32", name="dropout")

    def build(self, levels_shape: Shape) -> None:
        batch_size, _, num_levels, hidden_dim = levels_shape
        self.token_weight = self.add_weight((hidden_dim,), "zeros", name="token_weight")
        self.scales = self.add_weight((num_levels, 1, hidden_dim), "ones", name="scales")
        self.dense.build((batch_size, 4 * num_levels + 3 + 2 * hidden_dim))
        self.restore_sublayers()

    def call(
        self,
        levels: Tensor,
        token_ids: Tensor = None,
        segment_ids: Tensor = None,
        padding_mask: Tensor | None = None,
        training: bool | None = None,
    ) -> Tensor:
        levels = ops.swapaxes(levels, 1, 2)
        is_compared = token_ids >= _NUM_SPECIAL
        if padding_mask is not None:
            is_compared = ops.logical_and(is_compared, ops.cast(padding_mask, "bool"))
        # Axis 1 has the levels, which share masks and weights.
        is_compared, segment_ids = (ops.expand_dims(x, 1) for x in (is_compared, segment_ids))
        masks = [
            ops.logical_and(is_compared, ops.equal(segment_ids, segment))
            for segment in (_FIRST, _SECOND)
        ]
        token_weights = self._token_weights(levels[:, :1])
        similarities, *means = pair_similarity(levels * self.scales, token_weights, *masks)
        first, second = (mean[:, -1] for mean in means)
        batch_size = ops.shape(levels)[0]
        features = [
            _SCALE * ops.reshape(similarities - _USUAL_SIMILARITY, (batch_size, -1)),
            _SCALE * ops.abs(first - second),
            _SCALE * first * second,
            self._compare_lengths(*(mask[:, 0] for mask in masks)),
        ]
        outputs = self.dense(ops.concatenate(features, axis=1))
        return self.dropout_layer(outputs, training=training)

    def _token_weights(self, embeddings):
        """`(batch, 1, length)`, the weights of the tokens before the softmax."""
        deviation = ops.std(embeddings, axis=-1, keepdims=True) + 1e-6
        # Scaled so that the few steps of fine-tuning move the weights far enough.
        return 3.0 * ops.sum(embeddings / deviation * self.token_weight, axis=-1)

    def _compare_lengths(self, first_mask, second_mask):
        first, second = (
            ops.log(1.0 + ops.sum(ops.cast(mask, "float32"), axis=1))
            for mask in (first_mask, second_mask)
        )
        difference = 4.0 * (first - second)
        return ops.stack([difference, ops.abs(difference), first + second - 5.0], axis=1)

    def compute_output_shape(self, levels_shape: Shape) -> Shape:
        return (levels_shape[0], self.units)

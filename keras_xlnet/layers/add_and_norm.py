from typing import Any

import keras

from keras_xlnet.compat.fused import fused_method
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.ops.random import hash_dropout
from keras_xlnet.registration import register
from keras_xlnet.types import Shape, Tensor


@register
class AddAndNorm(RestoresSublayers, keras.layers.Layer):
    """A residual connection: dropout of a change, addition, layer normalization.

    Computes `norm(inputs + dropout(change))`.

    Args:
        dropout: Float, dropout rate of `change`.
        layer_norm_epsilon: Float. The original uses 1e-12.
        seed: Optional int that fixes the dropout masks.

    Call arguments:
        inputs: Tensor `(..., hidden_dim)`.
        change: Tensor of the shape of `inputs`, which a sublayer computed from them.
        training: Whether dropout is applied.

    Returns:
        Tensor of the shape of `inputs`.

    Example:

    >>> x = np.random.normal(size=(2, 5, 8)).astype("float32")
    >>> keras_xlnet.layers.AddAndNorm()(x, keras.layers.Dense(8)(x)).shape
    TensorShape([2, 5, 8])

    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """

    def __init__(
        self,
        dropout: float = 0.0,
        layer_norm_epsilon: float = 1e-12,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.dropout = HashDropout(dropout, seed=seed, dtype=self.dtype_policy, name="dropout")
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )

    def build(self, inputs_shape: Shape, change_shape: Shape | None = None) -> None:
        self.norm.build(inputs_shape)
        self.restore_sublayers()

    def call(self, inputs: Tensor, change: Tensor, training: bool | None = None) -> Tensor:
        # One compiled function computes dropout, addition and normalization.
        seed = self.dropout.next_seed(training)
        return self._drop_add_norm(inputs, change, seed, fuse=bool(training))

    @fused_method
    def _drop_add_norm(self, inputs, change, seed):
        if seed is not None:
            change = hash_dropout(change, self.dropout.rate, seed)
        return self.norm(inputs + change)

    def compute_output_shape(self, inputs_shape: Shape, change_shape: Shape | None = None) -> Shape:
        return tuple(inputs_shape)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "dropout": self.dropout.rate,
            "layer_norm_epsilon": self.norm.epsilon,
            "seed": self.dropout.seed,
        }

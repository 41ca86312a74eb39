from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_positive_int, check_rate
from keras_xlnet.compat.fused import fused
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.activations import get_activation
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.initializers import get_kernel_initializer
from keras_xlnet.ops.random import hash_dropout
from keras_xlnet.registration import register
from keras_xlnet.types import Activation, Initializer, Shape, Tensor


@register
class FeedForward(RestoresSublayers, ConfiguredLayer):
    """The position-wise feed-forward network: dense, activation, dropout, dense.

    `AddAndNorm` computes the dropout of its output, the residual connection and the normalization.

    Args:
        intermediate_dim: Int, width of the inner layer.
        dropout: Float, dropout rate of the inner layer.
        activation: `"gelu_tanh"` or any Keras activation.
        kernel_initializer: Initializer of the two kernels. `None` for normal(0, 0.02).
        seed: Optional int that fixes the dropout masks.

    Call arguments:
        inputs: Tensor `(batch, length, hidden_dim)`.
        training: Whether dropout is applied.

    Returns:
        Tensor of the shape of `inputs`.

    Example:

    >>> keras_xlnet.layers.FeedForward(intermediate_dim=32)(np.ones((2, 5, 8), "float32")).shape
    TensorShape([2, 5, 8])

    Source: Vaswani et al. 2017, section 3.3.
    """

    def __init__(
        self,
        intermediate_dim: int,
        dropout: float = 0.0,
        activation: Activation = "gelu_tanh",
        kernel_initializer: Initializer | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.intermediate_dim = check_positive_int("intermediate_dim", intermediate_dim)
        self.dropout = check_rate("dropout", dropout)
        self.activation = get_activation(activation)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.seed = seed
        self.intermediate_dense = self.new_dense("intermediate", intermediate_dim)
        self.intermediate_dropout = HashDropout(
            dropout, seed=seed, dtype=self.dtype_policy, name="intermediate_dropout"
        )

    def build(self, input_shape: Shape) -> None:
        self.output_dense = self.new_dense("output", input_shape[-1])
        self.intermediate_dense.build(input_shape)
        self.output_dense.build((*input_shape[:-1], self.intermediate_dim))
        self.restore_sublayers()

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        shape = ops.shape(inputs)
        # As a matrix, so that TensorFlow fuses product, bias and activation.
        x = self.intermediate_dense(ops.reshape(inputs, (-1, inputs.shape[-1])))
        seed = self.intermediate_dropout.next_seed(training)
        x = _activate_and_drop(
            x,
            seed,
            activation=self.activation,
            rate=self.dropout,
            fuse=bool(training) and not isinstance(self.activation, keras.layers.Layer),
        )
        return ops.reshape(self.output_dense(x), shape)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return tuple(input_shape)


@fused
def _activate_and_drop(x, seed, *, activation, rate):
    x = activation(x)
    return x if seed is None else hash_dropout(x, rate, seed)

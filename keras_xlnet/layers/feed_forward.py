import keras
from keras import ops

from keras_xlnet.layers.arguments import check_positive_int, check_rate
from keras_xlnet.layers.fused import fused
from keras_xlnet.layers.gelu_tanh import get_activation, serialize_activation
from keras_xlnet.layers.hash_dropout import HashDropout, drop
from keras_xlnet.layers.initialization import (
    clone_initializer,
    get_kernel_initializer,
    spawn_seeds,
)
from keras_xlnet.layers.quantization import RestoresQuantization


@keras.saving.register_keras_serializable(package="keras_xlnet")
class FeedForward(RestoresQuantization, keras.layers.Layer):
    """The position-wise feed-forward network: dense, activation, dropout, dense, dropout.

    There is no residual connection and no normalization here: `TwoStreamBlock` adds them.

    Args:
        intermediate_dim: Int, width of the inner layer.
        dropout: Float, dropout rate after each of the two dense layers.
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
        intermediate_dim,
        dropout=0.0,
        activation="gelu_tanh",
        kernel_initializer=None,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.intermediate_dim = check_positive_int("intermediate_dim", intermediate_dim)
        self.dropout = check_rate("dropout", dropout)
        self.activation = get_activation(activation)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.seed = seed
        self.intermediate_dense = keras.layers.Dense(
            intermediate_dim,
            kernel_initializer=clone_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="intermediate",
        )
        self.intermediate_dropout, self.output_dropout = (
            HashDropout(dropout, seed=s, dtype=self.dtype_policy, name=name)
            for s, name in zip(
                spawn_seeds(seed, 2), ("intermediate_dropout", "output_dropout"), strict=True
            )
        )

    def build(self, input_shape):
        self.output_dense = keras.layers.Dense(
            input_shape[-1],
            kernel_initializer=clone_initializer(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="output",
        )
        self.intermediate_dense.build(input_shape)
        self.output_dense.build((*input_shape[:-1], self.intermediate_dim))
        self.restore_quantization()

    def call(self, inputs, training=None):
        x = self.before_dropout(inputs, training=training)
        return self.output_dropout(x, training=training)

    def before_dropout(self, inputs, training=None):
        """As the call, without the last dropout, for whoever goes on from there."""
        shape = ops.shape(inputs)
        # As a matrix: then TensorFlow makes one operation of a product, its bias and GELU.
        x = self.intermediate_dense(ops.reshape(inputs, (-1, inputs.shape[-1])))
        seed = self.intermediate_dropout.next_seed(training)
        # It does so only if the names of GELU come after those of the product in the alphabet.
        with keras.name_scope(f"{self.intermediate_dense.name}_output"):
            x = activate_and_drop(
                x,
                seed,
                activation=self.activation,
                dropout=self.dropout,
                fuse=bool(training) and not isinstance(self.activation, keras.layers.Layer),
            )
        return ops.reshape(self.output_dense(x), shape)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "activation": serialize_activation(self.activation),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }


@fused
def activate_and_drop(x, seed, *, activation, dropout):
    """`drop(activation(x))`, with no dropout if `seed` is `None`."""
    x = activation(x)
    return x if seed is None else drop(x, seed, dropout)

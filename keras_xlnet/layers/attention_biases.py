import keras
from keras import ops

from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.layers.arguments import check_positive_int
from keras_xlnet.layers.initializers import clone_initializer, get_kernel_initializer


@register
class AttentionBiases(keras.layers.Layer):
    """The three query biases of relative attention: content, position and segment.

    `RelativeMultiHeadAttention` has biases of its own. To share biases between several attention
    layers, as Transformer-XL and the original XLNet with `untie_r=False` do, create this layer
    once and pass its output as `attention_biases`. The biases are passed as a tensor, so they are
    still shared after a functional model is saved and loaded.

    Args:
        num_heads: Int, number of attention heads.
        head_dim: Int, size of each head.
        kernel_initializer: Initializer of the biases. `None` for normal(0, 0.02).

    Call arguments:
        reference: Any tensor of the functional graph. Its values are not used.

    Returns:
        Tensor `(3, num_heads, head_dim)`: content, position and segment bias.

    Example:

    >>> biases = keras_xlnet.layers.AttentionBiases(num_heads=2, head_dim=4)
    >>> biases(np.zeros((1, 10, 8), "float32")).shape
    TensorShape([3, 2, 4])

    Source: Dai et al. 2019, section 3.3 (`u` and `v`); Yang et al. 2019, section 2.5 (`b`).
    """

    def __init__(self, num_heads, head_dim, kernel_initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = check_positive_int("num_heads", num_heads)
        self.head_dim = check_positive_int("head_dim", head_dim)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)

    def build(self, reference_shape):
        self.content_bias, self.position_bias, self.segment_bias = (
            self.add_weight(
                shape=(self.num_heads, self.head_dim),
                initializer=clone_initializer(self.kernel_initializer),
                name=name,
            )
            for name in ("content_bias", "position_bias", "segment_bias")
        )

    def call(self, reference):
        biases = (self.content_bias, self.position_bias, self.segment_bias)
        return ops.concatenate([ops.expand_dims(bias, 0) for bias in biases], axis=0)

    def compute_output_shape(self, reference_shape):
        return (3, self.num_heads, self.head_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }

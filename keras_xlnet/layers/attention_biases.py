from typing import Any

from keras import ops

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.layers.initializers import get_kernel_initializer
from keras_xlnet.registration import register
from keras_xlnet.types import Initializer, Shape, Tensor


@register
class AttentionBiases(RestoresSublayers, ConfiguredLayer):
    """The three query biases of relative attention: content, position and segment.

    `RelativeMultiHeadAttention` has biases of its own. To share biases between several attention
    layers, as Transformer-XL and the original XLNet with `untie_r=False` do, create this layer
    once and pass its output as `attention_biases`. The biases are passed as a tensor, so they are
    still shared after a functional model is saved and loaded.

    Args:
        num_heads: Int, number of attention heads.
        head_dim: Int, size of each head.
        kernel_initializer: Initializer of the biases. `None` for normal(0, 0.02).
        has_segments: Bool, whether there is a segment bias. Transformer-XL has none.

    Call arguments:
        reference: Any tensor of the functional graph. Its values are not used.

    Returns:
        Tensor `(3, num_heads, head_dim)`: content, position and segment bias. Without a segment
        bias `(2, num_heads, head_dim)`.

    Example:

    >>> biases = keras_xlnet.layers.AttentionBiases(num_heads=2, head_dim=4)
    >>> biases(np.zeros((1, 10, 8), "float32")).shape
    TensorShape([3, 2, 4])

    Source: Dai et al. 2019, section 3.3 (`u` and `v`); Yang et al. 2019, section 2.5 (`b`).
    """

    def __init__(
        self,
        num_heads: int,
        head_dim: int,
        kernel_initializer: Initializer | None = None,
        has_segments: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_heads = check_positive_int("num_heads", num_heads)
        self.head_dim = check_positive_int("head_dim", head_dim)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.has_segments = has_segments

    def build(self, reference_shape: Shape) -> None:
        shape = self.num_heads, self.head_dim
        self.content_bias = self.add_kernel("content_bias", shape)
        self.position_bias = self.add_kernel("position_bias", shape)
        self.segment_bias = self.add_kernel("segment_bias", shape) if self.has_segments else None
        self.restore_sublayers()

    def call(self, reference: Tensor) -> Tensor:
        biases = [self.content_bias, self.position_bias]
        biases += [self.segment_bias] if self.has_segments else []
        return ops.concatenate([ops.expand_dims(bias, 0) for bias in biases], axis=0)

    def compute_output_shape(self, reference_shape: Shape) -> Shape:
        return (3 if self.has_segments else 2, self.num_heads, self.head_dim)

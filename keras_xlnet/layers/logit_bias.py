import keras

from keras_xlnet.compat.unknown_arguments import register


@register
class LogitBias(keras.layers.Layer):
    """A trainable bias for the logits of a softmax that is tied to an embedding.

    Call arguments:
        logits: Tensor `(..., vocabulary_size)`.

    Returns:
        Tensor of the same shape.

    Example:

    >>> keras_xlnet.layers.LogitBias()(np.zeros((2, 3, 100))).shape
    TensorShape([2, 3, 100])

    Source: zihangdai/xlnet, `lm_loss`.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def build(self, logits_shape):
        self.bias = self.add_weight(shape=(logits_shape[-1],), initializer="zeros", name="bias")

    def call(self, logits):
        return logits + self.bias

    def compute_output_shape(self, logits_shape):
        return logits_shape

    def get_config(self):
        return super().get_config()

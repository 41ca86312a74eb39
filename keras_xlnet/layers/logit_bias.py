import keras


@keras.saving.register_keras_serializable(package="keras_xlnet")
class LogitBias(keras.layers.Layer):
    """Adds a trainable number to each logit of a tied softmax.

    Call arguments:
        logits: Tensor `(..., vocabulary_size)`.

    Returns:
        Tensor of the same shape.

    Example:

    >>> keras_xlnet.layers.LogitBias()(np.zeros((2, 3, 100))).shape
    TensorShape([2, 3, 100])

    Source: zihangdai/xlnet, `lm_loss`.
    """

    def build(self, logits_shape):
        self.bias = self.add_weight(shape=(logits_shape[-1],), initializer="zeros", name="bias")

    def call(self, logits):
        return logits + self.bias

    def compute_output_shape(self, logits_shape):
        return logits_shape

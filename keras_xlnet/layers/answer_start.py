import keras
from keras import ops

from keras_xlnet.layers.head_dense import float32_logit
from keras_xlnet.layers.initialization import get_kernel_initializer
from keras_xlnet.layers.masked_log_softmax import masked_log_softmax
from keras_xlnet.layers.quantization import RestoresQuantization


@keras.saving.register_keras_serializable(package="keras_xlnet")
class AnswerStart(RestoresQuantization, keras.layers.Layer):
    """How probable it is that the answer to a question starts at a token.

    Args:
        kernel_initializer: Initializer of the kernel, `None` for normal(0, 0.02).

    Call arguments:
        sequence: Tensor `(batch, length, hidden_dim)`.
        paragraph_mask: Optional tensor `(batch, length)`, `True` / 1 where an answer may start.

    Returns:
        Log-probabilities `(batch, length)`, float32, about -1e30 where no answer may start.

    Example:

    >>> sequence = np.random.default_rng(0).normal(size=(1, 4, 8)).astype("float32")
    >>> log_probs = keras_xlnet.layers.AnswerStart()(sequence, np.array([[1, 1, 0, 1]]))
    >>> print(keras.ops.convert_to_numpy(log_probs > -10))
    [[ True  True False  True]]

    Source: the original's `get_qa_outputs`, `start_logits`.
    """

    def __init__(self, kernel_initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.dense = float32_logit(self, "dense")

    def build(self, sequence_shape):
        self.dense.build(sequence_shape)
        self.restore_quantization()

    def call(self, sequence, paragraph_mask=None):
        return masked_log_softmax(ops.squeeze(self.dense(sequence), -1), paragraph_mask)

    def compute_output_spec(self, sequence, paragraph_mask=None):
        return keras.KerasTensor(sequence.shape[:2], dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }

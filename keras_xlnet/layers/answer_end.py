import keras
from keras import ops

from keras_xlnet.layers.head_dense import float32_logit, tanh_dense
from keras_xlnet.layers.initialization import get_kernel_initializer
from keras_xlnet.layers.masked_log_softmax import masked_log_softmax
from keras_xlnet.layers.quantization import RestoresQuantization


@keras.saving.register_keras_serializable(package="keras_xlnet")
class AnswerEnd(RestoresQuantization, keras.layers.Layer):
    """How probable it is that an answer ends at a token, for each of some starts.

    Args:
        layer_norm_epsilon: Float.
        kernel_initializer: Initializer of the kernels, `None` for normal(0, 0.02).

    Call arguments:
        sequence: Tensor `(batch, length, hidden_dim)`.
        start_positions: Int tensor `(batch, num_starts)`: where the answer may start.
        paragraph_mask: Optional tensor `(batch, length)`, `True` / 1 where an answer may end.

    Returns:
        Log-probabilities `(batch, num_starts, length)`, float32, about -1e30 where no answer may
        end. An end before its start is not ruled out, as in the original.

    Example:

    >>> sequence = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")
    >>> keras_xlnet.layers.AnswerEnd()(sequence, np.array([[0, 1, 2], [3, 0, 1]])).shape
    TensorShape([2, 3, 4])

    Source: the original's `get_qa_outputs`, `end_logits`.
    """

    def __init__(self, layer_norm_epsilon=1e-12, kernel_initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )
        self.dense_1 = float32_logit(self, "dense_1")

    def build(self, sequence_shape):
        _, length, hidden_dim = sequence_shape
        self.dense_0 = tanh_dense(self, hidden_dim, "dense_0")
        shape = (None, length, hidden_dim)
        self.dense_0.build((*shape[:-1], 2 * hidden_dim))
        self.norm.build(shape)
        self.dense_1.build(shape)
        self.restore_quantization()

    def call(self, sequence, start_positions, paragraph_mask=None):
        batch_size, length, hidden_dim = ops.shape(sequence)
        num_starts = ops.shape(start_positions)[1]
        # A product with one 1 a row is a gather that every accelerator does well.
        starts = ops.matmul(ops.one_hot(start_positions, length, dtype=sequence.dtype), sequence)
        shape = (batch_size, num_starts, length, hidden_dim)
        pairs = [
            ops.broadcast_to(ops.expand_dims(sequence, 1), shape),
            ops.broadcast_to(ops.expand_dims(starts, 2), shape),
        ]
        # In three axes: with four, of which the second is 1, Keras 3.12 calls TensorFlow's `matmul`
        # such that 2.21 on oneDNN writes beyond its buffer.
        x = ops.reshape(ops.concatenate(pairs, axis=-1), (-1, length, 2 * hidden_dim))
        logits = ops.reshape(self.dense_1(self.norm(self.dense_0(x))), shape[:-1])
        if paragraph_mask is not None:
            paragraph_mask = ops.expand_dims(paragraph_mask, 1)
        return masked_log_softmax(logits, paragraph_mask)

    def compute_output_spec(self, sequence, start_positions, paragraph_mask=None):
        shape = (sequence.shape[0], start_positions.shape[1], sequence.shape[1])
        return keras.KerasTensor(shape, dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }

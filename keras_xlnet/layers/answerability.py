import keras
from keras import ops

from keras_xlnet.layers.arguments import check_rate
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.head_dense import float32_logit, tanh_dense
from keras_xlnet.layers.initialization import get_kernel_initializer
from keras_xlnet.layers.quantization import RestoresQuantization


@keras.saving.register_keras_serializable(package="keras_xlnet")
class Answerability(RestoresQuantization, keras.layers.Layer):
    """Whether a text does NOT hold the answer to a question.

    It looks at `<cls>`, and at the tokens in so far as the answer may start at them.

    Args:
        dropout: Float, dropout rate before the last layer.
        kernel_initializer: Initializer of the kernels, `None` for normal(0, 0.02).
        seed: Optional int that fixes the dropout masks.

    Call arguments:
        sequence: Tensor `(batch, length, hidden_dim)`.
        start_probabilities: Tensor `(batch, length)`: that the answer starts there.
        cls_index: Int tensor `(batch,)`, position of `<cls>`.
        training: Whether dropout is applied.

    Returns:
        Logits `(batch,)`, float32: above 0 where there is rather no answer.

    Example:

    >>> sequence = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")
    >>> keras_xlnet.layers.Answerability()(
    ...     sequence, np.full((2, 4), 0.25, "float32"), np.array([3, 3])
    ... ).shape
    TensorShape([2])

    Source: the original's `get_qa_outputs`, `answer_class`.
    """

    def __init__(self, dropout=0.0, kernel_initializer=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.seed = seed
        self.dropout_layer = HashDropout(
            dropout, seed=seed, dtype=self.dtype_policy, name="dropout"
        )
        self.dense_1 = float32_logit(self, "dense_1", use_bias=False)

    def build(self, sequence_shape):
        batch_size, _, hidden_dim = sequence_shape
        self.dense_0 = tanh_dense(self, hidden_dim, "dense_0")
        self.dense_0.build((batch_size, 2 * hidden_dim))
        self.dense_1.build((batch_size, hidden_dim))
        self.restore_quantization()

    def call(self, sequence, start_probabilities, cls_index, training=None):
        is_cls = ops.one_hot(cls_index, ops.shape(sequence)[1], dtype=sequence.dtype)
        # The start comes first, then <cls>.
        weights = ops.stack([ops.cast(start_probabilities, sequence.dtype), is_cls], axis=1)
        features = ops.matmul(weights, sequence)
        x = self.dense_0(ops.reshape(features, (-1, 2 * sequence.shape[-1])))
        return ops.squeeze(self.dense_1(self.dropout_layer(x, training=training)), -1)

    def compute_output_spec(self, sequence, *args, **kwargs):
        return keras.KerasTensor(sequence.shape[:1], dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "seed": self.seed,
        }

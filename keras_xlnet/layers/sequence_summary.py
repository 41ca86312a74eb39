import keras

from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.head_dense import tanh_dense
from keras_xlnet.layers.initialization import (
    clone_initializer,
    get_kernel_initializer,
    spawn_seeds,
)
from keras_xlnet.layers.quantization import RestoresQuantization
from keras_xlnet.layers.sequence_pooling import SequencePooling


@keras.saving.register_keras_serializable(package="keras_xlnet")
class SequenceSummary(RestoresQuantization, keras.layers.Layer):
    """One vector for a sequence: pooling, a dense layer with tanh of the same width, dropout.

    Args:
        mode: Mode of `SequencePooling`. The default `"last"` is `<cls>`, whichever side the
            padding is on.
        num_heads: Int, number of heads. Only for `"attention"`.
        head_dim: Int, size of each head. Only for `"attention"`.
        dropout: Float, dropout rate of the summary, and in the pooling of `"attention"`.
        layer_norm_epsilon: Float. Only for `"attention"`.
        kernel_initializer: Initializer of the weights, `None` for normal(0, 0.02).
        cls_token_id: Int. Only for `"cls"`.
        seed: Optional int that fixes the dropout masks.

    Call arguments:
        sequence: Tensor `(batch, length, hidden_dim)`.
        padding_mask: Optional tensor `(batch, length)`, `True` / 1 for real tokens. Without it
            all are real.
        token_ids: Int tensor `(batch, length)`. Only for `"cls"`, which needs it.
        training: Whether dropout is applied.

    Returns:
        Tensor `(batch, hidden_dim)`.

    Example:

    >>> sequence = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    >>> summary = keras_xlnet.layers.SequenceSummary()
    >>> summary(sequence, padding_mask=np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])).shape
    TensorShape([2, 8])

    Source: the original's `summarize_sequence`.
    """

    def __init__(
        self,
        mode="last",
        num_heads=None,
        head_dim=None,
        dropout=0.0,
        layer_norm_epsilon=1e-12,
        kernel_initializer=None,
        cls_token_id=3,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.seed = seed
        dropout_seed, pooling_seed = spawn_seeds(seed, 2)
        self.pooling = SequencePooling(
            mode,
            num_heads=num_heads,
            head_dim=head_dim,
            dropout=dropout,
            layer_norm_epsilon=layer_norm_epsilon,
            kernel_initializer=clone_initializer(self.kernel_initializer),
            cls_token_id=cls_token_id,
            seed=pooling_seed,
            dtype=self.dtype_policy,
            name="pooling",
        )
        self.dropout_layer = HashDropout(
            dropout, seed=dropout_seed, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, sequence_shape):
        self.dense = tanh_dense(self, sequence_shape[-1], "dense")
        self.pooling.build(sequence_shape)
        self.dense.build((sequence_shape[0], sequence_shape[-1]))
        self.restore_quantization()

    def call(self, sequence, padding_mask=None, token_ids=None, training=None):
        pooled = self.pooling(
            sequence, padding_mask=padding_mask, token_ids=token_ids, training=training
        )
        return self.dropout_layer(self.dense(pooled), training=training)

    def compute_output_shape(self, sequence_shape):
        return (sequence_shape[0], sequence_shape[-1])

    def get_config(self):
        # All arguments are those of the pooling, but the base's and the seed.
        return {**self.pooling.get_config(), **super().get_config(), "seed": self.seed}

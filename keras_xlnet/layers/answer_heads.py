"""The heads of question answering: where an answer starts, where it ends, whether there is one."""

from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_rate
from keras_xlnet.compat.sublayers import RestoresSublayers
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.layers.hash_dropout import HashDropout
from keras_xlnet.layers.initializers import get_kernel_initializer
from keras_xlnet.registration import register
from keras_xlnet.types import Initializer, Shape, Tensor

# As in the original. If nothing is allowed in a row, its probabilities are uniform, not NaN.
_FORBIDDEN = -1e30


@register
class AnswerStart(RestoresSublayers, ConfiguredLayer):
    """A head for the log-probability that the answer to a question starts at a token.

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

    def __init__(self, kernel_initializer: Initializer | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.dense = _float32_logit(self, "dense")

    def build(self, sequence_shape: Shape) -> None:
        self.dense.build(sequence_shape)
        self.restore_sublayers()

    def call(self, sequence: Tensor, paragraph_mask: Tensor | None = None) -> Tensor:
        return _masked_log_softmax(ops.squeeze(self.dense(sequence), -1), paragraph_mask)

    def compute_output_spec(
        self, sequence: Tensor, paragraph_mask: Tensor | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor(sequence.shape[:2], dtype="float32")


@register
class AnswerEnd(RestoresSublayers, ConfiguredLayer):
    """A head for the log-probability that an answer ends at a token, given its start.

    Args:
        layer_norm_epsilon: Float.
        kernel_initializer: Initializer of the kernels, `None` for normal(0, 0.02).

    Call arguments:
        sequence: Tensor `(batch, length, hidden_dim)`.
        start_positions: Int tensor `(batch, num_starts)`, the starts.
        paragraph_mask: Optional tensor `(batch, length)`, `True` / 1 where an answer may end.

    Returns:
        Log-probabilities `(batch, num_starts, length)`, float32, about -1e30 where no answer may
        end. As in the original, an end may be before its start.

    Example:

    >>> sequence = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")
    >>> keras_xlnet.layers.AnswerEnd()(sequence, np.array([[0, 1, 2], [3, 0, 1]])).shape
    TensorShape([2, 3, 4])

    Source: the original's `get_qa_outputs`, `end_logits`.
    """

    def __init__(
        self,
        layer_norm_epsilon: float = 1e-12,
        kernel_initializer: Initializer | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="norm"
        )
        self.dense_1 = _float32_logit(self, "dense_1")

    def build(self, sequence_shape: Shape) -> None:
        _, length, hidden_dim = sequence_shape
        self.dense_0 = self.new_dense("dense_0", hidden_dim, activation="tanh")
        shape = (None, length, hidden_dim)
        self.dense_0.build((*shape[:-1], 2 * hidden_dim))
        self.norm.build(shape)
        self.dense_1.build(shape)
        self.restore_sublayers()

    def call(
        self, sequence: Tensor, start_positions: Tensor, paragraph_mask: Tensor | None = None
    ) -> Tensor:
        batch_size, length, hidden_dim = ops.shape(sequence)
        num_starts = ops.shape(start_positions)[1]
        # A product with one-hot vectors: a gather is slow on some accelerators.
        starts = ops.matmul(ops.one_hot(start_positions, length, dtype=sequence.dtype), sequence)
        shape = (batch_size, num_starts, length, hidden_dim)
        pairs = [
            ops.broadcast_to(ops.expand_dims(sequence, 1), shape),
            ops.broadcast_to(ops.expand_dims(starts, 2), shape),
        ]
        x = ops.reshape(ops.concatenate(pairs, axis=-1), (-1, length, 2 * hidden_dim))
        # TensorFlow 2.21: see docs/upstream.md, "`matmul` gives wrong products".
        logits = ops.reshape(self.dense_1(self.norm(self.dense_0(x))), shape[:-1])
        if paragraph_mask is not None:
            paragraph_mask = ops.expand_dims(paragraph_mask, 1)
        return _masked_log_softmax(logits, paragraph_mask)

    def compute_output_spec(
        self, sequence: Tensor, start_positions: Tensor, paragraph_mask: Tensor | None = None
    ) -> keras.KerasTensor:
        shape = (sequence.shape[0], start_positions.shape[1], sequence.shape[1])
        return keras.KerasTensor(shape, dtype="float32")


@register
class Answerability(RestoresSublayers, ConfiguredLayer):
    """A head for the logit that a text does NOT contain the answer to a question.

    The features are the `<cls>` token, and the mean of the tokens weighted by the probability that
    the answer starts there.

    Args:
        dropout: Float, dropout rate before the last layer.
        kernel_initializer: Initializer of the kernels, `None` for normal(0, 0.02).
        seed: Optional int that fixes the dropout masks.

    Call arguments:
        sequence: Tensor `(batch, length, hidden_dim)`.
        start_probabilities: Tensor `(batch, length)`, the probability that the answer starts there.
        cls_index: Int tensor `(batch,)`, position of `<cls>`.
        training: Whether dropout is applied.

    Returns:
        Logits `(batch,)`, float32, above 0 if it is more probable that there is no answer.

    Example:

    >>> sequence = np.random.default_rng(0).normal(size=(2, 4, 8)).astype("float32")
    >>> keras_xlnet.layers.Answerability()(
    ...     sequence, np.full((2, 4), 0.25, "float32"), np.array([3, 3])
    ... ).shape
    TensorShape([2])

    Source: the original's `get_qa_outputs`, `answer_class`.
    """

    def __init__(
        self,
        dropout: float = 0.0,
        kernel_initializer: Initializer | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.kernel_initializer = get_kernel_initializer(kernel_initializer)
        self.seed = seed
        self.dropout_layer = HashDropout(
            dropout, seed=seed, dtype=self.dtype_policy, name="dropout"
        )
        self.dense_1 = _float32_logit(self, "dense_1", use_bias=False)

    def build(self, sequence_shape: Shape) -> None:
        batch_size, _, hidden_dim = sequence_shape
        self.dense_0 = self.new_dense("dense_0", hidden_dim, activation="tanh")
        self.dense_0.build((batch_size, 2 * hidden_dim))
        self.dense_1.build((batch_size, hidden_dim))
        self.restore_sublayers()

    def call(
        self,
        sequence: Tensor,
        start_probabilities: Tensor,
        cls_index: Tensor,
        training: bool | None = None,
    ) -> Tensor:
        is_cls = ops.one_hot(cls_index, ops.shape(sequence)[1], dtype=sequence.dtype)
        # First the start, then <cls>, as in the original.
        weights = ops.stack([ops.cast(start_probabilities, sequence.dtype), is_cls], axis=1)
        features = ops.matmul(weights, sequence)
        x = self.dense_0(ops.reshape(features, (-1, 2 * sequence.shape[-1])))
        return ops.squeeze(self.dense_1(self.dropout_layer(x, training=training)), -1)

    def compute_output_spec(self, sequence: Tensor, *args: Any, **kwargs: Any) -> keras.KerasTensor:
        return keras.KerasTensor(sequence.shape[:1], dtype="float32")


def _float32_logit(head, name, use_bias=True):
    """A dense layer with one output. Half precision is too coarse to compare logits."""
    return head.new_dense(name, 1, use_bias=use_bias, dtype="float32")


def _masked_log_softmax(logits, mask=None):
    """Computes log-softmax over the last axis in float32, about -1e30 where `mask` is `False`.

    Args:
        logits: Tensor `(..., length)`.
        mask: Optional tensor that broadcasts to `logits`, `True` / 1 for allowed places.
    """
    # float16 cannot represent -1e30, and is too coarse for probabilities near 0 and 1.
    logits = ops.cast(logits, "float32")
    if mask is not None:
        logits = ops.where(ops.cast(mask, "bool"), logits, _FORBIDDEN)
    return ops.log_softmax(logits, axis=-1)

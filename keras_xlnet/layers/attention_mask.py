import keras
from keras import ops

from keras_xlnet.layers.arguments import check_choice


@keras.saving.register_keras_serializable(package="keras_xlnet")
class AttentionMask(keras.layers.Layer):
    """Which context rows each content row may attend to, for both streams.

    Args:
        attention_type: `"bi"`: everything that the other masks allow. `"uni"`: also nothing after
            the row itself.
        same_length: With `"uni"`, row `i` also loses the `i` oldest context rows, so that every
            row attends to as many.

    Call arguments:
        content: Tensor `(batch, content_length, ...)`. Only its first two axes are looked at.
        padding_mask: Optional tensor `(batch, content_length)`, `True` / 1 for real tokens.
        permutation_mask: Optional tensor `(batch, content_length, content_length)`, `[b, i, j]`
            `True` / 1 where token `i` may see token `j`.
        memory: Optional tensor `(..., memory_length, hidden_dim)`. Only its length is looked at.
        memory_mask: Optional tensor `(batch, memory_length)`, `True` / 1 for rows of memory that
            may be attended to. Without it all may, as in the original.

    Returns:
        Two bool tensors `(batch, content_length, memory_length + content_length)`, `True` = may
        attend: for the content stream, where each token sees itself, a padding token too; and for
        the query stream, which follows the masks as given.

    Example:

    >>> causal = keras_xlnet.layers.AttentionMask("uni")
    >>> content_mask, _ = causal(np.zeros((1, 3)), padding_mask=np.array([[0, 1, 1]]))
    >>> print(keras.ops.convert_to_numpy(content_mask)[0].astype(int))
    [[1 0 0]
     [0 1 0]
     [0 1 1]]

    Source: Yang et al. 2019 (XLNet), section 2.3; Dai et al. 2019, appendix (same length).
    """

    def __init__(self, attention_type="bi", same_length=False, **kwargs):
        super().__init__(**kwargs)
        self.attention_type = check_choice("attention_type", attention_type, ("bi", "uni"))
        if same_length and attention_type != "uni":
            raise ValueError(
                "`same_length` only means something for `attention_type='uni'`. "
                f"Received: same_length={same_length!r}, attention_type={attention_type!r}"
            )
        self.same_length = same_length

    def call(
        self, content, padding_mask=None, permutation_mask=None, memory=None, memory_mask=None
    ):
        batch_size, content_length = ops.shape(content)[:2]
        memory_length = 0 if memory is None else ops.shape(memory)[-2]
        i = ops.expand_dims(ops.arange(content_length, dtype="int32"), 1)
        # Counted from the first content row, so rows of memory have negative numbers.
        j = ops.expand_dims(ops.arange(-memory_length, content_length, dtype="int32"), 0)
        allowed = self._allowed_by_order(i, j, memory_length)
        allowed = ops.broadcast_to(
            allowed, (batch_size, content_length, memory_length + content_length)
        )
        for mask in (
            _over_context(padding_mask, memory_mask, content, memory_length),
            _beside_memory(permutation_mask, batch_size, content_length, memory_length),
        ):
            if mask is not None:
                allowed = ops.logical_and(allowed, mask)
        return ops.logical_or(allowed, i == j), allowed

    def _allowed_by_order(self, i, j, memory_length):
        if self.attention_type == "bi":
            return ops.ones_like(i + j, dtype="bool")
        allowed = j <= i
        if self.same_length:
            allowed = ops.logical_and(allowed, j + memory_length >= i)
        return allowed

    def compute_output_spec(self, content, memory=None, **kwargs):
        context_length = content.shape[1]
        if memory is not None:
            memory_length = memory.shape[-2]
            unknown = context_length is None or memory_length is None
            context_length = None if unknown else memory_length + context_length
        shape = (*content.shape[:2], context_length)
        # Two objects: a functional graph tells its tensors apart by identity.
        return keras.KerasTensor(shape, dtype="bool"), keras.KerasTensor(shape, dtype="bool")

    def get_config(self):
        return {
            **super().get_config(),
            "attention_type": self.attention_type,
            "same_length": self.same_length,
        }


def _over_context(padding_mask, memory_mask, content, memory_length):
    """`(batch, 1, memory_length + content_length)`, or `None` if nothing is masked."""
    if padding_mask is None and memory_mask is None:
        return None
    batch_size, content_length = ops.shape(content)[:2]
    parts = [
        ops.ones((batch_size, length), dtype="bool") if mask is None else ops.cast(mask, "bool")
        for mask, length in ((memory_mask, memory_length), (padding_mask, content_length))
    ]
    return ops.expand_dims(ops.concatenate(parts, axis=1), 1)


def _beside_memory(permutation_mask, batch_size, content_length, memory_length):
    """`(batch, content_length, memory_length + content_length)`; memory is always seen."""
    if permutation_mask is None:
        return None
    memory = ops.ones((batch_size, content_length, memory_length), dtype="bool")
    return ops.concatenate([memory, ops.cast(permutation_mask, "bool")], axis=2)

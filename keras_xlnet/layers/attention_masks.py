from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import check_choice, check_positive_int
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class AttentionMask(ConfiguredLayer):
    """The attention masks of both streams: which context rows a content row may attend to.

    Args:
        attention_type: `"bi"` for all rows that the other masks allow, `"uni"` for the allowed rows
            that are not after the row itself.
        same_length: If `True`, with `"uni"`, row `i` does not attend to the `i` oldest context
            rows, so that all rows attend to the same number of rows. An int is the largest number
            of rows that a row attends to, itself included.

    Call arguments:
        content: Tensor `(batch, content_length, ...)`. Only its first two axes are used.
        padding_mask: Optional tensor `(batch, content_length)`, `True` / 1 for real tokens.
        permutation_mask: Optional tensor `(batch, content_length, content_length)`, `[b, i, j]`
            `True` / 1 where token `i` may see token `j`.
        memory: Optional tensor `(..., memory_length, hidden_dim)`. Only its length is used.
        memory_mask: Optional tensor `(batch, memory_length)`, `True` / 1 for rows of memory that
            may be attended to. All by default, as in the original.
        text_ids: Optional int tensor `(batch, content_length)`, for rows of several texts without
            memory: tokens see only tokens of their own text.

    Returns:
        Two bool tensors `(batch, content_length, memory_length + content_length)`, `True` = may
        attend. The first is for the content stream, in which every token, padding too, attends
        to itself. The second is for the query stream, and follows the masks as given.

    Example:

    >>> causal = keras_xlnet.layers.AttentionMask("uni")
    >>> content_mask, _ = causal(np.zeros((1, 3)), padding_mask=np.array([[0, 1, 1]]))
    >>> print(keras.ops.convert_to_numpy(content_mask)[0].astype(int))
    [[1 0 0]
     [0 1 0]
     [0 1 1]]

    Source: Yang et al. 2019 (XLNet), section 2.3; Dai et al. 2019, appendix (same length).
    """

    def __init__(
        self, attention_type: str = "bi", same_length: bool | int = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.attention_type = check_choice("attention_type", attention_type, ("bi", "uni"))
        if same_length and attention_type != "uni":
            raise ValueError(
                "`same_length` needs `attention_type='uni'`. "
                f"Received: same_length={same_length!r}, attention_type={attention_type!r}"
            )
        if not isinstance(same_length, bool):
            check_positive_int("same_length", same_length)
        self.same_length = same_length

    def compute_mask(self, content: Tensor, mask: Tensor | None = None) -> None:
        return None  # The blocks receive the mask of the content directly.

    def call(
        self,
        content: Tensor,
        padding_mask: Tensor | None = None,
        permutation_mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        text_ids: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        batch_size, content_length = ops.shape(content)[:2]
        memory_length = 0 if memory is None else ops.shape(memory)[-2]
        i = ops.expand_dims(ops.arange(content_length, dtype="int32"), 1)
        # Counted from the first content row: rows of memory have negative numbers.
        j = ops.expand_dims(ops.arange(-memory_length, content_length, dtype="int32"), 0)
        allowed = self._allowed_by_order(i, j, memory_length)
        allowed = ops.broadcast_to(
            allowed, (batch_size, content_length, memory_length + content_length)
        )
        context_mask = mask_of_context(content, memory, padding_mask, memory_mask)
        allowed = without_padding(allowed, context_mask)
        if permutation_mask is not None:
            visible = _prepend_memory_columns(
                permutation_mask, batch_size, content_length, memory_length
            )
            allowed = ops.logical_and(allowed, visible)
        if text_ids is not None:
            is_same = ops.equal(ops.expand_dims(text_ids, 2), ops.expand_dims(text_ids, 1))
            allowed = ops.logical_and(allowed, is_same)
        return ops.logical_or(allowed, i == j), allowed

    def _allowed_by_order(self, i, j, memory_length):
        if self.attention_type == "bi":
            return ops.ones_like(i + j, dtype="bool")
        allowed = j <= i
        if self.same_length:
            longest = memory_length + 1 if self.same_length is True else self.same_length
            allowed = ops.logical_and(allowed, i - j < longest)
        return allowed

    def compute_output_spec(
        self, content: Tensor, memory: Tensor | None = None, **kwargs: Any
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        context_length = content.shape[1]
        if memory is not None:
            memory_length = memory.shape[-2]
            unknown = context_length is None or memory_length is None
            context_length = None if unknown else memory_length + context_length
        shape = (*content.shape[:2], context_length)
        # Two objects: a functional graph distinguishes its tensors by identity.
        return keras.KerasTensor(shape, dtype="bool"), keras.KerasTensor(shape, dtype="bool")


@register
class SegmentMatrix(ConfiguredLayer):
    """A matrix of the pairs of content and context rows that are in different segments.

    Call arguments:
        segment_ids: Int tensor `(batch, content_length)`. Any ids: they are only
            compared with each other.
        memory: Optional tensor `(..., memory_length, hidden_dim)`. Only its length is used.
        memory_segment_ids: Optional int tensor `(batch, memory_length)`. By default all of
            memory is segment 0, as in the original.

    Returns:
        Bool tensor `(batch, content_length, memory_length + content_length)`, `True` where the
        two rows are in DIFFERENT segments.

    Example:

    >>> matrix = keras_xlnet.layers.SegmentMatrix()(np.array([[0, 0, 1]]))
    >>> print(keras.ops.convert_to_numpy(matrix)[0].astype(int))
    [[0 0 1]
     [0 0 1]
     [1 1 0]]

    Source: Yang et al. 2019 (XLNet), section 2.5.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)

    def call(
        self,
        segment_ids: Tensor,
        memory: Tensor | None = None,
        memory_segment_ids: Tensor | None = None,
    ) -> Tensor:
        context_ids = segment_ids
        if memory_segment_ids is None and memory is not None:
            shape = (ops.shape(segment_ids)[0], ops.shape(memory)[-2])
            memory_segment_ids = ops.zeros(shape, dtype=segment_ids.dtype)
        if memory_segment_ids is not None:
            memory_segment_ids = ops.cast(memory_segment_ids, segment_ids.dtype)
            context_ids = ops.concatenate([memory_segment_ids, segment_ids], axis=1)
        return ops.not_equal(ops.expand_dims(segment_ids, 2), ops.expand_dims(context_ids, 1))

    def compute_output_spec(
        self,
        segment_ids: Tensor,
        memory: Tensor | None = None,
        memory_segment_ids: Tensor | None = None,
    ) -> keras.KerasTensor:
        batch_size, content_length = segment_ids.shape
        memory_length = 0
        if memory_segment_ids is not None:
            memory_length = memory_segment_ids.shape[1]
        elif memory is not None:
            memory_length = memory.shape[-2]
        unknown = content_length is None or memory_length is None
        context_length = None if unknown else memory_length + content_length
        return keras.KerasTensor((batch_size, content_length, context_length), dtype="bool")


def _prepend_memory_columns(permutation_mask, batch_size, content_length, memory_length):
    """`(batch, content_length, memory_length + content_length)`, `True` for memory."""
    memory = ops.ones((batch_size, content_length, memory_length), dtype="bool")
    return ops.concatenate([memory, ops.cast(permutation_mask, "bool")], axis=2)


def mask_of_context(
    content: Tensor,
    memory: Tensor | None,
    padding_mask: Tensor | None,
    memory_mask: Tensor | None = None,
) -> Tensor | None:
    """Returns the mask of the real rows of memory followed by content.

    Args:
        content, memory, padding_mask, memory_mask: As in the call of `AttentionMask`. The padding
            mask may be the one that Keras attached to the content.

    Returns:
        Bool tensor `(batch, memory_length + content_length)`, or `None` without masks.
    """
    if padding_mask is None and memory_mask is None:
        return None
    batch_size, content_length = ops.shape(content)[:2]
    memory_length = 0 if memory is None else ops.shape(memory)[-2]
    parts = [
        ops.ones((batch_size, length), dtype="bool") if mask is None else ops.cast(mask, "bool")
        for mask, length in ((memory_mask, memory_length), (padding_mask, content_length))
    ]
    return ops.concatenate(parts, axis=1)


def without_padding(attention_mask: Tensor | None, context_mask: Tensor | None) -> Tensor | None:
    """Returns an attention mask with which nothing attends to padding.

    Args:
        attention_mask: Optional `(batch or 1, query_length or 1, context_length)`.
        context_mask: Optional `(batch, context_length)`, `True` for real rows.

    Returns:
        `(batch, query_length or 1, context_length)`; `attention_mask` without a `context_mask`.
    """
    if context_mask is None:
        return attention_mask
    is_real = ops.expand_dims(ops.cast(context_mask, "bool"), 1)
    if attention_mask is None:
        return is_real
    return ops.logical_and(ops.cast(attention_mask, "bool"), is_real)

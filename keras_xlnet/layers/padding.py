"""Masks that Keras attaches to tensors, such as those of `Embedding(mask_zero=True)`."""

from keras import ops

from keras_xlnet.types import Tensor


def mask_of_context(content_mask: Tensor | None, memory: Tensor | None) -> Tensor | None:
    """Returns the mask of memory followed by content. All of memory is real.

    Args:
        content_mask: Optional `(batch, content_length)`, `True` for real rows.
        memory: Optional `(batch, memory_length, hidden_dim)`.

    Returns:
        `(batch, context_length)`, or `None` without a `content_mask`.
    """
    if content_mask is None or memory is None:
        return content_mask
    of_memory = ops.ones_like(memory[:, :, 0], dtype="bool")
    return ops.concatenate([of_memory, ops.cast(content_mask, "bool")], axis=1)


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

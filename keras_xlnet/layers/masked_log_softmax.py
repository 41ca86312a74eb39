"""Log-probabilities of positions, some of which are not allowed."""

from keras import ops

# As the original's: a row in which nothing is allowed is uniform then, and has no NaN.
_FORBIDDEN = -1e30


def masked_log_softmax(logits, mask=None):
    """Log-softmax over the last axis in float32, with about -1e30 where `mask` is `False`.

    Args:
        logits: Tensor `(..., length)`.
        mask: Optional tensor that broadcasts to `logits`, `True` / 1 for what is allowed.
    """
    # Half precision has no -1e30, and is too coarse for probabilities near 0 and 1.
    logits = ops.cast(logits, "float32")
    if mask is not None:
        logits = ops.where(ops.cast(mask, "bool"), logits, _FORBIDDEN)
    return ops.log_softmax(logits, axis=-1)

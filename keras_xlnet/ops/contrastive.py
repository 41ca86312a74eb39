"""A contrastive loss: the other texts of the batch are negatives.

A row of a batch has an anchor a, a text p that belongs to it, and perhaps a text n that does not.
The candidates c are all p and all n of the batch:

    loss_i = -log softmax_j(scale * cos(a_i, c_j)) at c_j = p_i

Candidates that are the same text as p_i or a_i, or the p of an equal anchor, are left out.

Source: Henderson et al. 2017, "Efficient Natural Language Response Suggestion for Smart Reply",
section 4.4; in sentence-transformers it is `MultipleNegativesRankingLoss`.
"""

from keras import ops

from keras_xlnet.types import Tensor

_NOT_A_NEGATIVE = -1e9


def in_batch_negatives_loss(
    embeddings: Tensor, scale: float, texts: Tensor | None = None
) -> Tensor:
    """Returns the cross-entropy of finding the text that belongs to each anchor.

    Args:
        embeddings: Float tensor `(batch, texts, dim)` of vectors of length 1: anchor, positive and
            any number of negatives.
        scale: Float, the factor that cosines are multiplied by.
        texts: Optional int tensor `(batch, texts, length)`, the texts. Without it, all texts of
            other rows are negatives.

    Returns:
        Float tensor `(batch,)`.
    """
    batch_size = ops.shape(embeddings)[0]
    logits = scale * ops.matmul(embeddings[:, 0], ops.transpose(_candidates(embeddings)))
    if texts is not None:
        anchors, candidates = texts[:, 0], _candidates(texts)
        is_same = _are_equal(texts[:, 1], candidates) | _are_equal(anchors, candidates)
        # Whether the candidates belong to an equal anchor. Negatives belong to none.
        of_positives = _are_equal(anchors, anchors)
        rest = ops.zeros_like(is_same[:, batch_size:])
        is_same = is_same | ops.concatenate([of_positives, rest], axis=1)
        own = ops.concatenate([ops.eye(batch_size, dtype="bool"), rest], axis=1)
        logits = ops.where(is_same & ~own, _NOT_A_NEGATIVE, logits)
    return -ops.diagonal(ops.log_softmax(logits)[:, :batch_size])


def _candidates(rows):
    """`(batch, texts, ...)` -> `(candidates, ...)`. The positive of row i is candidate i."""
    return ops.reshape(ops.swapaxes(rows[:, 1:], 0, 1), (-1, ops.shape(rows)[2]))


def _are_equal(texts, others):
    """Whether each text is each of the others, `(texts, others)`."""
    return ops.all(ops.expand_dims(texts, 1) == ops.expand_dims(others, 0), axis=-1)

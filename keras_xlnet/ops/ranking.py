"""Losses for the scores of lists of documents.

With the score s_i and the relevance r_i of document i of a query,

    softmax over the list:  -sum_i r_i / (sum_j r_j) log softmax(s)_i
    pairwise hinge:         mean over the pairs with r_i > r_j of max(0, margin - (s_i - s_j))

A negative relevance marks padding: lists have different lengths.

Source: Cao et al. 2007, "Learning to Rank: From Pairwise Approach to Listwise Approach", for the
softmax; Herbrich et al. 2000, "Large Margin Rank Boundaries for Ordinal Regression", for the hinge.
"""

from keras import ops

from keras_xlnet.types import Tensor

_ABSENT = -1e9


def list_softmax_loss(relevance: Tensor, scores: Tensor) -> Tensor:
    """Returns the cross-entropy of relevance and the softmax of scores, over each list.

    Args:
        relevance: Tensor `(batch, documents)`, at least 0; negative where there is no document.
        scores: Float tensor `(batch, documents)`.

    Returns:
        Float tensor `(batch,)`, 0 for lists without a relevant document.
    """
    is_document = relevance >= 0
    gains = ops.where(is_document, ops.cast(relevance, scores.dtype), 0.0)
    log_probs = ops.log_softmax(ops.where(is_document, scores, _ABSENT), axis=-1)
    total = ops.sum(gains, axis=-1)
    # Where there is no document, the gain is 0 and the log-probability large but finite.
    loss = -ops.sum(gains * log_probs, axis=-1)
    return loss / ops.where(total > 0, total, 1.0)


def pairwise_hinge_loss(relevance: Tensor, scores: Tensor, margin: float = 1.0) -> Tensor:
    """Returns the mean hinge over the pairs of documents of different relevance, for each list.

    Args:
        relevance, scores: As in `list_softmax_loss`.
        margin: Float, how far ahead the score of the more relevant document should be.

    Returns:
        Float tensor `(batch,)`, 0 for lists without such a pair.
    """
    relevance = ops.cast(relevance, scores.dtype)
    better, worse = ops.expand_dims(relevance, 2), ops.expand_dims(relevance, 1)
    counts = ops.cast((better > worse) & (worse >= 0), scores.dtype)
    ahead = ops.expand_dims(scores, 2) - ops.expand_dims(scores, 1)
    hinge = ops.sum(counts * ops.relu(margin - ahead), axis=(1, 2))
    number = ops.sum(counts, axis=(1, 2))
    return hinge / ops.where(number > 0, number, 1.0)

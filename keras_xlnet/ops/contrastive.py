"""The loss of embeddings of texts that belong together: others in the batch do not.

A row of a batch has an anchor a, a text p that belongs to it, and maybe a text n that does not. Of
the texts c of the whole batch, all p and all n,

    loss_i = -log softmax_j(scale * cos(a_i, c_j)) at c_j = p_i

Source: Henderson et al. 2017, "Efficient Natural Language Response Suggestion for Smart Reply",
section 4.4; in sentence-transformers it is `MultipleNegativesRankingLoss`.
"""

from keras import ops

from keras_xlnet.types import Tensor


def in_batch_negatives_loss(embeddings: Tensor, scale: float) -> Tensor:
    """Returns the cross-entropy of finding the text that belongs to each anchor.

    Args:
        embeddings: Float tensor `(batch, texts, dim)` of vectors of length 1: anchor, positive and
            any number of negatives.
        scale: Float, by which cosines are multiplied.

    Returns:
        Float tensor `(batch,)`.
    """
    batch_size, _, dim = ops.shape(embeddings)
    # All positives come first: the positive of row i is column i.
    candidates = ops.reshape(ops.swapaxes(embeddings[:, 1:], 0, 1), (-1, dim))
    cosines = ops.matmul(embeddings[:, 0], ops.transpose(candidates))
    return -ops.diagonal(ops.log_softmax(scale * cosines)[:, :batch_size])

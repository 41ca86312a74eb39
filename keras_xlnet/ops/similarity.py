"""How similar two texts are, token by token and as a whole.

    S[i, j]  = cos(a[i], b[j])                  for tokens i of the first text, j of the second
    u, v     = softmax of the weights of the tokens of each text
    coverage = sum_i u[i] max_j S[i, j]         how much of the first text is in the second
             = sum_j v[j] max_i S[i, j]         how much of the second is in the first
    mean     = sum_i u[i] a[i],  sum_j v[j] b[j]
    cosine   = cos(mean of the first, mean of the second)

Source: Zhang et al. 2020, "BERTScore: evaluating text generation with BERT", section 3, where the
weights are inverse document frequencies.
"""

from keras import ops

from keras_xlnet.types import Tensor

_EPSILON = 1e-6


def pair_similarity(
    sequence: Tensor, token_weights: Tensor, first_mask: Tensor, second_mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compares two texts that are in the same rows.

    Args:
        sequence: `(..., length, hidden_dim)`, a vector of each token.
        token_weights: `(..., length)`, how much each token counts, before the softmax.
        first_mask, second_mask: `(..., length)` bool, `True` for the tokens of a text. Leading axes
            of weights and masks may be 1.

    Returns:
        Similarities `(..., 4)`: both coverages, the smaller of them, and the cosine; and the two
        means `(..., hidden_dim)`, of length 1. The mean of a text without tokens is 0.
    """
    unit = _normalized(sequence)
    similarity = ops.matmul(unit, ops.swapaxes(unit, -1, -2))
    is_pair = ops.logical_and(ops.expand_dims(first_mask, -1), ops.expand_dims(second_mask, -2))
    similarity = ops.where(is_pair, similarity, -ops.ones_like(similarity))
    first, second = (_softmax(token_weights, mask) for mask in (first_mask, second_mask))
    coverages = [
        ops.sum(first * ops.max(similarity, axis=-1), axis=-1),
        ops.sum(second * ops.max(similarity, axis=-2), axis=-1),
    ]
    means = [
        _normalized(ops.sum(ops.expand_dims(weights, -1) * sequence, axis=-2))
        for weights in (first, second)
    ]
    cosine = ops.sum(means[0] * means[1], axis=-1)
    return ops.stack([*coverages, ops.minimum(*coverages), cosine], axis=-1), *means


def _normalized(x):
    return x / ops.sqrt(ops.sum(ops.square(x), axis=-1, keepdims=True) + _EPSILON)


def _softmax(weights, mask):
    shares = ops.softmax(ops.where(mask, weights, -1e30), axis=-1)
    # For a text without tokens, the shares are 0 and not equal.
    return ops.where(mask, shares, ops.zeros_like(shares))

"""Factorization orders, and which token may see which under them.

    log p(x) = sum over t of log p(x[z[t]] | x[z[1]], ..., x[z[t-1]])    for an order z

    rank[z[t]] = t                              the turn of each position
    visible[i, j] = rank[j] <  rank[i]          query stream: i is a target
    visible[i, j] = rank[j] <= rank[i]          content stream: i is seen itself

Tokens that are not predicted come first in the order, so all tokens see them.

The functions run on tensors of any Keras backend (`xp=keras.ops`) and on arrays (`xp=numpy`).
Axis letters: B batch, L length, H halves, P permutation length.

Source: Yang et al. 2019 (XLNet), sections 2.2 and 2.3; zihangdai/xlnet, `data_utils.py`,
`_local_perm`.
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np
from keras import ops

from keras_xlnet.types import Tensor


def factorization_ranks(
    permutations: Tensor, half_lengths: Sequence[int], xp: ModuleType = ops
) -> Tensor:
    """Returns the rank of each position in the factorization order.

    A half longer than P consists of blocks of P positions. Blocks follow each other in the order
    of the text, and every block of a half is permuted in the same way.

    Args:
        permutations: `(B, H, P)` int32, for each half the ranks inside a block.
        half_lengths: H ints, multiples of P.
        xp: `keras.ops` or `numpy`.

    Returns:
        `(B, L)` int32, counted from 0 in each half.

    Example:

    >>> permutations = np.array([[[2, 0, 1]]])
    >>> print(keras_xlnet.ops.factorization_ranks(permutations, [6], xp=np))
    [[2 0 1 5 3 4]]
    """
    permutation_length = permutations.shape[2]
    ranks = []
    for half, length in enumerate(half_lengths):
        first_ranks = np.arange(length, dtype="int32") // permutation_length * permutation_length
        tiled = xp.tile(permutations[:, half], (1, length // permutation_length))
        ranks.append(tiled + xp.array(first_ranks))
    return xp.concatenate(ranks, axis=1)


def permutation_visibility(
    ranks: Tensor,
    targets: Tensor,
    functional: Tensor,
    half_lengths: Sequence[int],
    xp: ModuleType = ops,
) -> Tensor:
    """Returns which token may see which.

    A target sees the tokens of lower rank. A functional token also sees itself. Tokens that are
    neither are seen by all tokens. The second half sees all of the first, but not vice versa.

    Args:
        ranks: `(B, L)` int32 of `factorization_ranks`.
        targets: `(B, L)` bool, `True` for tokens that are predicted.
        functional: `(B, L)` bool, `True` for tokens such as `<sep>`, which have a rank but are
            not predicted.
        half_lengths: H ints.
        xp: `keras.ops` or `numpy`.

    Returns:
        `(B, L, L)` bool, `[b, i, j]` is `True` where `i` may see `j`.
    """
    ordered = xp.logical_or(targets, functional)
    ranks = xp.where(ordered, ranks, -1)
    # `i` sees `j` where rank[j] < limit[i].
    limits = xp.where(targets, ranks, ranks + 1)
    visible = limits[:, :, None] > ranks[:, None, :]
    visible = xp.logical_or(visible, xp.logical_not(ordered)[:, None, :])
    half = np.repeat(np.arange(len(half_lengths)), half_lengths)
    same, later = half[:, None] == half, half[:, None] > half
    return xp.where(same, visible, later)


def first_targets(
    targets: Tensor, num_predictions: int, xp: ModuleType = ops
) -> tuple[Tensor, Tensor]:
    """Returns the positions of the first targets of each row.

    Args:
        targets: `(B, L)` bool.
        num_predictions: Int.
        xp: `keras.ops` or `numpy`.

    Returns:
        `(B, num_predictions)` int32 positions in ascending order, 0 where a row has fewer; and
        `(B, num_predictions)` bool, `True` where there is a target.
    """
    length = targets.shape[1]
    positions = xp.arange(length, dtype="int32")
    order = xp.sort(xp.where(targets, positions, length), axis=1)[:, :num_predictions]
    return xp.where(order < length, order, 0), order < length


def reachable(mask: np.ndarray) -> np.ndarray:
    """Returns which tokens influence which, through any number of layers that follow a mask.

    Args:
        mask: `(B, L, L)` bool NumPy array, `[b, i, j]` is `True` where `i` sees `j`.

    Returns:
        `(B, L, L)` bool NumPy array: the transitive closure. Every token influences itself.
    """
    reach = np.logical_or(mask, np.eye(mask.shape[-1], dtype="bool"))
    while True:
        further = np.matmul(reach.astype("float32"), reach.astype("float32")) > 0
        if np.array_equal(further, reach):
            return reach
        reach = further

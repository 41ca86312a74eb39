"""Factorization orders and the masks that follow from them.

`xp` is `keras.ops` or `numpy`: the same lines run in a graph and on plain arrays. Axis letters:
B batch, L length, H halves, P permutation length.
Source: Yang et al. 2019 (XLNet), section 2.3; zihangdai/xlnet, `data_utils.py`, `_local_perm`.
"""

import numpy as np


def order_ranks(xp, permutations, half_lengths):
    """When each position has its turn: blocks of P in the order of the text, permuted inside.

    Args:
        xp: `keras.ops` or `numpy`.
        permutations: `(B, H, P)` int32, for each half the ranks inside a block. All blocks of a
            half share them.
        half_lengths: H ints, multiples of P.

    Returns:
        `(B, L)` int32, counted from 0 in each half.
    """
    permutation_length = permutations.shape[2]
    ranks = []
    for half, length in enumerate(half_lengths):
        blocks = np.arange(length, dtype="int32") // permutation_length * permutation_length
        tiled = xp.tile(permutations[:, half], (1, length // permutation_length))
        ranks.append(tiled + xp.array(blocks))
    return xp.concatenate(ranks, axis=1)


def permutation_mask(xp, ranks, targets, functional, half_lengths):
    """Who may see whom.

    Ordinary tokens that are no targets come first in the order: all may see them. A target sees
    what has an earlier turn, functional tokens see themselves too, and both count as turns. The
    second half sees all of the first, the first none of the second.

    Args:
        xp: `keras.ops` or `numpy`.
        ranks: `(B, L)` int32 of `order_ranks`.
        targets: `(B, L)` bool, `True` for tokens that are predicted.
        functional: `(B, L)` bool, `True` for tokens such as `<sep>` that have a turn but are not
            predicted.
        half_lengths: H ints.

    Returns:
        `(B, L, L)` bool, `[b, i, j]` `True` where `i` may see `j`.
    """
    ordered = xp.logical_or(targets, functional)
    ranks = xp.where(ordered, ranks, -1)
    turns = xp.where(targets, ranks, ranks + 1)
    visible = turns[:, :, None] > ranks[:, None, :]
    visible = xp.logical_or(visible, xp.logical_not(ordered)[:, None, :])
    half = np.repeat(np.arange(len(half_lengths)), half_lengths)
    same, later = half[:, None] == half, half[:, None] > half
    return xp.where(same, visible, later)


def first_targets(xp, targets, num_predictions):
    """Positions of the first targets of each row.

    Returns:
        `(B, num_predictions)` int32 positions in ascending order, 0 where a row has no more; and
        the same shape in bool, `True` where there is one.
    """
    length = targets.shape[1]
    positions = xp.arange(length, dtype="int32")
    order = xp.sort(xp.where(targets, positions, length), axis=1)[:, :num_predictions]
    return xp.where(order < length, order, 0), order < length


def reachable(mask):
    """What each token knows of, through any number of layers that follow `mask`.

    Args:
        mask: `(B, L, L)` bool NumPy array, `[b, i, j]` `True` where `i` sees `j`.

    Returns:
        `(B, L, L)` bool: the transitive closure; every token knows itself.
    """
    reach = np.logical_or(mask, np.eye(mask.shape[-1], dtype="bool"))
    while True:
        further = np.matmul(reach.astype("float32"), reach.astype("float32")) > 0
        if np.array_equal(further, reach):
            return reach
        reach = further

import matplotlib.pyplot as plt
import numpy as np
from keras import ops
from matplotlib.colors import ListedColormap

_HIDDEN, _VISIBLE, _ITSELF = 0, 1, 2
_COLORS = ListedColormap(["#eceff4", "#5e81ac", "#2e3440"])
_TARGET_COLOR = "#bf616a"


def plot_permutation_mask(permutation_mask, target_positions, tokens=None, axes=None):
    """Draws who may see whom in one row of a batch, in both streams.

    A row of a picture is a token that looks, a column one that is looked at. The content stream is
    on the left, where each token sees itself too. On the right is the query stream, which has rows
    for the targets only. Targets are red.

    Args:
        permutation_mask: Bool array `(length, length)`, `True` where `i` may see `j`.
        target_positions: Int array `(num_predictions,)`.
        tokens: Optional list of `length` strings to write beside rows and columns.
        axes: Optional pair of matplotlib axes. By default a new figure is made.

    Returns:
        The two axes.

    Raises:
        ValueError: If a shape is not as above.

    Example:

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from keras_xlnet.visualization import plot_permutation_mask
    >>> features = keras_xlnet.layers.PermutationMaskGenerator(3, seed=0).generate(
    ...     np.array([[5, 6, 7, 8, 9]]), np.array([[0, 1, 1, 0, 1]]))
    >>> content_axes, query_axes = plot_permutation_mask(
    ...     features["permutation_mask"][0], features["target_positions"][0],
    ...     tokens=["the", "cat", "sat", "on", "mats"])
    >>> content_axes.figure.savefig("mask.png")  # doctest: +SKIP

    Source: Yang et al. 2019 (XLNet), figure 1 and appendix A.7.
    """
    mask = ops.convert_to_numpy(permutation_mask).astype("bool")
    targets = ops.convert_to_numpy(target_positions)
    _check(mask, targets, tokens)
    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
    tokens = [str(i) for i in range(len(mask))] if tokens is None else tokens
    content = np.where(np.eye(len(mask), dtype="bool"), _ITSELF, np.where(mask, _VISIBLE, _HIDDEN))
    query = np.where(mask[targets], _VISIBLE, _HIDDEN)
    everyone = np.arange(len(mask))
    for axis, picture, rows, title in (
        (axes[0], content, everyone, "content stream"),
        (axes[1], query, targets, "query stream"),
    ):
        axis.imshow(picture, cmap=_COLORS, vmin=_HIDDEN, vmax=_ITSELF)
        axis.set_title(title, fontsize="medium")
        axis.set_yticks(range(len(rows)), [tokens[i] for i in rows], fontsize="x-small")
        axis.set_xticks(everyone, tokens, rotation=90, fontsize="x-small")
        axis.tick_params(length=0)
        # Lines between the cells.
        axis.set_xticks(np.arange(len(mask) - 1) + 0.5, minor=True)
        axis.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)
        axis.grid(which="minor", color="white", linewidth=0.5)
        for labels, positions in (
            (axis.get_yticklabels(), rows),
            (axis.get_xticklabels(), everyone),
        ):
            for label, position in zip(labels, positions, strict=True):
                if position in targets:
                    label.set_color(_TARGET_COLOR)
    return axes


def _check(mask, targets, tokens):
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        raise ValueError(
            "`permutation_mask` must be (length, length), one row of a batch. "
            f"Received: {mask.shape}"
        )
    if targets.ndim != 1:
        raise ValueError(
            f"`target_positions` must be (num_predictions,). Received: {targets.shape}"
        )
    if tokens is not None and len(tokens) != len(mask):
        raise ValueError(f"`tokens` must be {len(mask)} strings. Received: {len(tokens)}")

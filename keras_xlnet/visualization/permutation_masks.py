from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from keras import ops
from matplotlib.colors import ListedColormap

_HIDDEN, _VISIBLE, _ITSELF = 0, 1, 2
_COLORS = ListedColormap(["#eceff4", "#5e81ac", "#2e3440"])
_TARGET_COLOR = "#bf616a"


def plot_permutation_mask(
    permutation_mask: np.ndarray,
    target_positions: np.ndarray,
    tokens: Sequence[str] | None = None,
    axes: Any = None,
) -> Any:
    """Plots which tokens attend to which tokens in one row of a batch, in both streams.

    Each row of a plot is a token that attends, each column a token that is attended to. The left
    plot shows the content stream, in which each token also attends to itself. The right plot shows
    the query stream, with a row for each target. Labels of targets are red.

    Args:
        permutation_mask: Bool array `(length, length)`, `True` where token `i` may attend to token
            `j`.
        target_positions: Int array `(num_predictions,)`.
        tokens: Optional list of `length` strings, the labels of rows and columns.
        axes: Optional pair of matplotlib axes. By default a new figure is created.

    Returns:
        The two axes.

    Raises:
        ValueError: If an argument has the wrong shape.

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
    _check_shapes(mask, targets, tokens)
    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
    tokens = [str(i) for i in range(len(mask))] if tokens is None else tokens
    content = np.where(np.eye(len(mask), dtype="bool"), _ITSELF, np.where(mask, _VISIBLE, _HIDDEN))
    query = np.where(mask[targets], _VISIBLE, _HIDDEN)
    _plot_stream(axes[0], content, np.arange(len(mask)), targets, tokens, "content stream")
    _plot_stream(axes[1], query, targets, targets, tokens, "query stream")
    return axes


def _plot_stream(axes, image, rows, targets, tokens, title):
    columns = np.arange(len(tokens))
    axes.imshow(image, cmap=_COLORS, vmin=_HIDDEN, vmax=_ITSELF)
    axes.set_title(title, fontsize="medium")
    axes.set_yticks(range(len(rows)), [tokens[i] for i in rows], fontsize="x-small")
    axes.set_xticks(columns, tokens, rotation=90, fontsize="x-small")
    axes.tick_params(length=0)
    # Grid lines between the cells.
    axes.set_xticks(columns[:-1] + 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.5)
    for labels, positions in ((axes.get_yticklabels(), rows), (axes.get_xticklabels(), columns)):
        for label, position in zip(labels, positions, strict=True):
            if position in targets:
                label.set_color(_TARGET_COLOR)


def _check_shapes(mask, targets, tokens):
    if mask.ndim != 2 or mask.shape[0] != mask.shape[1]:
        raise ValueError(
            "`permutation_mask` must have shape (length, length), one row of a batch. "
            f"Received: {mask.shape}"
        )
    if targets.ndim != 1:
        raise ValueError(
            f"`target_positions` must have shape (num_predictions,). Received: {targets.shape}"
        )
    if tokens is not None and len(tokens) != len(mask):
        raise ValueError(f"`tokens` must be {len(mask)} strings. Received: {len(tokens)}")

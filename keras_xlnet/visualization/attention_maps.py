from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from keras_xlnet.models.inspection import Attention

TITLES = {
    "content": "(a) content-content",
    "position": "(b) content-position",
    "content_bias": "(c) content bias",
    "position_bias": "(d) position bias",
    "segment": "(e) segment",
    "scores": "score: the sum",
    "probabilities": "probabilities",
}


def plot_attention(
    attention: Attention,
    head: int = 0,
    row: int = 0,
    show: str = "probabilities",
    tokens: Sequence[str] | None = None,
    memory_tokens: Sequence[str] | None = None,
    axes: Any = None,
) -> Any:
    """Plots what one head attends to in one text, as a map.

    Each row of the map is a token that attends, each column a token that is attended to, memory
    first. Where a token may not attend the map is gray.

    Args:
        attention: An `Attention`, from `model.inspect(inputs).attention(layer)`.
        head: Int, index of the head.
        row: Int, index of the text in the batch.
        show: `"probabilities"`, `"scores"`, or the name of a term of the score: `"content"`,
            `"position"`, `"content_bias"`, `"position_bias"` or `"segment"`.
        tokens: Optional list of strings, the tokens of the text.
        memory_tokens: Optional list of strings, the tokens in memory.
        axes: Optional matplotlib axes. By default a new figure is created.

    Returns:
        The axes.

    Raises:
        ValueError: If there is no such head or term, or the tokens are too few or too many.

    Example:

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from keras_xlnet.visualization import plot_attention
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 2, 2, 16, 32)
    >>> inspection = backbone.inspect({"token_ids": np.array([[5, 17, 8]])})
    >>> axes = plot_attention(inspection.attention(1), head=1, tokens=["a", "b", "c"])

    Source: Dai et al. 2019, section 3.3, for the terms.
    """
    values, mask = _values(attention, head, row, show), attention.mask[row]
    columns = context_labels(attention, tokens, memory_tokens)
    columns = [label.replace("$", r"\$") for label in columns]  # It would start a formula.
    if axes is None:
        size = 2 + 0.18 * len(columns)
        _, axes = plt.subplots(figsize=(size, size * 0.9), layout="constrained")
    shown = np.ma.masked_array(values, ~mask)
    if show == "probabilities":
        style = {"cmap": "Blues", "vmin": 0, "vmax": max(shown.max(), 1e-6)}
    else:
        largest = np.abs(shown).max()
        style = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
    image = axes.imshow(shown, **style)
    axes.set_facecolor("#d8dee9")
    axes.figure.colorbar(image, ax=axes, shrink=0.7)
    axes.set_title(TITLES[show], fontsize="medium")
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize="x-small")
    of_rows = [columns[attention.memory_length + p] for p in attention.positions[row]]
    axes.set_yticks(range(len(of_rows)), of_rows, fontsize="x-small")
    if attention.memory_length:
        axes.axvline(attention.memory_length - 0.5, color="#bf616a", linewidth=1)
    return axes


def plot_attention_terms(
    attention: Attention,
    head: int = 0,
    row: int = 0,
    tokens: Sequence[str] | None = None,
    memory_tokens: Sequence[str] | None = None,
) -> Any:
    """Plots the terms of the score of one head, their sum, and the probabilities, side by side.

    Args:
        attention, head, row, tokens, memory_tokens: As in `plot_attention`.

    Returns:
        The matplotlib figure.

    Example:

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from keras_xlnet.visualization import plot_attention_terms
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 2, 2, 16, 32)
    >>> inspection = backbone.inspect({"token_ids": np.array([[5, 17, 8]])})
    >>> figure = plot_attention_terms(inspection.attention(0))

    Source: Dai et al. 2019, section 3.3; Yang et al. 2019, section 2.5.
    """
    names = [*attention.terms, "scores", "probabilities"]
    num_columns = 4 if len(names) > 6 else 3
    figure, axes = plt.subplots(
        2, num_columns, figsize=(4.2 * num_columns, 7.6), layout="constrained"
    )
    for name, one in zip(names, axes.flat, strict=False):
        plot_attention(attention, head, row, name, tokens, memory_tokens, axes=one)
    for one in axes.flat[len(names) :]:
        one.set_axis_off()
    figure.suptitle(f"layer {attention.layer}, head {head}, {attention.stream} stream")
    return figure


def _values(attention, head, row, show):
    known = {
        **attention.terms,
        "scores": attention.scores,
        "probabilities": attention.probabilities,
    }
    if show not in known:
        raise ValueError(f"`show` must be one of {list(known)}. Received: show={show!r}")
    batch_size, num_heads = attention.probabilities.shape[:2]
    if not 0 <= head < num_heads or not 0 <= row < batch_size:
        raise ValueError(
            f"`head` must be below {num_heads} and `row` below {batch_size}. Received: "
            f"head={head}, row={row}"
        )
    return known[show][row, head]


def context_labels(
    attention: Attention, tokens: Sequence[str] | None, memory_tokens: Sequence[str] | None
) -> list[str]:
    """Returns a string for each context row, of memory and then of the content.

    Raises:
        ValueError: If the tokens are too few or too many.
    """
    memory_length = attention.memory_length
    length = attention.mask.shape[-1] - memory_length
    found = []
    for name, given, size in (
        ("memory_tokens", memory_tokens, memory_length),
        ("tokens", tokens, length),
    ):
        if given is not None and len(given) != size:
            raise ValueError(f"`{name}` must be {size} strings. Received: {len(given)}")
        default = ["·"] * size if name == "memory_tokens" else [str(i) for i in range(size)]
        found += [str(token) for token in (default if given is None else given)]
    return found

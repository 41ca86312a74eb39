from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from keras_xlnet.models.inspection import Inspection


def attended_distances(inspection: Inspection, stream: str = "content") -> np.ndarray:
    """Computes how far away the tokens are that each head attends to, on average.

    Args:
        inspection: What `model.inspect` returned.
        stream: `"content"` or `"query"`.

    Returns:
        Float array `(layers, num_heads)`, in tokens: the mean of the absolute distance, weighted by
        the attention probabilities, over all tokens that may attend to anything.

    Raises:
        ValueError: If the model has no such stream.
    """
    found = [a for a in inspection.attentions if a.stream == stream]
    if not found:
        raise ValueError(f"`inspection` has no attention of the {stream!r} stream")
    return np.stack([_mean_distances(attention) for attention in found])


def plot_attended_distances(
    inspection: Inspection, stream: str = "content", axes: Any = None
) -> Any:
    """Plots how far away the tokens are that each head of each layer attends to, on average.

    Args:
        inspection, stream: As in `attended_distances`.
        axes: Optional matplotlib axes. By default a new figure is created.

    Returns:
        The axes.

    Example:

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from keras_xlnet.visualization import plot_attended_distances
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 2, 2, 16, 32)
    >>> axes = plot_attended_distances(backbone.inspect({"token_ids": np.array([[5, 17, 8]])}))
    """
    distances = attended_distances(inspection, stream)
    num_layers, num_heads = distances.shape
    if axes is None:
        size = (2.5 + 0.5 * num_heads, 1.5 + 0.4 * num_layers)
        _, axes = plt.subplots(figsize=size, layout="constrained")
    image = axes.imshow(distances, cmap="viridis")
    axes.figure.colorbar(image, ax=axes, label="tokens")
    axes.set(xlabel="head", ylabel="layer", title=f"attended distance, {stream} stream")
    axes.set_xticks(range(num_heads))
    axes.set_yticks(range(num_layers))
    middle = (distances.max() + distances.min()) / 2
    for (layer, head), distance in np.ndenumerate(distances):
        color = "white" if distance < middle else "black"
        axes.text(head, layer, f"{distance:.1f}", ha="center", va="center", color=color, size=7)
    return axes


def plot_memory_use(inspections: Sequence[Inspection], axes: Any = None) -> Any:
    """Plots how much of the attention goes to memory, along a document.

    Args:
        inspections: List of what `model.inspect` returned for segments that follow each other,
            each with the memory of those before it.
        axes: Optional matplotlib axes. By default a new figure is created.

    Returns:
        The axes.

    Raises:
        ValueError: If there are no inspections.

    Example:

    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from keras_xlnet.visualization import plot_memory_use
    >>> model = keras_xlnet.models.TransformerXLLanguageModel(50, 2, 2, 16, 32, memory_length=4)
    >>> inspections, memory = [], {}
    >>> for segment in np.arange(12).reshape(3, 1, 4):
    ...     found = model.inspect({"token_ids": segment, **memory})
    ...     memory = {key: found.outputs[key] for key in ("memory", "memory_mask")}
    ...     inspections.append(found)
    >>> axes = plot_memory_use(inspections)
    """
    shares = memory_use(inspections)
    if axes is None:
        _, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(shares)))
    for layer, (share, color) in enumerate(zip(shares, colors, strict=True)):
        axes.plot(share, color=color, label=f"layer {layer}", linewidth=1.2)
    start = 0
    for inspection in inspections:
        axes.axvline(start - 0.5, color="#d8dee9", linewidth=1, zorder=0)
        start += inspection.attentions[0].mask.shape[1]
    axes.set(xlabel="token", ylabel="share of attention", ylim=(-0.02, 1.02))
    axes.set_title("attention to memory; lines are the starts of segments", fontsize="medium")
    axes.legend(fontsize="small")
    return axes


def memory_use(inspections: Sequence[Inspection]) -> np.ndarray:
    """Computes how much of the attention of each token goes to memory.

    Args:
        inspections: As in `plot_memory_use`.

    Returns:
        Float array `(layers, tokens)`, from 0 to 1: the mean over batch and heads.
    """
    if not inspections:
        raise ValueError("`inspections` must have at least one inspection. Received: none")
    by_segment = []
    for inspection in inspections:
        found = [a for a in inspection.attentions if a.stream == "content"]
        by_segment.append(
            [a.probabilities[..., : a.memory_length].sum(axis=-1).mean(axis=(0, 1)) for a in found]
        )
    return np.concatenate(by_segment, axis=1)


def _mean_distances(attention):
    """`(num_heads,)`."""
    distances = np.abs(attention.distances)[:, None]
    by_row = (attention.probabilities * distances).sum(axis=-1)
    may_attend = attention.mask.any(axis=-1)[:, None]
    counted = np.broadcast_to(may_attend, by_row.shape)
    return np.where(counted, by_row, 0).sum(axis=(0, 2)) / np.maximum(counted.sum(axis=(0, 2)), 1)

"""Draws what attention does: the terms of the score, distances, memory, and a page to browse.

    python research/pictures/draw_attention.py        # 20 seconds, no network

Uses the model that comes with the package, or any preset of a language model (`--preset`). Writes
to runs/attention: attention_terms.png, attended_distances.png, memory_use.png, and attention.html,
one file with every layer, stream, head and term. docs/language_models.md shows the pictures.
"""

import argparse
import lzma
import pathlib

import matplotlib
import numpy as np

from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.visualization import (
    plot_attended_distances,
    plot_attention_terms,
    plot_memory_use,
    write_attention_page,
)

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

SHAKESPEARE = pathlib.Path(__file__).parents[2] / "examples" / "data" / "tiny_shakespeare.txt.xz"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_small_en", help="name or location")
    sentence = "The dog ran after the cat because it was hungry."
    parser.add_argument("--sentence", default=sentence)
    parser.add_argument("--targets", nargs="+", default=["dog", "cat"], help="predicted words")
    parser.add_argument("--layer", type=int, default=3, help="whose terms are drawn")
    parser.add_argument("--output_dir", type=pathlib.Path, default=pathlib.Path("runs/attention"))
    options = parser.parse_args()
    options.output_dir.mkdir(parents=True, exist_ok=True)
    model = XLNetPermutationLM.from_preset(
        options.preset, stateful=False, batch_size=None, attend_to_empty_memory=False,
        bidirectional_data=False,
    )  # fmt: skip
    (token_ids,) = model.tokenizer.encode([options.sentence])
    tokens = [model.tokenizer.id_to_token(int(i)).replace("\u2581", "_") for i in token_ids]
    inspection = model.inspect(with_targets(token_ids, tokens, options.targets))
    attention = inspection.attention(options.layer)
    figures = {
        "attention_terms": plot_attention_terms(attention, head=1, tokens=tokens),
        "attended_distances": draw_distances(inspection),
        "memory_use": plot_memory_use(read_document(model)).figure,
    }
    for name, figure in figures.items():
        figure.savefig(options.output_dir / f"{name}.png", dpi=90)
    write_attention_page(options.output_dir / "attention.html", inspection, tokens=tokens)
    print(f"Written to {options.output_dir}: {', '.join(figures)}, attention.html")


def with_targets(token_ids, tokens, targets):
    """Returns the inputs of a model that predicts the targets one after the other."""
    positions = [i for i, token in enumerate(tokens) if token.strip("_") in targets]
    ranks = np.full(len(tokens), -1)
    ranks[positions] = np.arange(len(positions))
    return {
        "token_ids": token_ids[None],
        "permutation_mask": (ranks < ranks[:, None])[None] | (ranks < 0)[None, None],
        "target_positions": np.array([positions], "int32"),
    }


def draw_distances(inspection):
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for stream, axis in zip(("content", "query"), axes, strict=True):
        plot_attended_distances(inspection, stream, axes=axis)
    return figure


def read_document(model, num_segments=6):
    """Returns the inspections of the first segments of tiny Shakespeare, read with memory."""
    length = model.backbone.memory_length
    text = lzma.open(SHAKESPEARE, "rt", encoding="utf-8").read(40 * num_segments * length)
    (token_ids,) = model.tokenizer.encode([text])
    inspections, memory = [], {}
    for segment in np.split(token_ids[: num_segments * length], num_segments):
        found = model.backbone.inspect({"token_ids": segment[None], **memory})
        memory = {key: found.outputs[key] for key in ("memory", "memory_mask")}
        inspections.append(found)
    return inspections


if __name__ == "__main__":
    main()

"""Draws what attention does: the terms of the score, distances, memory, and a page to browse.

    python research/pictures/draw_attention.py        # 20 seconds, no network

With the model that comes with the package, or any preset of a language model (`--preset`). Writes
to runs/attention: attention_terms.png, attended_distances.png, memory_use.png, and attention.html,
one file with every layer, stream, head and term. The pictures are those of docs/language_models.md.
"""

import lzma
import pathlib

import matplotlib
import numpy as np
from absl import app, flags

from keras_xlnet.models import XLNetPermutationLM
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.visualization import (
    plot_attended_distances,
    plot_attention_terms,
    plot_memory_use,
    write_attention_page,
)

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

SHAKESPEARE = pathlib.Path(__file__).parents[2] / "examples" / "data" / "tiny_shakespeare.txt.xz"

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "xlnet_small_en", "Name or location of a preset.")
flags.DEFINE_string("sentence", "The dog ran after the cat because it was hungry.", "A sentence.")
flags.DEFINE_list("targets", ["dog", "cat"], "Words of it that are predicted.")
flags.DEFINE_integer("layer", 3, "Layer whose terms are drawn.", lower_bound=0)
flags.DEFINE_integer("head", 1, "Head whose terms are drawn.", lower_bound=0)
flags.DEFINE_string("output_dir", "runs/attention", "Where everything is written.")


def main(arguments):
    if len(arguments) > 1:
        raise app.UsageError(f"unknown arguments {arguments[1:]}")
    output_dir = pathlib.Path(FLAGS.output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    tokenizer = XLNetTokenizer.from_preset(FLAGS.preset)
    model = XLNetPermutationLM.from_preset(
        FLAGS.preset,
        stateful=False,
        batch_size=None,
        attend_to_empty_memory=False,
        bidirectional_data=False,
    )
    token_ids = tokenizer(FLAGS.sentence).numpy()
    tokens = [tokenizer.id_to_token(int(i)).replace("\u2581", "_") for i in token_ids]
    inspection = model.inspect(with_targets(token_ids, tokens))
    attention = inspection.attention(FLAGS.layer)
    figures = {
        "attention_terms": plot_attention_terms(attention, head=FLAGS.head, tokens=tokens),
        "attended_distances": draw_distances(inspection),
        "memory_use": plot_memory_use(read_document(model.backbone, tokenizer)).figure,
    }
    for name, figure in figures.items():
        figure.savefig(output_dir / f"{name}.png", dpi=90)
    write_attention_page(output_dir / "attention.html", inspection, tokens=tokens)
    print(f"Written to {output_dir}: {', '.join(f'{n}.png' for n in figures)}, attention.html")


def with_targets(token_ids, tokens):
    """Returns the inputs of a model that predicts the targets one after the other."""
    positions = [i for i, token in enumerate(tokens) if token.strip("_") in FLAGS.targets]
    if not positions:
        raise app.UsageError(f"--targets: {FLAGS.targets} are not among the tokens {tokens}")
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


def read_document(backbone, tokenizer, num_segments=6):
    """Returns the inspections of the first segments of tiny Shakespeare, read with memory."""
    length = backbone.memory_length
    if length is None:
        raise app.UsageError("--preset: the model has no memory")
    text = lzma.open(SHAKESPEARE, "rt", encoding="utf-8").read(40 * num_segments * length)
    token_ids = tokenizer(text).numpy()[: num_segments * length]
    inspections, memory = [], {}
    for segment in np.split(token_ids, num_segments):
        found = backbone.inspect({"token_ids": segment[None], **memory})
        memory = {key: found.outputs[key] for key in ("memory", "memory_mask")}
        inspections.append(found)
    return inspections


if __name__ == "__main__":
    app.run(main)

"""Draws six permutation masks: which token may attend to which, in both streams.

    python research/pictures/draw_permutation_masks.py docs/permutation_masks.png

Takes a few seconds. The picture is shown in docs/pretraining.md.
"""

import pathlib
import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

from keras_xlnet.layers import PermutationMaskGenerator, SpanMaskSampler
from keras_xlnet.visualization import plot_permutation_mask

SENTENCE = "the qu ick bro wn fox jump s over the la zy dog to day .".split()
STARTS = np.array([[1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1]], "bool")
SEP, CLS = 4, 3


def main(path):
    cases = {
        "the paper's example: four tokens,\norder 3, 2, 4, 1": four_tokens(),
        "single tokens": drawn("token"),
        "spans of sub-words, as the released\nmodels were trained": drawn("piece"),
        "spans of whole words": drawn("word"),
        "two halves: the first, which memory keeps,\nsees nothing of the second": halves(),
        "<sep> and <cls> have turns of their own": functional_tokens(),
    }
    figure = plt.figure(figsize=(17, 15), layout="constrained")
    for part, (title, case) in zip(figure.subfigures(3, 2).flat, cases.items(), strict=True):
        part.suptitle(title, fontsize="large")
        features, tokens = case
        mask, targets = (features[name][0] for name in ("permutation_mask", "target_positions"))
        plot_permutation_mask(mask, targets, tokens, part.subplots(1, 2))
    figure.savefig(path, dpi=80)
    print(f"drew {path}")


def generated(targets, seed=0, ids=None, **arguments):
    """Returns the features of a row, for positions or a bool array of its targets."""
    if len(targets) != 1:
        targets = np.isin(np.arange(16), targets)[None]
    ids = np.arange(16)[None] + 5 if ids is None else ids
    generator = PermutationMaskGenerator(int(targets.sum()), **arguments)
    return generator.generate(ids, targets, draws=np.random.default_rng(seed))


def four_tokens():
    # The rank of each token: the third is first, then the second.
    order, ids, targets = np.array([[[3, 1, 0, 2]]]), np.array([[5, 6, 7, 8]]), np.ones((1, 4))
    generator = PermutationMaskGenerator(4)
    features = generator.generate(ids, targets.astype("bool"), permutations=order)
    return features, ["x1", "x2", "x3", "x4"]


def drawn(unit):
    targets = SpanMaskSampler(5, alpha=3, unit=unit).sample(STARTS, draws=np.random.default_rng(2))
    return generated(targets, 1), SENTENCE


def halves():
    return generated([2, 3, 6, 9, 12, 13], 2, reuse_length=8), SENTENCE


def functional_tokens():
    tokens = [*SENTENCE[:8], "<sep>", *SENTENCE[8:13], "<sep>", "<cls>"]
    ids = np.array([[{"<sep>": SEP, "<cls>": CLS}.get(t, i + 5) for i, t in enumerate(tokens)]])
    return generated([1, 2, 5, 10, 11], ids=ids), tokens


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "permutation_masks.png"))

"""Draws the picture in the README: how XLNet is pretrained, and how the model is used.

    python research/pictures/draw_overview.py docs/overview.png

Takes a few seconds. The masks come from `PermutationMaskGenerator`.
"""

import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt
from keras import ops
from matplotlib.patches import FancyBboxPatch, Rectangle

from keras_xlnet.layers import PermutationMaskGenerator

TOKENS = ["the", "cat", "sat", "on", "the", "mat"]
TARGETS = [5, 1, 3]  # In the order in which they are predicted.
LENGTH = len(TOKENS)
INK, GREY, RED = "#2e3440", "#5b6472", "#c2410c"
HIDDEN, VISIBLE, ITSELF = "#eceff3", "#7aa2d4", "#2f5d9b"
CELL, TOP = 3.2, 18  # Size of a cell, and start of the rows of the pretraining half.


def main(path):
    figure = plt.figure(figsize=(10.6, 5.6), dpi=170, facecolor="white")
    axes = figure.add_axes([0, 0, 1, 1])
    axes.set(xlim=(0, 121), ylim=(64, 0))
    axes.axis("off")
    draw_pretraining(axes, permutation_mask())
    axes.plot([3, 118], [47, 47], color="#d5dae1", linewidth=1)
    draw_use(axes)
    figure.savefig(path)
    print(f"drew {path}")


def permutation_mask():
    """Returns the mask of one row: bool `(length, length)`, True where i may see j."""
    context = [i for i in range(LENGTH) if i not in TARGETS]
    ranks = np.argsort(context + TARGETS)  # The place of each token in the order.
    features = PermutationMaskGenerator(len(TARGETS))(
        np.arange(10, 10 + LENGTH)[None],
        np.isin(np.arange(LENGTH), TARGETS)[None],
        permutations=ranks[None, None],
    )
    return ops.convert_to_numpy(features["permutation_mask"])[0]


# === The two halves of the picture ===


def draw_pretraining(axes, mask):
    draw_heading(axes, 4, "Pretraining", "predict some tokens of a text, in a random order")

    draw_title(axes, 13.5, "1  Text becomes tokens;\nred ones are targets")
    for i, token in enumerate(TOKENS):
        y = row_top(i)
        draw_box(axes, 5, y, 13, CELL, token, color_of(i))
        if i in TARGETS:
            order = f"#{TARGETS.index(i) + 1}"
            axes.text(19.5, y + CELL / 2, order, color=RED, va="center", weight="bold")
    draw_arrow(axes, 24, 29)

    draw_title(axes, 43.5, "2  The content stream reads:\neach token sees itself")
    draw_grid(axes, 32, mask, range(LENGTH), sees_itself=True)
    draw_arrow(axes, 57, 29)

    draw_title(axes, 76.5, "3  The query stream predicts:\na target does not see itself")
    draw_grid(axes, 66, mask, TARGETS, sees_itself=False)

    draw_title(axes, 106, "4  Later targets are predicted\nfrom earlier targets, too")
    for row, target in enumerate(TARGETS):
        middle = row_top(row) + CELL / 2
        draw_arrow(axes, 90.8, middle)
        draw_box(axes, 94.5, row_top(row), 7, CELL, TOKENS[target], RED, filled=True)
        given = " ".join(TOKENS[j] if mask[target, j] else "__" for j in range(LENGTH))
        axes.text(102.3, middle, given, fontsize=8.5, color=GREY, va="center")
    draw_legend(axes, 66, 35)


def draw_use(axes):
    draw_heading(axes, 51, "Use", "fine-tune on strings, serve one SavedModel that takes strings")
    width, gap = 20.2, 3.5
    steps = [
        ("You have won a prize!", None),
        ("XLNetTokenizer", "text to ids, in the graph"),
        ("XLNetBackbone", "ids to vectors"),
        ("task head", "class, number, answer"),
        ("spam  0.98", None),
    ]
    for i, (name, note) in enumerate(steps):
        x = 3 + i * (width + gap)
        draw_box(axes, x, 54.5, width, 6.6, name, INK if note else GREY, note, filled=not note)
        if i:
            draw_arrow(axes, x - gap + 0.4, 57.8)


# === Their parts ===


def row_top(row):
    return TOP + row * (CELL + 0.8)


def color_of(position):
    return RED if position in TARGETS else INK


def draw_heading(axes, y, name, text):
    shown = axes.text(3, y, name, fontsize=15, weight="bold", color=INK, va="center")
    axes.annotate(f"   {text}", (1, 0.5), xycoords=shown, fontsize=12.5, color=GREY, va="center")


def draw_title(axes, x, text):
    axes.text(x, 11, text, fontsize=10, color=INK, ha="center", va="center", linespacing=1.4)


def draw_box(axes, x, y, width, height, text, color, note=None, filled=False):
    style = {"boxstyle": "round,pad=0,rounding_size=0.7", "edgecolor": color, "linewidth": 1.4}
    face = color if filled else "white"
    axes.add_patch(FancyBboxPatch((x, y), width, height, facecolor=face, **style))
    center = {"x": x + width / 2, "ha": "center", "va": "center"}
    middle = y + height / 2
    ink = "white" if filled else color
    if note is None:
        axes.text(y=middle, s=text, color=ink, fontsize=10.5, **center)
    else:
        axes.text(y=middle - 1.2, s=text, color=ink, fontsize=11, weight="bold", **center)
        axes.text(y=middle + 1.6, s=note, color=GREY, fontsize=9, **center)


def draw_grid(axes, x, mask, rows, sees_itself):
    """Draws a row of cells for each of `rows`, blue where it sees the token of the column."""
    for j, token in enumerate(TOKENS):
        middle = x + j * (CELL + 0.8) + CELL / 2
        axes.text(middle, TOP - 1, token, fontsize=9, color=color_of(j), ha="center")
    for row, i in enumerate(rows):
        middle = row_top(row) + CELL / 2
        axes.text(x - 1, middle, TOKENS[i], fontsize=9, color=color_of(i), ha="right", va="center")
        for j in range(LENGTH):
            color = VISIBLE if mask[i, j] else HIDDEN
            draw_cell(axes, x + j * (CELL + 0.8), row_top(row), color)
            if sees_itself and i == j:
                draw_cell(axes, x + j * (CELL + 0.8), row_top(row), ITSELF)


def draw_cell(axes, x, y, color):
    axes.add_patch(Rectangle((x, y), CELL, CELL, facecolor=color, linewidth=0))


def draw_legend(axes, x, y):
    for color, text in ((VISIBLE, "sees it"), (ITSELF, "sees itself"), (HIDDEN, "does not see it")):
        draw_cell(axes, x, y, color)
        axes.text(x + CELL + 0.8, y + CELL / 2, text, fontsize=9, color=GREY, va="center")
        x += 7.5 + 0.8 * len(text)
    note = "A row looks at the columns. Order of the targets: mat, cat, on."
    axes.text(66, y + CELL + 2.6, note, fontsize=9, color=GREY, va="center")


def draw_arrow(axes, x, y):
    style = {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (x + 2.7, y), (x, y), arrowprops=style)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "overview.png")

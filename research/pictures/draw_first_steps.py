"""Draws the first picture of the README: a CSV file trains a model, which labels another file.

    python research/pictures/draw_first_steps.py docs/first_steps.png

Takes a few seconds. It can be read at the width of a telephone.
"""

import sys

import matplotlib

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

INK, GREY, BLUE, RED = "#2e3440", "#5b6472", "#2f5d9b", "#c2410c"
# Left edge and width of the files on the left, and of what comes from them.
LEFT, RIGHT = (2, 44), (60, 38)


def main(path):
    figure = plt.figure(figsize=(3.9, 2.8), dpi=150, facecolor="white")
    axes = figure.add_axes([0, 0, 1, 1])
    axes.set(xlim=(0, 100), ylim=(72, 0))
    axes.axis("off")
    rows = ["text", "See you at six", "You won a prize"], ["label", "ham", "spam"]
    draw_table(axes, LEFT, 9, "messages.csv", rows)
    draw_arrow(axes, (47, 20.5), (59, 20.5), "fit")
    draw_model(axes, 12, "model", "xlnet_mini_en")
    draw_arrow(axes, (79, 29.5), (79, 40.5), "predict", of="right")
    rows = ["id", "7", "8"], ["text", "Lunch?", "Win a car!"]
    draw_table(axes, LEFT, 47, "new.csv", rows, narrow=True)
    draw_arrow(axes, (47, 58.5), (59, 58.5))
    rows = ["id", "7", "8"], ["text", "Lunch?", "Win a car!"], ["label", "ham", "spam"]
    draw_table(axes, RIGHT, 47, "predicted.csv", rows, narrow=True)
    figure.savefig(path)
    print(f"drew {path}")


def draw_table(axes, place, y, name, columns, narrow=False):
    x, width = place
    axes.text(x, y - 2.2, name, fontsize=8.5, weight="bold", color=INK, va="bottom")
    draw_box(axes, x, y, width, 23, "white", GREY)
    axes.plot([x, x + width], [y + 7.5, y + 7.5], color=GREY, linewidth=0.8)
    starts = [x + 2, x + 8, x + 26] if narrow else [x + 2, x + 32]
    for start, cells in zip(starts, columns, strict=False):
        for i, cell in enumerate(cells):
            is_label = i and cells[0] == "label"
            color = GREY if not i else {"ham": BLUE, "spam": RED}[cell] if is_label else INK
            middle = y + 4 + 7.4 * i
            axes.text(start, middle, cell, fontsize=8, color=color, va="center")


def draw_model(axes, y, name, preset):
    x, width = RIGHT
    draw_box(axes, x, y, width, 17, BLUE, BLUE)
    middle = x + width / 2
    axes.text(
        middle, y + 5.8, name, fontsize=9.5, weight="bold", color="white", ha="center", va="center"
    )
    axes.text(middle, y + 12, preset, fontsize=8, color="white", ha="center", va="center")


def draw_box(axes, x, y, width, height, face, edge):
    style = {"boxstyle": "round,pad=0,rounding_size=1.2", "linewidth": 1}
    axes.add_patch(FancyBboxPatch((x, y), width, height, facecolor=face, edgecolor=edge, **style))


def draw_arrow(axes, start, end, text="", of="above"):
    style = {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=style)
    x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
    place = (
        {"x": x, "y": y - 2, "ha": "center"}
        if of == "above"
        else {"x": x - 2, "y": y, "ha": "right"}
    )
    axes.text(
        s=text,
        fontsize=8.5,
        color=GREY,
        va="center_baseline" if of == "right" else "bottom",
        **place,
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "first_steps.png")

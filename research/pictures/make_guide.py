"""Runs a guide from top to bottom, and writes its pictures and a notebook.

    python research/pictures/make_guide.py docs/guides/how_xlnet_works.md

takes two minutes on 2 cores and needs no network. The guide is the only source: its blocks of
Python become cells of code, the blocks of text after them their output, and the rest cells of text.
A guide saves its pictures in runs/NAME; they are copied to the folder NAME next to it.
"""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import matplotlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
# Jupyter starts a notebook in its own folder.
FIRST_CELL = """import os
import pathlib

if not pathlib.Path("examples").is_dir():
    os.chdir("../..")  # To the top of the clone, where the code of the guides runs.
"""


def main(path):
    draw(path)
    path.with_suffix(".ipynb").write_text(notebook(path.read_text("utf-8")), encoding="utf-8")
    print(f"wrote {path.with_suffix('.ipynb')} and {path.with_suffix('')}/*.png")


def draw(path):
    """Runs the code of a guide in an empty folder, and copies its pictures."""
    matplotlib.use("Agg")  # Draws without a display.
    names, before = {"__name__": path.stem}, os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "examples").symlink_to(ROOT / "examples")
        os.chdir(folder)
        try:
            for code, _ in CODE.findall(path.read_text("utf-8")):
                exec(code, names)
        finally:
            os.chdir(before)
        path.with_suffix("").mkdir(exist_ok=True)
        for picture in pathlib.Path(folder, "runs", path.stem).glob("*.png"):
            shutil.copy(picture, path.with_suffix(""))


def notebook(text):
    """Returns the text of a notebook (nbformat 4.5) with the text and the code of a guide."""
    cells, place = [code_cell(FIRST_CELL)], 0
    for block in CODE.finditer(text):
        cells += [text_cell(text[place : block.start()]), code_cell(*block.groups())]
        place = block.end()
    cells.append(text_cell(text[place:]))
    cells = [cell for cell in cells if cell["source"]]
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    found = {
        "cells": [{"id": f"cell-{i}", **cell} for i, cell in enumerate(cells)],
        "metadata": metadata,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def text_cell(text):
    return {"cell_type": "markdown", "metadata": {}, "source": lines(text)}


def code_cell(code, output=None):
    outputs = [{"name": "stdout", "output_type": "stream", "text": lines(output)}] if output else []
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs}
    return {**cell, "source": lines(code)}


def lines(text):
    return text.strip("\n").splitlines(keepends=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())

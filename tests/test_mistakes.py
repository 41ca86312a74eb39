"""The mistakes of docs/mistakes.md: each has the message that the page says it has."""

import pathlib
import re

import numpy as np
import pandas as pd
import pytest

from keras_xlnet import models, preprocessing, serving
from tests.small_models import small_backbone

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "mistakes.md"
# `code` in one or two backticks: the code and the start of its message.
ROW = re.compile(r"^\| (`+) ?(.+?) ?\1 \| (`+) ?(.+?) ?\3 \|$", re.MULTILINE)
MISTAKES = [(code, start) for _, code, _, start in ROW.findall(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def names(tokenizer):
    """What the code of the page calls by a name."""
    backbone = small_backbone()
    preprocessor = preprocessing.XLNetTextClassifierPreprocessor(tokenizer, 16)
    texts = ["the cat sat", "a dog", "no", "the mat"]
    return {
        "answerer": models.XLNetQuestionAnswering(
            backbone, preprocessing.XLNetQuestionAnsweringPreprocessor(tokenizer, 100)
        ),
        "backbone": backbone,
        "classifier": models.XLNetTextClassifier(
            backbone, 2, preprocessor, class_names=["bad", "good"]
        ),
        "labels": [0, 1, 1, 0],
        "preprocessor": preprocessor,
        "table": pd.DataFrame(
            {"text": [*texts[:2], None, texts[3]], "label": [0, 1, 1, 0]}, index=[3, 8, 17, 20]
        ),
        "texts": texts,
        **{"models": models, "np": np, "pathlib": pathlib},
        **{"preprocessing": preprocessing, "serving": serving},
    }


@pytest.mark.parametrize("code, start", MISTAKES, ids=[code for code, _ in MISTAKES])
def test_the_message_of_a_mistake(code, start, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.keras").touch()
    with pytest.raises((ValueError, TypeError, OSError)) as error:
        eval(code, names)
    assert str(error.value).startswith(start)


def test_every_row_of_the_page_is_a_mistake():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "| `" in line]
    assert len(rows) == len(MISTAKES) == len(dict(MISTAKES)) >= 30

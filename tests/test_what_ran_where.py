"""The pages say on which GPUs the models that come with the package were trained: as the cards."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
CARDS = sorted((ROOT / "keras_xlnet" / "shipped").rglob("README.md"))
# Numbers in words, as a sentence has them, and a device: A100, H200, ...
WORDS = {"README.md": "one", "docs/ko/README.md": "한 개", "docs/zh/README.md": "一个"}
GPU = re.compile(r"\b[ABHLV]\d{2,3}\b")


@pytest.mark.parametrize("page", WORDS)
def test_a_page_names_the_gpus_of_the_cards(page):
    trained = [gpus for card in CARDS if (gpus := GPU.findall(card.read_text("utf-8")))]
    assert len(trained) == 1, "change the words above and the pages"
    text = (ROOT / page).read_text("utf-8")
    (sentence,) = [part for part in re.split(r"(?<=[.。])\s", text) if "NVIDIA" in part]
    assert set(GPU.findall(sentence)) == {gpu for gpus in trained for gpu in gpus}
    assert WORDS[page] in sentence


def test_the_page_of_strategies_says_that_none_ran_there():
    text = (ROOT / "docs" / "distributed.md").read_text("utf-8")
    assert "No strategy was run on GPUs or TPUs." in text
    assert not any("strategy" in card.read_text("utf-8") for card in CARDS)

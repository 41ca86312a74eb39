"""Fixtures of the examples: a small preset and few messages, so that a run takes seconds."""

import pytest

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.preset_files import shipped, write_preset_info
from tests.examples import EXAMPLES


@pytest.fixture(scope="session")
def tiny_preset(tmp_path_factory, tokenizer):
    """The path of a preset like the shipped one: of a language model that read in both directions.

    It has dropout 0 and a memory, as pretraining has them.
    """
    directory = tmp_path_factory.mktemp("tiny") / "preset"
    backbone = XLNetBackbone(
        200, 1, 2, 16, 32, dropout=0.0, memory_length=4, bidirectional_data=True, seed=5
    )
    model = XLNetPermutationLM(backbone, stateful=True, batch_size=2)
    model.save_to_preset(directory, tokenizer=tokenizer)
    return directory


@pytest.fixture
def small_preset(tmp_path, tokenizer, monkeypatch):
    """A preset that loads quickly has the name of one that comes with the package."""
    folder = tmp_path / "shipped"
    model = XLNetPermutationLM(XLNetBackbone(200, 1, 1, 8, 16, memory_length=3))
    model.save_to_preset(folder / "xlnet_small_en", tokenizer, dtype="float16")
    write_preset_info(folder / "xlnet_small_en", "English", {})
    for name in ("adapters", "xlnet_mini_en"):
        (folder / name).symlink_to(shipped.FOLDER / name)
    monkeypatch.setattr(shipped, "FOLDER", folder)


@pytest.fixture(scope="session")
def messages_file(tmp_path_factory):
    """The path of a file with the first 200 of the UCI messages."""
    lines = (EXAMPLES / "data" / "SMSSpamCollection").read_bytes().split(b"\n")
    path = tmp_path_factory.mktemp("messages") / "messages"
    path.write_bytes(b"\n".join(lines[:200]))
    return path

"""The pictures of attention, for any preset of a language model."""

import functools

import pytest

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from tests.research import fork_research

run = functools.partial(fork_research, "pictures/draw_attention")


@pytest.fixture(scope="module")
def preset(tmp_path_factory, tokenizer):
    directory = tmp_path_factory.mktemp("language_model") / "preset"
    # The last layer of a language model has no content stream: two.
    backbone = XLNetBackbone(200, 2, 2, 16, 32, memory_length=4)
    XLNetPermutationLM(backbone).save_to_preset(directory, tokenizer)
    return directory


def test_draws_all_pictures_and_the_page(preset, tmp_path):
    arguments = ["--layer=0", "--sentence=the cat sat", "--targets", "the"]
    result = run(f"--preset={preset}", f"--output_dir={tmp_path}", *arguments)
    assert result.returncode == 0, result.stderr
    names = {path.name for path in tmp_path.iterdir()}
    pictures = {"attention_terms.png", "attended_distances.png", "memory_use.png"}
    assert names == {*pictures, "attention.html"}
    assert all((tmp_path / name).stat().st_size > 5000 for name in pictures)

"""The ablation: other encodings of positions in the place of Transformer-XL's."""

import sys

import numpy as np
import pytest

from keras_xlnet.evaluation import corpus_log_probs
from keras_xlnet.layers import RelativePositionEncoding
from tests.examples import RESEARCH
from tests.research import fork_research

sys.path.insert(0, str(RESEARCH / "language_models"))
from ablation import ENCODINGS


def new_model(encoding, **kwargs):
    return ENCODINGS[encoding](40, 2, 2, 16, 24, memory_length=8, **kwargs)


@pytest.fixture
def tokens(rng):
    return rng.integers(0, 40, 33).astype("int32")


@pytest.mark.parametrize("encoding", ["Shaw", "absolute"])
def test_memory_and_segments_are_those_of_the_model(encoding, tokens):
    model = new_model(encoding)
    one, four = (corpus_log_probs(model, tokens, 8, batch_size=n, verbose=0) for n in (1, 4))
    np.testing.assert_allclose(one, four, atol=1e-5)
    memory = model.with_arguments(memory_length=4)
    assert np.abs(corpus_log_probs(memory, tokens, 8, verbose=0) - one).max() > 1e-6


def test_absolute_positions_are_added_to_the_tokens_and_to_nothing_else(tokens):
    model = new_model("absolute")
    inspection = model.inspect({"token_ids": tokens[None, :6]})
    terms = inspection.attention(0).terms
    np.testing.assert_array_equal(terms["position"], 0)
    np.testing.assert_array_equal(terms["position_bias"], 0)
    added = inspection.hidden_states[0] - np.asarray(model.token_embedding(tokens[None, :6]))
    angles = np.arange(6)[:, None] / 10000 ** (np.arange(0, 16, 2) / 16)
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(added[0], expected, atol=1e-5)


def test_learned_positions_are_one_vector_for_each_distance(tokens):
    encoding = new_model("Shaw").position_encoding
    content = np.zeros((1, 50, 16), "float32")
    table = np.asarray(encoding(content, memory=np.zeros((1, 30, 16), "float32")))[0]
    assert table.shape == RelativePositionEncoding(16, "uni")(content, content[:, :30]).shape[1:]
    weights = np.asarray(encoding.table)
    np.testing.assert_array_equal(table[-1], weights[0])
    np.testing.assert_array_equal(table[:17], np.tile(weights[64], (17, 1)))


def test_writes_a_table_and_a_plot(tmp_path):
    result = fork_research(
        "language_models/ablation", "--steps=2", "--evaluated=500", "--attention", 8, 16,
        "--num_layers=1", f"--output_dir={tmp_path}",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    assert len((tmp_path / "table.md").read_text(encoding="utf-8").splitlines()) == 2 + 12
    assert (tmp_path / "ablation.png").stat().st_size > 10000

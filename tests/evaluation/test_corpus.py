"""Log-probabilities of a text: equal to the authors' evaluation, whatever the batch size."""

import json

import numpy as np
import pytest

from keras_xlnet.evaluation import corpus, corpus_log_probs, sliding_log_probs
from keras_xlnet.models.scoring import predict
from tests.models.test_scoring import causal_model
from tests.models.test_transformer_xl_golden import load, new_model


@pytest.fixture(scope="module")
def protocol(golden_dir):
    folder = golden_dir / "transformer_xl"
    configs = json.loads((folder / "authors.json").read_text(encoding="utf-8"))
    with np.load(folder / "evaluation.npz") as golden, np.load(folder / "authors.npz") as arrays:
        prefix = "base:w/"
        weights = {
            k.removeprefix("base:"): arrays[k] / np.float32(256)
            for k in arrays.files
            if k.startswith(prefix)
        }
        model = new_model(configs["base"])
        load(model, weights)
        return model, dict(golden)


@pytest.mark.parametrize(
    "name, segment_length, overrides",
    [
        ("cached_tgt1_mem8", 1, {"memory_length": 8}),
        ("cached_tgt8_mem16", 8, {"memory_length": 16}),
        ("cached_tgt8_mem9_same", 8, {"memory_length": 9, "same_length": True}),
        (
            "cached_tgt8_mem9_same_clamp",
            8,
            {"memory_length": 9, "same_length": True, "clamp_length": 6},
        ),
        ("full_cached_tgt12", 12, {"memory_length": 200}),
        ("full_single_pass", 200, {"memory_length": None}),
    ],
)
def test_the_authors_evaluation(name, segment_length, overrides, protocol):
    model, golden = protocol
    tokens = golden["tokens"]
    for batch_size in (1, 3):
        found = corpus_log_probs(
            model, tokens, segment_length, batch_size=batch_size, verbose=0, **overrides
        )
        np.testing.assert_allclose(-found, golden[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", ["sliding_window9", "sliding_window9_clamp"])
def test_the_authors_sliding_windows(name, protocol):
    model, golden = protocol
    if name.endswith("clamp"):
        config = {**model.get_config(), "clamp_length": 6}
        clamped = type(model).from_config(config)
        clamped.set_weights(model.get_weights())
        model = clamped
    for batch_size in (1, 64):
        found = sliding_log_probs(model, golden["tokens"], 9, batch_size, verbose=0)
        np.testing.assert_allclose(-found, golden[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "num_tokens, arguments", [(2, {}), (30, {"attend_to_empty_memory": True}), (97, {})]
)
def test_the_batch_size_changes_nothing(num_tokens, arguments):
    model = causal_model(30, memory_length=5, **arguments)
    tokens = np.random.default_rng(0).integers(0, 30, num_tokens)
    expected = corpus_log_probs(model, tokens, 4, batch_size=1, verbose=0)
    assert expected.shape == (num_tokens - 1,)
    for batch_size in (2, 5, 64):
        found = corpus_log_probs(model, tokens, 4, batch_size=batch_size, verbose=0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


def test_it_is_the_score_of_the_text():
    model = causal_model(30, memory_length=12)
    tokens = np.random.default_rng(0).integers(0, 30, 50)
    found = corpus_log_probs(model, tokens, 6, batch_size=3, verbose=0)
    scores = model.score([tokens], segment_length=6)
    np.testing.assert_allclose(found, scores.log_probs[0][1:], rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    "tokens, arguments, message",
    [
        ([3], {}, "at least 2 tokens"),
        ([[3, 4]], {}, "one row of at least 2 tokens"),
        ([3, 4], {"segment_length": 0}, "`segment_length` must be a positive"),
        ([3, 4], {"batch_size": 0}, "`batch_size` must be a positive"),
    ],
)
def test_bad_arguments(tokens, arguments, message):
    with pytest.raises(ValueError, match=message):
        corpus_log_probs(causal_model(), np.array(tokens), verbose=0, **arguments)


def test_a_single_row_reads_each_segment_once(rng, monkeypatch):
    model = causal_model(memory_length=9)
    calls = []

    def counted(*args):
        calls.append(args)
        return predict(*args)

    monkeypatch.setattr(corpus, "predict", counted)
    corpus_log_probs(model, rng.integers(0, 7, 33), 4, batch_size=1, verbose=0)
    assert len(calls) == 8

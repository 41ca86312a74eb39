import keras
import numpy as np
import pytest

from keras_xlnet.evaluation import Perplexity


@pytest.mark.parametrize("from_logits", [True, False])
def test_equals_its_definition_over_two_batches(rng, from_logits):
    tokens, weights = rng.integers(0, 7, (2, 3, 4)), rng.integers(0, 3, (2, 3, 4))
    logits = rng.normal(size=(2, 3, 4, 7))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    metric = Perplexity(from_logits)
    for batch in range(2):
        scores = logits[batch] if from_logits else probabilities[batch]
        metric.update_state(tokens[batch], scores, weights[batch])
    losses = -np.log(np.take_along_axis(probabilities, tokens[..., None], axis=-1))[..., 0]
    expected = np.exp(np.average(losses, weights=weights))
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("weighted", [None, "tokens", "rows"])
def test_tokens_of_batches_of_different_lengths_count_alike(weighted, rng):
    metric, losses, weights = Perplexity(), [], []
    for length in (2, 5):
        tokens, logits = rng.integers(0, 7, (3, length)), rng.normal(size=(3, length, 7))
        given = None
        if weighted:
            given = rng.integers(1, 4, (3, length) if weighted == "tokens" else (3,))
        metric.update_state(tokens, logits, given)
        log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        losses.append(-np.take_along_axis(log_probs, tokens[..., None], axis=-1).ravel())
        rows = np.ones(3) if given is None else given
        weights.append(np.broadcast_to(rows.reshape(3, -1), (3, length)).ravel())
    expected = np.exp(np.average(np.concatenate(losses), weights=np.concatenate(weights)))
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


def test_config_round_trip():
    metric = Perplexity(from_logits=False, name="ppl")
    copy = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert isinstance(copy, Perplexity) and copy.get_config() == metric.get_config()

import keras
import numpy as np
import pytest

from keras_xlnet.evaluation import BitsPerCharacter
from keras_xlnet.tokenizers import XLNetTokenizer


@pytest.mark.parametrize("from_logits", [True, False])
def test_equals_its_definition_over_two_batches(rng, from_logits):
    characters = [0, 1, 2, 3, 5, 8, 13]
    tokens, weights = rng.integers(0, 7, (2, 3, 4)), rng.integers(0, 3, (2, 3, 4))
    logits = rng.normal(size=(2, 3, 4, 7))
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    metric = BitsPerCharacter(characters, from_logits)
    for batch in range(2):
        scores = logits[batch] if from_logits else probabilities[batch]
        metric.update_state(tokens[batch], scores, weights[batch])
    bits = -np.log2(np.take_along_axis(probabilities, tokens[..., None], axis=-1))[..., 0]
    expected = (bits * weights).sum() / (np.take(characters, tokens) * weights).sum()
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


def test_without_weights_all_tokens_count():
    metric = BitsPerCharacter([2, 4])
    assert float(metric(np.array([0, 1]), np.zeros((2, 2)))) == pytest.approx(2 / 6)


def test_nothing_but_special_tokens_is_zero_bits():
    metric = BitsPerCharacter([0, 0])
    assert float(metric(np.array([0, 1]), np.zeros((2, 2)))) == 0


def test_counts_the_characters_of_a_tokenizer():
    texts = ["a rose is a rose"] * 9
    tokenizer = XLNetTokenizer.train(iter(texts), vocabulary_size=24)
    metric = BitsPerCharacter.of(tokenizer, name="bpc")
    # A space before the first word is part of SentencePiece's pieces.
    assert sum(metric.characters[i] for i in tokenizer(texts[0]).numpy()) == len(texts[0]) + 1
    assert metric.characters[:9] == [0] * 9 and metric.name == "bpc"


def test_config_round_trip():
    metric = BitsPerCharacter([1, 2, 3], from_logits=False, name="bpc")
    copy = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert isinstance(copy, BitsPerCharacter) and copy.get_config() == metric.get_config()


@pytest.mark.parametrize("characters", [[], [1, -1]])
def test_refuses_what_are_not_lengths(characters):
    with pytest.raises(ValueError, match="`characters` must hold"):
        BitsPerCharacter(characters)

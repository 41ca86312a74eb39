import sys
import types

import keras
import numpy as np
import pytest

from tests.examples import RESEARCH

sys.path.insert(0, str(RESEARCH / "pretraining"))
from cooccurrence import cooccurrence_embeddings, count_pairs, initialize_embeddings


class Records:
    """What the functions use of `TokenRecords`."""

    def __init__(self, shards, vocabulary_size):
        self.shards, self.vocabulary_size = shards, vocabulary_size

    def read(self, index):
        return types.SimpleNamespace(tokens=self.shards[index])


def test_pairs_count_by_distance(rng):
    shards = [rng.integers(0, 6, 40), rng.integers(0, 6, 30)]
    expected = np.zeros((6, 6))
    for tokens in shards:
        for i in range(len(tokens)):
            for distance, weight in ((1, 1), (2, 2 / 3), (3, 1 / 3)):
                if i + distance < len(tokens):
                    expected[tokens[i], tokens[i + distance]] += weight
    found = count_pairs(Records(shards, 6), num_tokens=10**9, window=3)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_reads_whole_shards_until_there_are_enough_tokens():
    shards = [np.array([0, 1]), np.array([1, 2]), np.array([2, 0])]
    found = count_pairs(Records(shards, 3), num_tokens=3, window=1)
    np.testing.assert_array_equal(found, [[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_tokens_in_the_same_contexts_are_alike(rng):
    # 2 and 3 stand between 4 and 5; 6 and 7 between 8 and 9. 0 and 1 do not occur.
    phrases = np.array([[4, 2, 5], [4, 3, 5], [8, 6, 9], [8, 7, 9]])
    tokens = phrases[rng.integers(0, 4, 2000)].reshape(-1)
    vectors = cooccurrence_embeddings(Records([tokens], 10), dim=4, window=1)
    assert vectors.shape == (10, 4) and vectors.dtype == np.float32
    assert vectors.std() == pytest.approx(1, rel=1e-4)
    np.testing.assert_allclose(vectors[:2], 0, atol=1e-5)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-6)
    similarity = unit @ unit.T
    assert similarity[2, 3] > 0.95 and similarity[6, 7] > 0.95
    assert abs(similarity[2, 6]) < 0.5 and abs(similarity[3, 7]) < 0.5


@pytest.mark.parametrize("size", [4, 20_001])
def test_refuses_other_sizes(size):
    with pytest.raises(ValueError, match=f"Received: {size}"):
        cooccurrence_embeddings(Records([], size), dim=4)


def test_tokens_that_do_not_occur_keep_their_weights(rng):
    before = rng.normal(size=(9, 4)).astype("float32")
    variable = keras.Variable(before)
    initialize_embeddings(variable, Records([rng.integers(3, 9, 500)], 9), deviation=0.5)
    after = keras.ops.convert_to_numpy(variable)
    np.testing.assert_array_equal(after[:3], before[:3])
    assert (np.abs(after[3:] - before[3:]) > 1e-3).any(axis=1).all()
    assert 0.2 < after[3:].std() < 1

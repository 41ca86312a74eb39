"""Scores of embeddings, beside SciPy's correlations and rankings by hand."""

import numpy as np
import pytest
from scipy import stats

from keras_xlnet.evaluation import retrieval_scores, similarity_scores
from keras_xlnet.preprocessing import RankedDocument


class Embedder:
    """Returns given vectors, and the documents of each query in a given order."""

    def __init__(self, vectors=None, orders=None):
        self.vectors, self.orders = vectors, orders

    def predict(self, pairs, batch_size, verbose):
        assert len(pairs) == len(self.vectors)
        return self.vectors

    def search(self, queries, corpus, top_k, batch_size, verbose):
        return [
            [RankedDocument(i, corpus[i], -float(place)) for place, i in enumerate(order[:top_k])]
            for order in self.orders
        ]


def unit(rng, *shape):
    vectors = rng.normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_correlations_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    vectors = unit(rng, 30, 2, 3)
    vectors[:8] = vectors[8:16]  # Equal cosines.
    cosines = (vectors[:, 0] * vectors[:, 1]).sum(axis=1)
    judged = np.round(cosines + rng.normal(size=30), 1)
    found = similarity_scores(Embedder(vectors), [("a", "b")] * 30, judged)
    assert found.spearman == pytest.approx(stats.spearmanr(cosines, judged)[0])
    assert found.pearson == pytest.approx(stats.pearsonr(cosines, judged)[0])
    assert "SimilarityScores(spearman=" in repr(found)


def test_equal_cosines_have_no_correlation():
    vectors = np.ones((3, 2, 1))
    assert similarity_scores(Embedder(vectors), ["ab"] * 3, [1, 2, 3]).spearman == 0


def test_retrieval_by_hand():
    embedder = Embedder(orders=[[2, 0, 1, 3], [0, 1, 2, 3], [3, 2, 1, 0]])
    relevance = [{0: 1.0, 3: 1.0}, {}, {3: 2.0}]
    corpus = ["a", "b", "c", "d"]
    found = retrieval_scores(embedder, ["x", "y", "z"], corpus, relevance, k=[1, 10])
    # The second query has no relevant text, and does not count.
    assert found.num_queries == 2
    assert found.map == pytest.approx(((1 / 2 + 2 / 4) / 2 + 1) / 2)
    assert found.mrr == pytest.approx((1 / 2 + 1) / 2)
    gain = (1 / np.log2(3) + 1 / np.log2(5)) / (1 + 1 / np.log2(3))
    assert found.ndcg[10] == pytest.approx((gain + 1) / 2)
    # Only two are searched for: of the first query, one of two is found.
    found = retrieval_scores(embedder, ["x", "y", "z"], corpus, relevance, top_k=2)
    assert found.map == pytest.approx((1 / 4 + 1) / 2)


def test_bad_input():
    embedder = Embedder(np.ones((2, 2, 1)), [[0], [0]])
    with pytest.raises(ValueError, match="`similarities` must have a number for each of 2 pairs"):
        similarity_scores(embedder, ["ab"] * 2, [1, 2, 3])
    for numbers in ([1, 1], [1, np.nan]):
        with pytest.raises(ValueError, match="`similarities` must be finite.*not all equal"):
            similarity_scores(embedder, ["ab"] * 2, numbers)
    with pytest.raises(ValueError, match="`relevance` must have a dict for each of 2 queries"):
        retrieval_scores(embedder, ["a", "b"], ["c"], [{}])


def test_rounding_is_not_ranked(rng):
    vectors = np.repeat(unit(rng, 30, 1, 16).astype("float32"), 2, axis=1)
    vectors[:, 1] *= 1 + rng.choice([-1e-7, 0, 1e-7], size=(30, 16)).astype("float32")
    found = similarity_scores(Embedder(vectors), [("a", "a")] * 30, rng.normal(size=30))
    assert (found.spearman, found.pearson) == (0, 0)


@pytest.mark.parametrize("shape", [(3, 4), (3, 3, 4)])
def test_pairs_are_two_texts(shape, rng):
    with pytest.raises(ValueError, match="`pairs` must be rows"):
        similarity_scores(Embedder(unit(rng, *shape)), ["ab"] * 3, [1, 2, 3])


def test_vectors_without_numbers_are_refused():
    vectors = np.ones((3, 2, 1))
    vectors[1] = np.nan
    with pytest.raises(ValueError, match="finite numbers. Received in row 1"):
        similarity_scores(Embedder(vectors), ["ab"] * 3, [1, 2, 3])


def test_keys_of_json_are_indices():
    embedder = Embedder(orders=[[1, 0], [0, 1]])
    expected = retrieval_scores(embedder, "xy", ["a", "b"], [{0: 1.0}, {0: 1.0, 1: 2.0}])
    found = retrieval_scores(embedder, "xy", ["a", "b"], [{"0": 1}, {np.int64(0): 1, "1": 2}])
    assert found == expected and found.map == 0.75
    for judged in ({"zero": 1}, {2: 1}, {-1: 1}, {0: 1, "0": 1}, {0.5: 1}, {None: 1}, [0]):
        with pytest.raises(ValueError, match="`relevance` must.*query 1"):
            retrieval_scores(embedder, "xy", ["a", "b"], [{0: 1}, judged])
    with pytest.raises(ValueError, match="must be a number"):
        retrieval_scores(embedder, "xy", ["a", "b"], [{0: 1}, {0: np.nan}])

"""Losses of lists of documents equal their slow twins."""

import numpy as np
import pytest
from keras import ops
from scipy.special import log_softmax

from keras_xlnet.ops import list_softmax_loss, pairwise_hinge_loss

RELEVANCE = np.array([[2, 0, 1, 0], [1, 0, -1, -1], [0, 0, 0, -1], [3, 3, -1, -1]], "float32")


@pytest.fixture(scope="module")
def scores():
    return np.random.default_rng(0).normal(size=RELEVANCE.shape).astype("float32")


def softmax_twin(relevance, scores):
    keep = relevance >= 0
    relevance, scores = relevance[keep], scores[keep]
    if not relevance.sum():
        return 0.0
    return -(relevance / relevance.sum() * log_softmax(scores)).sum()


def hinge_twin(relevance, scores, margin):
    found = [
        max(0, margin - (scores[i] - scores[j]))
        for i in range(len(scores))
        for j in range(len(scores))
        if relevance[i] > relevance[j] >= 0
    ]
    return np.mean(found) if found else 0.0


def test_softmax_over_the_list(scores):
    expected = [softmax_twin(*row) for row in zip(RELEVANCE, scores, strict=True)]
    np.testing.assert_allclose(list_softmax_loss(RELEVANCE, scores), expected, atol=1e-6)


@pytest.mark.parametrize("margin", [1.0, 0.2])
def test_pairwise_hinge(scores, margin):
    expected = [hinge_twin(*row, margin) for row in zip(RELEVANCE, scores, strict=True)]
    np.testing.assert_allclose(pairwise_hinge_loss(RELEVANCE, scores, margin), expected, atol=1e-6)


@pytest.mark.parametrize("loss", [list_softmax_loss, pairwise_hinge_loss])
def test_missing_documents_and_a_constant_do_not_matter(scores, loss):
    changed = np.where(RELEVANCE < 0, 50.0, scores).astype("float32")
    np.testing.assert_allclose(loss(RELEVANCE, changed), loss(RELEVANCE, scores), atol=1e-5)
    moved = loss(RELEVANCE, ops.convert_to_tensor(scores + 3))
    np.testing.assert_allclose(moved, loss(RELEVANCE, scores), atol=1e-5)

import sys

import numpy as np
import pytest
from sklearn import metrics

from tests.examples import RESEARCH

sys.path.insert(0, str(RESEARCH / "tasks"))
import tfidf


def accuracy(labels, predictions):
    return metrics.accuracy_score(labels, predictions)


def test_chooses_what_cross_validation_says(rng):
    # The words are noise; the class is in an ending, which only parts of words show.
    words = ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(60)]
    labels = np.array([0, 1] * 30)
    endings = ("zing", "xer")
    texts = np.array(
        [word + endings[k] for word, k in zip(words, labels, strict=True)], dtype=object
    )
    model = tfidf.fit_tuned(texts, labels, accuracy)
    unseen = np.array(["hhhhzing", "hhhhxer"], dtype=object)
    np.testing.assert_array_equal(model.predict(unseen), [0, 1])
    assert getattr(model["features"], "analyzer", None) != "word"


def test_the_score_decides_about_the_settings(rng):
    texts = np.array([" ".join(rng.choice(list("abcdefgh"), 3)) for _ in range(60)], dtype=object)
    labels = (np.arange(60) % 5 == 0).astype(int)
    few, many = (
        tfidf.fit_tuned(texts, labels, lambda labels, found, sign=sign: sign * found.mean())
        for sign in (-1, 1)
    )
    assert few["model"].class_weight is None and many["model"].class_weight == "balanced"
    assert few.predict(texts).mean() < many.predict(texts).mean()


@pytest.mark.parametrize("blocks, columns", [("overlap", 10), ("all", None)])
def test_features_of_pairs(blocks, columns):
    pairs = np.array(
        [["a cat sat", "a cat sat"], ["a cat sat", "two dogs ran"], ["it is 5", "it is not 6"]],
        dtype=object,
    )
    features = tfidf.PairFeatures(blocks)
    fitted = features.fit_transform(pairs)
    np.testing.assert_allclose(fitted.toarray(), features.transform(pairs).toarray(), atol=1e-12)
    assert columns in (None, fitted.shape[1])
    cosine = fitted[:, 0].toarray().ravel()
    assert cosine.argmax() == 0 and cosine.argmin() == 1


def test_counts_of_overlap():
    same = tfidf.count_overlap("It is 5.", "it is 5")
    assert same[:3] == [1.0, 1.0, 1.0] and same[3] == same[4] == 0 and same[6:] == [1.0, 0.0]
    other = tfidf.count_overlap("He is 5", "He is not 6 or so")
    assert other[:3] == [2 / 7, 2 / 3, 2 / 6] and other[3] < 0 < other[4]
    assert other[6:] == [0.0, 1.0]


def test_numbers_of_pairs_are_predicted(rng):
    words = np.array(["red", "green", "blue", "cyan", "pink", "grey", "gold", "teal"])
    first = rng.choice(words, (80, 4))
    common = rng.integers(0, 5, 80)
    second = np.where(np.arange(4) < common[:, None], first, "none")
    pairs = np.array(
        [[" ".join(a), " ".join(b)] for a, b in zip(first, second, strict=True)], dtype=object
    )
    model = tfidf.fit_tuned(
        pairs[:60], common[:60].astype("float32"), lambda y, p: -np.mean((y - p) ** 2)
    )
    error = np.abs(model.predict(pairs[60:]) - common[60:]).mean()
    assert error < 0.5 * np.abs(common[60:] - common.mean()).mean()

"""TF-IDF with a linear model, tuned: the baseline of results.py and task_table.py.

Features, regularization and class weights are chosen by cross-validation on the given examples.
"""

import collections
import re

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler

FOLDS = 3
TEXT_GRID = {
    "C": [1.0, 10.0, 100.0],
    "class_weight": [None, "balanced"],
    # Far faster with more features than examples; it does not converge for dense features of pairs.
    "dual": [True],
}
PAIR_GRID = {"C": [0.01, 0.1, 1.0, 10.0]}
RIDGE_GRID = {"alpha": [0.3, 1.0, 3.0, 10.0, 30.0]}
NEGATIONS = {"no", "not", "never", "none", "nothing", "t", "without"}


def fit_tuned(texts, labels, score, seed=0):
    """Fits TF-IDF with a linear model, and chooses its settings by cross-validation.

    Args:
        texts: Array of str, `(examples,)`, or `(examples, 2)` for pairs.
        labels: Array of ints for classes (logistic regression), or of floats (ridge regression).
        score: Function of labels and predictions to maximize.
        seed: Int, seed of the folds.

    Returns:
        A fitted scikit-learn `Pipeline`.
    """
    is_classes = np.issubdtype(labels.dtype, np.integer)
    features = text_features() if texts.ndim == 1 else pair_features()
    grid = (TEXT_GRID if texts.ndim == 1 else PAIR_GRID) if is_classes else RIDGE_GRID
    folds = (StratifiedKFold if is_classes else KFold)(FOLDS, shuffle=True, random_state=seed)
    scores = collections.defaultdict(list)
    for train, test in folds.split(texts, labels):
        for name, extractor in features.items():
            # Extracted once for all settings of the linear model.
            extractor = clone(extractor)
            train_x = extractor.fit_transform(texts[train])
            test_x = extractor.transform(texts[test])
            for i, settings in enumerate(ParameterGrid(grid)):
                model = linear_model(labels, settings).fit(train_x, labels[train])
                scores[name, i].append(score(labels[test], model.predict(test_x)))
    name, i = max(scores, key=lambda key: np.mean(scores[key]))
    model = linear_model(labels, ParameterGrid(grid)[i])
    return Pipeline([("features", features[name]), ("model", model)]).fit(texts, labels)


def linear_model(labels, settings):
    """Returns an unfitted logistic or ridge regression."""
    if not np.issubdtype(labels.dtype, np.integer):
        return Ridge(**settings)
    model = LogisticRegression(solver="liblinear", max_iter=2000, random_state=0, **settings)
    # This solver supports only two classes.
    return model if len(np.unique(labels)) <= 2 else OneVsRestClassifier(model)


def text_features():
    """Returns the features to choose from for single texts, by name."""
    return {
        "words": words(),
        "characters": characters(),
        "both": FeatureUnion([("words", words()), ("characters", characters())]),
    }


def pair_features():
    """Returns the features to choose from for pairs of texts, by name."""
    return {blocks: PairFeatures(blocks) for blocks in ("overlap", "all")}


def words():
    # The default pattern leaves out words of one letter, such as "I".
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")


def characters():
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)


class PairFeatures(TransformerMixin, BaseEstimator):
    """Features of pairs of texts.

    Args:
        blocks: `"overlap"`: similarities of the two texts. `"all"`: also the TF-IDF of each text,
            their product and their absolute difference.
    """

    def __init__(self, blocks="all"):
        self.blocks = blocks

    def fit(self, pairs, labels=None):
        self.fit_transform(pairs)
        return self

    def fit_transform(self, pairs, labels=None):
        texts = pairs.T.ravel()  # All first texts, then all second ones.
        self.words_, self.characters_, self.scaler_ = words(), characters(), StandardScaler()
        matrices = [v.fit_transform(texts) for v in (self.words_, self.characters_)]
        self.scaler_.fit(_overlap(pairs, matrices))
        return self._features(pairs, matrices)

    def transform(self, pairs):
        texts = pairs.T.ravel()
        return self._features(pairs, [v.transform(texts) for v in (self.words_, self.characters_)])

    def _features(self, pairs, matrices):
        blocks = [sparse.csr_matrix(self.scaler_.transform(_overlap(pairs, matrices)))]
        if self.blocks == "all":
            a, b = _halves(matrices[0])
            blocks += [a, b, a.multiply(b), abs(a - b)]
        return sparse.hstack(blocks, format="csr")


def _overlap(pairs, matrices):
    cosines = [np.asarray(a.multiply(b).sum(1)) for a, b in map(_halves, matrices)]
    return np.hstack([*cosines, [count_overlap(*pair) for pair in pairs]])


def _halves(matrix):
    half = matrix.shape[0] // 2
    return matrix[:half], matrix[half:]


def count_overlap(a, b):
    """Returns numbers that compare the words, lengths and numerals of two texts."""
    a, b = (re.findall(r"\w+", text.lower()) for text in (a, b))
    set_a, set_b = set(a), set(b)
    common, either = set_a & set_b, set_a | set_b
    numbers = [{word for word in words if word.isdigit()} for words in (set_a, set_b)]
    length_a, length_b = len(a) + 1, len(b) + 1
    return [
        len(common) / max(1, len(either)),
        len(common) / max(1, len(set_a)),
        len(common) / max(1, len(set_b)),
        np.log(length_a / length_b),
        abs(np.log(length_a / length_b)),
        np.log(length_a + length_b),
        float(numbers[0] == numbers[1]),
        float(bool(set_a & NEGATIONS) != bool(set_b & NEGATIONS)),
    ]

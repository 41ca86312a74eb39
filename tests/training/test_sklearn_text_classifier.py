"""A classifier of strings in scikit-learn: folds, pipelines, searches."""

import keras
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.preprocessing.labels import Classes, learn_class_names
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.training import SKLearnTextClassifier

WORDS = {"spam": "win a free prize now call", "ham": "see you at lunch my dear"}


def texts_of(labels):
    rng = np.random.default_rng(1)
    return [" ".join(rng.choice(WORDS[label].split(), 5)) for label in labels]


LABELS = ["spam", "ham", "ham"] * 16
TEXTS = texts_of(LABELS)


@pytest.fixture(scope="module")
def make():
    tokenizer = XLNetTokenizer.train(iter(TEXTS), vocabulary_size=40)

    def make(X, y, hidden_dim=16):  # noqa: N803
        keras.utils.set_random_seed(2)
        backbone = XLNetBackbone(40, 1, 2, hidden_dim, 32, kernel_initializer="glorot_normal")
        model = XLNetTextClassifier(
            backbone, len({*y}), XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24)
        )
        model.compile(keras.optimizers.Adam(0.01))
        return model

    return make


@pytest.fixture
def classifier(make):
    return SKLearnTextClassifier(make, fit_kwargs={"epochs": 3, "verbose": 0, "batch_size": 8})


def test_folds_learn(classifier):
    scores = cross_val_score(classifier, TEXTS, LABELS, cv=3, error_score="raise")
    assert scores.shape == (3,) and scores.min() > 0.8


def test_probabilities_are_in_the_order_of_classes(classifier):
    classifier.fit(TEXTS, LABELS)
    assert classifier.classes_.tolist() == ["ham", "spam"]
    probabilities = classifier.predict_proba(TEXTS)
    expected = classifier.classes_[probabilities.argmax(axis=1)]
    assert classifier.predict(TEXTS).tolist() == expected.tolist()
    assert classifier.score(TEXTS, LABELS) == np.mean(expected == np.array(LABELS))
    np.testing.assert_array_equal(classifier.decision_function(TEXTS), probabilities[:, 1])
    aucs = cross_val_score(classifier, TEXTS, LABELS, cv=2, scoring="roc_auc")
    assert aucs.min() > 0.8


def test_integers_as_labels(classifier):
    found = classifier.fit(np.array(TEXTS), [0, 1, 2] * 16).predict(TEXTS[:5])
    assert found.dtype.kind == "i" and {*found} <= {0, 1, 2}
    assert classifier.decision_function(TEXTS[:5]).shape == (5, 3)


def test_clone_keeps_all_arguments(classifier):
    assert clone(classifier).get_params() == classifier.get_params()
    assert clone(classifier.fit(TEXTS, LABELS)).fit_kwargs["epochs"] == 3


def test_warm_start_goes_on(make):
    classifier = SKLearnTextClassifier(make, warm_start=True, fit_kwargs={"verbose": 0})
    model = classifier.fit(TEXTS, LABELS).model_
    assert classifier.fit(TEXTS, LABELS).model_ is model
    assert len(classifier.fit(TEXTS, LABELS, epochs=2).history_.epoch) == 2


def test_pipelines_and_searches(classifier):
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, classifier)
    shouted = [text.upper() for text in TEXTS]
    assert pipeline.fit(shouted, LABELS).score(shouted, LABELS) > 0.8
    search = GridSearchCV(classifier, {"model_kwargs": [{"hidden_dim": 8}]}, cv=2)
    search.fit(TEXTS, LABELS)
    assert search.best_estimator_.model_.backbone.hidden_dim == 8


def test_what_is_refused(classifier, make):
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)
    with pytest.raises(TypeError, match="`model` must be a callable"):
        SKLearnTextClassifier(make(TEXTS, LABELS))


# === Labels, with a model that is trained in no time ===


class Words:
    """A text classifier whose logits are the mean class of the words that it has read."""

    threshold = 0.5

    def __init__(self, num_classes=2, class_names=None, activation="softmax"):
        self.num_classes, self.class_names, self.activation = num_classes, class_names, activation

    @property
    def classes(self):
        return Classes(self.num_classes, self.class_names, self.activation)

    def fit(self, x, y, sample_weight=None, class_weight=None, validation_data=None, verbose=0):
        if self.class_names is None and isinstance(y[0], str):
            self.class_names = learn_class_names(y, self.num_classes)
        y = self.classes.encode(y)
        targets = np.eye(self.num_classes)[y] if self.activation == "softmax" else np.array(y)
        self.weights_of_classes = class_weight
        self.held_out = validation_data and self.classes.encode(validation_data[1])
        self.words = {}
        for text, target in zip(x, targets, strict=True):
            for word in text.split():
                self.words.setdefault(word, []).append(target)
        return "history"

    def predict(self, x, verbose=0):
        logits = [sum(np.mean(self.words[word], 0) for word in text.split()) for text in x]
        if self.activation == "softmax":
            return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return 1 / (1 + np.exp(2.5 - np.array(logits)))


def quick(X, y, **arguments):  # noqa: N803
    return Words(**arguments)


@pytest.mark.parametrize(
    "arguments, names",
    [
        ({"class_names": ["spam", "ham"]}, {}),
        ({}, {}),
        ({}, {"ham": -1, "spam": 1}),
        ({}, {"ham": 10, "spam": 2}),
        ({}, {"ham": False, "spam": True}),
        ({"class_names": ["no", "yes"]}, {"ham": 0, "spam": 1}),
        ({"class_names": ["7", "3"]}, {"ham": 3, "spam": 7}),
        ({"activation": "sigmoid", "num_classes": 1}, {"ham": 1, "spam": 2}),
    ],
)
def test_labels_of_any_kind_are_ranked_right(arguments, names):
    labels = np.array([names.get(label, label) for label in LABELS])
    classifier = SKLearnTextClassifier(quick, model_kwargs=arguments)
    for scoring in ("roc_auc", "neg_log_loss", "accuracy", "f1_macro"):
        found = cross_val_score(
            classifier, TEXTS, labels, cv=2, scoring=scoring, error_score="raise"
        )
        assert found.min() > (-0.5 if scoring == "neg_log_loss" else 0.9)
    fitted = classifier.fit(np.array(TEXTS), labels)
    assert fitted.classes_.tolist() == sorted({*labels.tolist()})
    probabilities = fitted.predict_proba(TEXTS)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    expected = fitted.classes_[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(TEXTS), expected)


def test_three_classes_and_arguments_by_label():
    labels = np.array([{"spam": 5, "ham": -3}[label] for label in LABELS])
    labels[2::3] = 40
    classifier = SKLearnTextClassifier(quick, model_kwargs={"num_classes": 3})
    scores = cross_val_score(
        classifier, TEXTS, labels, cv=2, scoring="roc_auc_ovr", error_score="raise"
    )
    assert scores.min() > 0.5
    classifier.fit(
        TEXTS,
        labels,
        sample_weight=np.ones(len(labels)),
        class_weight={5: 9.0, -3: 0.1},
        validation_data=(TEXTS[:3], labels[:3]),
    )
    assert classifier.model_.weights_of_classes == {1: 9.0, 0: 0.1}
    assert classifier.model_.held_out.tolist() == [1, 0, 2]
    with pytest.raises(ValueError, match="must be labels in"):
        classifier.fit(TEXTS, labels, validation_data=(TEXTS[:1], [7]))


def test_several_labels_of_a_text():
    labels = np.array([[label == "spam", label == "ham"] for label in LABELS]).astype(int)
    classifier = SKLearnTextClassifier(quick, model_kwargs={"activation": "sigmoid"})
    for scoring in ("roc_auc", "f1_macro", "accuracy"):
        found = cross_val_score(
            classifier, TEXTS, labels, cv=2, scoring=scoring, error_score="raise"
        )
        assert found.min() > 0.9
    assert classifier.fit(TEXTS, labels).predict(TEXTS[:3]).shape == (3, 2)
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        classifier.fit(TEXTS[:2], [["a"], ["a", "b"]])


@pytest.mark.parametrize(
    "arguments, labels, message",
    [
        ({"num_classes": 3}, [1, 5], "`y` must have 3 different labels"),
        ({"class_names": ["a", "b"]}, [1, 2], "names in class_names=.*indices from 0 to 1"),
        ({"activation": "linear"}, [0, 1], "`model` must return an XLNetTextClassifier"),
        ({"class_names": ["a", "b"]}, ["a", "c"], "`y` must be names in"),
    ],
)
def test_labels_that_do_not_fit(arguments, labels, message):
    classifier = SKLearnTextClassifier(quick, model_kwargs=arguments)
    with pytest.raises(ValueError, match=message):
        classifier.fit(["win a prize", "see you"], labels)
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)

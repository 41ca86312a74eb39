"""A classifier of strings in scikit-learn: folds, pipelines, searches."""

import keras
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
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

    def make(X, y, hidden_dim=16, num_classes=None, **arguments):  # noqa: N803
        keras.utils.set_random_seed(2)
        backbone = XLNetBackbone(40, 1, 2, hidden_dim, 32, kernel_initializer="glorot_normal")
        model = XLNetTextClassifier(
            backbone,
            num_classes or len({*y}),
            XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24),
            **arguments,
        )
        # A fold has few steps: to trace them takes longer.
        model.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
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
    search = GridSearchCV(
        classifier, {"model_kwargs": [{"hidden_dim": 8}, {"hidden_dim": 16}]}, cv=2
    )
    search.fit(TEXTS, LABELS)
    assert search.best_estimator_.model_.backbone.hidden_dim in (8, 16)


def test_what_is_refused(classifier, make):
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)
    with pytest.raises(TypeError, match="`model` must be a callable"):
        SKLearnTextClassifier(make(TEXTS, LABELS))


@pytest.mark.parametrize(
    "arguments, names",
    [
        ({"class_names": ["spam", "ham"]}, {}),
        ({}, {"ham": -1, "spam": 1}),
        ({}, {"ham": 10, "spam": 2}),
        ({}, {"ham": False, "spam": True}),
        ({"class_names": ["no", "yes"]}, {"ham": 0, "spam": 1}),
        ({"class_names": ["7", "3"]}, {"ham": 3, "spam": 7}),
        ({"activation": "sigmoid", "num_classes": 1}, {"ham": 1, "spam": 2}),
    ],
)
def test_labels_of_any_kind_are_ranked_right(make, arguments, names):
    labels = np.array([names.get(label, label) for label in LABELS])
    fit_kwargs = {"epochs": 3, "verbose": 0, "batch_size": 8}
    classifier = SKLearnTextClassifier(make, model_kwargs=arguments, fit_kwargs=fit_kwargs)
    fitted = classifier.fit(np.array(TEXTS), labels)
    assert get_scorer("roc_auc")(fitted, TEXTS, labels) > 0.9
    assert get_scorer("neg_log_loss")(fitted, TEXTS, labels) > -0.5
    assert fitted.score(TEXTS, labels) > 0.8
    assert fitted.classes_.tolist() == sorted({*labels.tolist()})
    probabilities = fitted.predict_proba(TEXTS)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    expected = fitted.classes_[probabilities.argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(TEXTS), expected)


def test_three_classes_and_weights_by_label(make):
    labels = np.array([{"spam": 5, "ham": -3}[label] for label in LABELS])
    labels[2::3] = 40
    classifier = SKLearnTextClassifier(make, fit_kwargs={"epochs": 2, "verbose": 0})
    found = cross_val_score(
        classifier, TEXTS, labels, cv=2, scoring="roc_auc_ovr", error_score="raise"
    )
    assert found.min() > 0.5
    weighted = clone(classifier)
    weighted.fit(
        TEXTS,
        labels,
        sample_weight=np.ones(len(labels)),
        class_weight={5: 9.0, -3: 0.01, 40: 0.01},
        validation_data=(TEXTS[:6], labels[:6]),
    )
    assert (
        weighted.predict_proba(TEXTS)[:, 1].mean() > 0.5 and "val_loss" in weighted.history_.history
    )


def test_several_labels_of_a_text(make):
    labels = np.array([[label == "spam", label == "ham"] for label in LABELS]).astype(int)
    classifier = SKLearnTextClassifier(
        make,
        model_kwargs={"activation": "sigmoid", "num_classes": 2},
        fit_kwargs={"epochs": 4, "verbose": 0, "batch_size": 8},
    )
    classifier.fit(TEXTS, labels)
    for scoring in ("roc_auc", "f1_macro"):
        assert get_scorer(scoring)(classifier, TEXTS, labels) > 0.8
    assert classifier.predict(TEXTS[:3]).shape == (3, 2)
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        classifier.fit(TEXTS[:2], [["a"], ["a", "b"]])


@pytest.mark.parametrize(
    "arguments, labels, message",
    [
        ({"num_classes": 3}, [1, 5], "`y` must have 3 different labels"),
        ({"class_names": ["a", "b"]}, [1, 2], "names in class_names=.*indices from 0 to 1"),
        ({"activation": "linear"}, [0, 1], "`model` must return an XLNetTextClassifier"),
    ],
)
def test_labels_that_do_not_fit(make, arguments, labels, message):
    classifier = SKLearnTextClassifier(make, model_kwargs=arguments, fit_kwargs={"verbose": 0})
    with pytest.raises(ValueError, match=message):
        classifier.fit(["win a prize", "see you"], labels)
    with pytest.raises(NotFittedError):
        classifier.predict(TEXTS)

"""Exports of models that read texts or compare them: what clients get is what Python gives."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import models, preprocessing
from keras_xlnet.serving import export
from tests.serving.conftest import TEXTS

QUERIES = {
    "query": ["a prize", "lunch at noon", "call"],
    "documents": [
        ["win a free prize now", "see you at lunch", "call " * 40],
        ["see you at six", "lunch"],
        ["12,345 pounds"],
    ],
}
STORIES = {
    "text": ["It rained all day.", "He won."],
    "question": ["The street is _, not ___.", "Who won?"],
    "choices": [["wet", "dry", "r\u00e9d"], ["he", "she"]],
}


@pytest.fixture(scope="module")
def backbone():
    keras.utils.set_random_seed(6)
    initializer = keras.initializers.RandomNormal(0, 0.5)
    return models.XLNetBackbone(200, 1, 2, 16, 32, kernel_initializer=initializer)


def served(model, directory, *, signature="serving_default", **inputs):
    if not (directory / "1").exists():
        export(model, directory / "1")
    loaded = tf.saved_model.load(directory / "1")
    outputs = loaded.signatures[signature](**{k: tf.constant(v) for k, v in inputs.items()})
    return {name: value.numpy() for name, value in outputs.items()}


def padded(rows):
    longest = max(map(len, rows))
    return [row + [""] * (longest - len(row)) for row in rows]


def test_multi_task(backbone, tokenizer, tmp_path):
    preprocessor = preprocessing.XLNetTextClassifierPreprocessor(tokenizer, 24)
    names = ["ham", "spam", "eggs"]
    topic = models.XLNetTextClassifier(backbone, 3, preprocessor, class_names=names)
    marks = models.XLNetTextRegressor(backbone, preprocessor, num_outputs=2)
    model = models.MultiTask({"topic": topic, "marks": marks})
    found = served(model, tmp_path, text=TEXTS)
    assert sorted(found) == ["marks_values", "topic_label", "topic_probabilities"]
    expected = model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(found["marks_values"], expected["marks"], atol=1e-5)
    np.testing.assert_allclose(found["topic_probabilities"], expected["topic"], atol=1e-5)
    labels = [one.label.encode() for one in topic.classify(TEXTS, verbose=0)]
    assert found["topic_label"].tolist() == labels
    # Each task alone is the same in its own export.
    alone = served(model.tasks["topic"], tmp_path / "topic", text=TEXTS)
    np.testing.assert_allclose(alone["probabilities"], expected["topic"], atol=1e-5)


def test_regressor(backbone, tokenizer, tmp_path):
    preprocessor = preprocessing.XLNetTextRegressorPreprocessor(tokenizer, 24)
    model = models.XLNetTextRegressor(backbone, preprocessor)
    found = served(model, tmp_path, text=TEXTS)
    np.testing.assert_allclose(found["values"], model.predict(TEXTS, verbose=0), atol=1e-6)


def test_embedder(backbone, tokenizer, tmp_path):
    preprocessor = preprocessing.XLNetTextEmbedderPreprocessor(tokenizer, 24)
    model = models.XLNetTextEmbedder(backbone, preprocessor)
    found = served(model, tmp_path, text=TEXTS)
    np.testing.assert_allclose(found["embedding"], model.embed(TEXTS, verbose=0), atol=1e-6)


def test_ranker(backbone, tokenizer, tmp_path):
    preprocessor = preprocessing.XLNetRankerPreprocessor(tokenizer, 24)
    model = models.XLNetRanker(backbone, preprocessor)
    documents = padded(QUERIES["documents"])
    found = served(model, tmp_path, query=QUERIES["query"], documents=documents)
    for row, expected in enumerate(model.rank(QUERIES, verbose=0)):
        order = found["order"][row, : len(expected)]
        assert order.tolist() == [document.index for document in expected]
        scores = [document.score for document in expected]
        np.testing.assert_allclose(found["scores"][row, order], scores, atol=1e-6)


@pytest.fixture(scope="module")
def chooser(backbone, tokenizer, tmp_path_factory):
    preprocessor = preprocessing.XLNetMultipleChoicePreprocessor(tokenizer, 32, 12)
    return models.XLNetMultipleChoice(backbone, preprocessor), tmp_path_factory.mktemp("chooser")


@pytest.mark.parametrize("has_question", [True, False])
def test_multiple_choice(chooser, has_question):
    model, directory = chooser
    stories = {key: STORIES[key] for key in STORIES if has_question or key != "question"}
    inputs = {**stories, "choices": padded(STORIES["choices"])}
    signature = "serving_question" if has_question else "serving_default"
    found = served(model, directory, signature=signature, **inputs)
    expected = model.choose(stories, verbose=0)
    assert [choice.decode() for choice in found["choice"]] == [x.text for x in expected]
    assert found["index"].tolist() == [x.index for x in expected]
    for row, choice in enumerate(expected):
        probabilities = found["probabilities"][row, : len(choice.scores)]
        np.testing.assert_allclose(probabilities, choice.scores, atol=1e-6)
    assert found["probabilities"][1, 2] == 0

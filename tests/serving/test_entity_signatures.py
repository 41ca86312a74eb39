"""Exports of token classifiers: entities and tags are those of `find_entities` and `tag`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetBackbone, XLNetTokenClassifier
from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
from keras_xlnet.serving import export
from tests.serving.conftest import TEXTS

NAMES = ["O", "B-person", "I-person", "B-place", "I-place"]
# Some do not fit into 16 tokens. One has no words, and one ends with spaces.
SENTENCES = [text for text in TEXTS if isinstance(text, str)] + [
    "Ann Lee sees r\u00e9sum\u00e9s \U0001f600, 12,345 pounds; and that's \u4f60\u597d at home. "
    * 3,
    "x" * 200,
    "one word ",
]


def make(preprocessor, class_names, seed=6):
    keras.utils.set_random_seed(seed)
    initializer = keras.initializers.RandomNormal(0, 0.5)
    backbone = XLNetBackbone(200, 1, 2, 16, 32, kernel_initializer=initializer)
    return XLNetTokenClassifier(
        backbone,
        len(class_names),
        XLNetTokenClassifierPreprocessor(preprocessor.tokenizer, sequence_length=16),
        class_names=class_names,
    )


@pytest.fixture(scope="module")
def entities(preprocessor, tmp_path_factory):
    """A model that finds entities, and its SavedModel."""
    model = make(preprocessor, NAMES)
    path = export(model, tmp_path_factory.mktemp("entities") / "1")
    return model, tf.saved_model.load(path).signatures


def outputs_of(signature, **inputs):
    outputs = signature(**{name: tf.constant(value) for name, value in inputs.items()})
    return {name: value.numpy() for name, value in outputs.items()}


def check_entities(outputs, row, expected):
    count = len(expected)
    assert outputs["num_entities"][row] == count
    for name in ("type", "text"):
        found = [value.decode() for value in outputs[f"entity_{name}"][row, :count]]
        assert found == [getattr(entity, name) for entity in expected]
    for name in ("start", "end"):
        found = outputs[f"entity_{name}"][row, :count].tolist()
        assert found == [getattr(entity, name) for entity in expected]
    scores = [entity.score for entity in expected]
    np.testing.assert_allclose(outputs["entity_score"][row, :count], scores, atol=1e-6)


def test_entities_of_texts(entities):
    model, signatures = entities
    outputs = outputs_of(signatures["serving_default"], text=SENTENCES)
    found = model.find_entities([text or "." for text in SENTENCES], verbose=0)
    expected = [found[row] if text else [] for row, text in enumerate(SENTENCES)]
    assert sum(map(len, expected)) > 20
    for row, of_row in enumerate(expected):
        check_entities(outputs, row, of_row)
        # The rest of a row says nothing.
        assert not any(outputs["entity_type"][row, len(of_row) :])
        assert not outputs["entity_score"][row, len(of_row) :].any()


def test_one_text_is_read_as_among_others(entities):
    model, signatures = entities
    for text in SENTENCES[-3:]:
        outputs = outputs_of(signatures["serving_default"], text=[text])
        check_entities(outputs, 0, model.find_entities([text], verbose=0)[0])


def test_only_empty_texts_have_no_entities(entities):
    outputs = outputs_of(entities[1]["serving_default"], text=["", "   "])
    assert outputs["num_entities"].tolist() == [0, 0]
    assert outputs["entity_text"].shape[0] == 2


def test_tags_of_words(entities):
    model, signatures = entities
    sentences = [["Ann", "sees", "r\u00e9sum\u00e9s"], ["home"], ["a", "very", "long"] * 12]
    longest = max(map(len, sentences))
    # A column more, as clients may send.
    padded = [words + [""] * (longest + 1 - len(words)) for words in sentences]
    outputs = outputs_of(signatures["serving_words"], words=padded)
    assert outputs["tag"].shape == (3, longest + 1)
    for row, expected in enumerate(model.tag(sentences, verbose=0)):
        found = [tag.decode() for tag in outputs["tag"][row]]
        assert found == expected + [""] * (longest + 1 - len(expected))
        assert (outputs["tag_probability"][row, : len(expected)] > 0).all()


def test_tokens_are_read_as_by_predict(entities):
    model, signatures = entities
    features, _ = model.preprocessor.windows(tf.ragged.constant([["Ann", "sees"]]))
    features.pop("word_index")
    outputs = signatures["serving_tokens"](**features)
    assert outputs["probabilities"].shape == (1, 16, 5)
    np.testing.assert_allclose(tf.reduce_sum(outputs["probabilities"], -1), 1.0, atol=1e-5)


def test_other_names_give_a_tag_to_each_word(preprocessor, tmp_path):
    model = make(preprocessor, ["NOUN", "VERB", "X"])
    path = export(model, tmp_path / "1", batch_size=2)
    signatures = tf.saved_model.load(path).signatures
    text = "Ann sees 12,345 r\u00e9sum\u00e9s, then goes home again and again and again."
    outputs = outputs_of(signatures["serving_default"], text=[text, "home"])
    assert outputs["num_words"].tolist()[1] == 1
    words = [word.decode() for word in outputs["word"][0]]
    starts, ends = outputs["word_start"][0], outputs["word_end"][0]
    assert words == [text[a:b] for a, b in zip(starts, ends, strict=True)]
    expected = model.tag([text, "home"], verbose=0)
    assert [tag.decode() for tag in outputs["tag"][0]] == expected[0]

"""Token classification: of arrays, and of words in texts."""

import keras
import numpy as np
import pandas as pd
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTokenClassifier
from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
from keras_xlnet.preprocessing.tags import decode_tags, tag_spans
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.preprocessing.test_batches_of_tasks import examples_of
from tests.small_models import small_backbone

_rng = np.random.default_rng(7)
PADDING_MASK = np.arange(8) >= np.arange(24)[:, None] % 4
TOKEN_IDS = np.where(PADDING_MASK, _rng.integers(9, 40, (24, 8)), 5).astype("int32")
INPUTS = {"token_ids": TOKEN_IDS, "padding_mask": PADDING_MASK}
# The class of a token depends on the token before it: a model of single tokens cannot know it.
LABELS = np.roll(TOKEN_IDS, 1, axis=1) % 2
WEIGHTS = PADDING_MASK * np.linspace(0.5, 1.5, 8)


def make(**kwargs):
    keras.utils.set_random_seed(6)
    backbone = small_backbone(vocabulary_size=40)
    return XLNetTokenClassifier(backbone, 2, **{"dropout": 0.0, **kwargs})


def test_learns_what_needs_the_context():
    model = make()
    model.compile(keras.optimizers.Adam(0.02))
    counted = PADDING_MASK & np.roll(PADDING_MASK, 1, axis=1)
    history = model.fit(
        INPUTS, LABELS, sample_weight=counted.astype("float32"), epochs=40, verbose=0
    ).history
    assert history["accuracy"][-1] > 0.9
    actual = model.predict(INPUTS, verbose=0).argmax(-1)
    assert (actual == LABELS)[counted].mean() > 0.9


def test_equals_its_parts():
    model = make(activation="linear", dropout=0.5)
    expected = model.logits_dense(model.backbone(INPUTS)["sequence_output"])
    np.testing.assert_array_equal(model(INPUTS), expected)
    assert np.abs(model(INPUTS, training=True) - expected).max() > 0.01


@pytest.mark.parametrize("activation", ["softmax", "linear"])
def test_loss_and_accuracy_are_means_over_the_tokens_that_count(activation):
    model = make(activation=activation)
    loss, accuracy = model.evaluate(INPUTS, LABELS, sample_weight=WEIGHTS, batch_size=24, verbose=0)
    outputs = np.asarray(model(INPUTS), dtype="float64")
    if activation == "linear":
        outputs = np.exp(outputs) / np.exp(outputs).sum(-1, keepdims=True)
    np.testing.assert_allclose(outputs.sum(-1), 1, atol=1e-6)
    losses = -np.log(np.take_along_axis(outputs, LABELS[..., None], -1)[..., 0])
    assert loss == pytest.approx((losses * WEIGHTS).sum() / WEIGHTS.sum(), abs=1e-5)
    right = outputs.argmax(-1) == LABELS
    assert accuracy == pytest.approx((right * WEIGHTS).sum() / WEIGHTS.sum(), abs=1e-5)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"num_classes": 1}, "always gives 1.0"),
        ({"num_classes": 2.0}, "`num_classes` must be a positive integer"),
        ({"num_classes": 2, "activation": "sigmoid"}, "`activation` must be one of"),
        ({"num_classes": 2, "class_names": ["a"]}, "`class_names` must have `num_classes` names"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        XLNetTokenClassifier(XLNetBackbone(40, 1, 2, 16, 32), **kwargs)


# === From texts ===

FIRST, LAST = ["Ann", "Ben", "Eve", "Tom"], ["Lee", "Ray", "Fox"]
WORDS = ["is", "at", "home", "and", "sees", "a", "river"]
NAMES = ["B-person", "I-person", "O"]


def examples(count, seed):
    rng = np.random.default_rng(seed)
    sentences, tags = [], []
    for _ in range(count):
        words, row = [], []
        for _ in range(rng.integers(2, 5)):
            if rng.random() < 0.4:
                words += [str(rng.choice(FIRST)), str(rng.choice(LAST))]
                row += ["B-person", "I-person"]
            words.append(str(rng.choice(WORDS)))
            row.append("O")
        sentences.append(words)
        tags.append(row)
    return sentences, tags


def make_from_text(seed=2, label_all_pieces=False, **kwargs):
    keras.utils.set_random_seed(seed)
    lines = [" ".join(words) for words in examples(60, 0)[0]]
    tokenizer = XLNetTokenizer.train(iter(lines * 3), vocabulary_size=40)
    backbone = small_backbone(vocabulary_size=40, hidden_dim=32, intermediate_dim=64)
    preprocessor = XLNetTokenClassifierPreprocessor(
        tokenizer, sequence_length=64, label_all_pieces=label_all_pieces
    )
    return XLNetTokenClassifier(backbone, 3, preprocessor=preprocessor, dropout=0.0, **kwargs)


@pytest.fixture(scope="module")
def trained_on_text():
    model = make_from_text()
    model.compile(keras.optimizers.Adam(5e-3))
    sentences, tags = examples(200, 1)
    history = model.fit(
        sentences, tags, epochs=5, batch_size=20, verbose=0, validation_data=examples(40, 2)
    ).history
    return model, history


def test_learns_names_and_tags(trained_on_text):
    model, history = trained_on_text
    assert model.class_names == NAMES
    assert history["val_accuracy"][-1] > 0.95
    sentences, tags = examples(40, 2)
    found = model.evaluate(sentences, tags, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(history["val_loss"][-1], rel=0.02)
    same = [a == b for a, b in zip(model.tag(sentences, verbose=0), tags, strict=True)]
    assert np.mean(same) > 0.9


def test_entities_of_text_are_parts_of_it(trained_on_text):
    model, _ = trained_on_text
    text = "Ann Lee  is at home and Tom Fox sees a river"
    (entities,) = model.find_entities([text], verbose=0)
    assert [(entity.type, entity.text) for entity in entities] == [
        ("person", "Ann Lee"),
        ("person", "Tom Fox"),
    ]
    for entity in entities:
        assert text[entity.start : entity.end] == entity.text and 0.5 < entity.score <= 1


@pytest.mark.parametrize("text", ["हिन्दी भाषा Ann Lee", "e\u0301te\u0301 Tom Fox", "مُحَمَّد Eve Ray"])
def test_a_word_is_the_same_in_training_tags_and_entities(trained_on_text, text):
    model, _ = trained_on_text
    words = text.split()
    assert model.tag([text], verbose=0) == model.tag([words], verbose=0)
    tags = [["O"] * len(words)]
    by_text = model.evaluate([text], tags, verbose=0)
    np.testing.assert_allclose(by_text, model.evaluate([words], tags, verbose=0), rtol=1e-6)
    (entities,) = model.find_entities([text], verbose=0)
    (entity,) = [entity for entity in entities if entity.text.isascii()]
    assert text[entity.start : entity.end] == entity.text in text


def test_entities_of_texts_in_other_forms(trained_on_text):
    model, _ = trained_on_text
    texts = ["là is Ann Lee", "Tom Fox is at home"]
    expected = model.find_entities(texts, verbose=0)
    for x in (
        [text.encode() for text in texts],
        np.array(texts),
        pd.Series(texts, index=[7, 5]),
    ):
        assert model.find_entities(x, verbose=0) == expected


def test_entities_of_words_have_places_in_words(trained_on_text):
    model, _ = trained_on_text
    words = ["Ben", "Ray", "sees", "Eve", "Lee"]
    (entities,) = model.find_entities([words], verbose=0)
    assert [(e.text, e.start, e.end) for e in entities] == [("Ben Ray", 0, 2), ("Eve Lee", 3, 5)]


def test_sequences_are_valid(trained_on_text):
    model, _ = trained_on_text
    rng = np.random.default_rng(0)
    sentences = [list(rng.choice(FIRST + LAST + WORDS, 9)) for _ in range(40)]
    sentences = [[str(word) for word in words] for words in sentences]
    for tags in model.tag(sentences, verbose=0):
        assert len(tags) == 9
        for before, tag in zip(["O", *tags], tags, strict=False):
            assert tag != "I-person" or before in ("B-person", "I-person")


def test_tokens_without_a_label_do_not_count(trained_on_text):
    model, _ = trained_on_text
    sentences, tags = examples(20, 3)
    features, labels, _ = examples_of(model, sentences, tags)
    assert (labels == -100).any() and set(np.unique(labels)) == {-100, 0, 1, 2}
    expected = model.evaluate(sentences, tags, verbose=0)
    weights = (labels != -100).astype("float32")
    by_weights = model.evaluate(features, np.maximum(labels, 0), sample_weight=weights, verbose=0)
    np.testing.assert_allclose(expected, by_weights, rtol=1e-5)
    # Weights of those that count still do.
    half = model.evaluate(features, labels, sample_weight=weights * 0.5, verbose=0)
    np.testing.assert_allclose(expected, half, rtol=1e-5)
    changed = labels.copy()
    changed[labels == 2] = -100
    assert model.evaluate(features, changed, verbose=0)[0] != pytest.approx(expected[0], rel=1e-3)


def test_all_pieces_of_a_word_can_have_its_label():
    sentences, tags = [["home", "Ann"]], [["O", "B-person"]]
    first, every = (
        examples_of(make_from_text(class_names=NAMES, label_all_pieces=flag), sentences, tags)[1]
        for flag in (False, True)
    )
    assert (first != -100).sum() == 2 < (every != -100).sum()
    assert set(every[every != -100]) == {0, 2}


def test_long_sentences_are_read_in_windows(trained_on_text):
    model, _ = trained_on_text
    sentences, _ = examples(60, 7)
    words = [word for sentence in sentences for word in sentence]
    encoded = model.preprocessor.encode([["a"], words])
    assert len(encoded) > 3
    outputs = model.predict(encoded, verbose=0)
    scores = {}
    for row, sentence in enumerate(encoded.sentence):
        for place, word in enumerate(encoded.word_index[row]):
            if sentence == 1 and word >= 0:
                scores.setdefault(int(word), outputs[row, place])
    expected, _ = decode_tags(np.log([scores[i] for i in range(len(words))]), NAMES, "bio")
    (_, tags) = model.tag([["a"], words], verbose=0)
    assert tags == [NAMES[i] for i in expected]
    (_, found) = model.find_entities([["a"], words], verbose=0)
    # Entities at the end are found too: nothing is cut.
    assert found[-1].end > len(words) - 10
    last_entity = tag_spans(tags, "bio")[-1]
    assert (found[-1].start, found[-1].end) == last_entity[1:]


def test_saved_models_find_the_same(trained_on_text, tmp_path):
    model, _ = trained_on_text
    sentences, _ = examples(5, 4)
    expected = model.tag(sentences, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    for loaded in (
        keras.models.load_model(tmp_path / "model.keras"),
        XLNetTokenClassifier.from_preset(tmp_path / "preset"),
    ):
        assert loaded.class_names == NAMES
        assert loaded.tag(sentences, verbose=0) == expected


def test_bad_input(trained_on_text):
    model, _ = trained_on_text
    with pytest.raises(ValueError, match="a tag for each word. Received in row 1: 1 tags for 2"):
        model.fit([["a"], ["a", "b"]], [["O"], ["O"]], verbose=0)
    with pytest.raises(ValueError, match="names in class_names.* 'B-city'"):
        model.evaluate([["a"]], [["B-city"]], verbose=0)
    with pytest.raises(ValueError, match="must have `num_classes` different tags.* 2 tags"):
        make_from_text().fit([["a", "b"]], [["O", "B-person"]], verbose=0)
    with pytest.raises(ValueError, match="use `tag` for others. Received: class_names=.*'VERB'"):
        make_from_text(class_names=["NOUN", "VERB", "ADJ"]).find_entities(["a"], verbose=0)
    without = XLNetTokenClassifier(model.backbone, 3)
    with pytest.raises(ValueError, match="has no `preprocessor`"):
        without.tag(["a b"])

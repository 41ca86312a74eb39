"""Weights of rows and of classes, in every model with labels that they can mean."""

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import (
    XLNetQuestionAnsweringPreprocessor,
    XLNetTextClassifierPreprocessor,
    XLNetTokenClassifierPreprocessor,
)
from keras_xlnet.preprocessing.weights import weights_by_class, weights_of_classes
from tests.preprocessing.test_batches_of_tasks import examples_of
from tests.small_models import small_backbone

SENTENCES = [["a", "ship"], ["water"], ["the", "harbor", "is"]]
TAGS = [["O", "B-x"], ["O"], ["I-x", "O", "B-x"]]
NAMES = ["B-x", "I-x", "O"]
# As many rows as tokens, which must not be taken for weights of tokens.
IDS = np.random.default_rng(0).integers(9, 199, (5, 5))
LABELS = IDS % 3
WEIGHTS = np.array([1.0, 0.0, 2.0, 0.5, 3.0], "float32")


def backbone():
    keras.utils.set_random_seed(3)
    return small_backbone()


def untrained(model, run_eagerly=True):
    # To trace a step takes as long as some five eager steps.
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=run_eagerly)
    return model


@pytest.fixture(scope="module")
def tagger(tokenizer):
    preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, sequence_length=12)
    model = XLNetTokenClassifier(backbone(), 3, preprocessor, class_names=NAMES, dropout=0.0)
    return untrained(model, run_eagerly=False)


def permutation_lm(**arguments):
    return untrained(XLNetPermutationLM(backbone(), **arguments))


TARGETS = {"token_ids": IDS, "permutation_mask": np.ones((5, 5, 5), bool)}
MODELS = {
    "tags": lambda: (
        untrained(XLNetTokenClassifier(backbone(), 3, dropout=0.0)), {"token_ids": IDS}, LABELS),
    "positions of targets": lambda: (
        permutation_lm(), {**TARGETS, "target_positions": LABELS[:, :3]}, IDS[:, :3]),
    "mask of targets": lambda: (
        permutation_lm(partial_prediction=False), {**TARGETS, "target_mask": LABELS > 0}, IDS),
    "next tokens": lambda: (
        untrained(TransformerXLLanguageModel(200, 1, 2, 16, 32, dropout=0.0)),
        {"token_ids": IDS}, IDS),
}  # fmt: skip


def loss_of(model, *data, **arguments):
    return model.evaluate(*data, verbose=0, return_dict=True, **arguments)["loss"]


@pytest.mark.parametrize("case", MODELS)
def test_the_weight_of_a_row_counts_for_all_of_its_labels(case):
    model, x, y = MODELS[case]()
    for_labels = np.broadcast_to(WEIGHTS[:, None], y.shape)
    expected = loss_of(model, x, y, sample_weight=np.array(for_labels))
    rows = [({key: value[i : i + 1] for key, value in x.items()}, y[i : i + 1]) for i in range(5)]
    by_hand = np.average([loss_of(model, *row) for row in rows], weights=WEIGHTS)
    assert expected == pytest.approx(by_hand, rel=1e-5)
    assert loss_of(model, x, y, sample_weight=WEIGHTS) == pytest.approx(expected, rel=1e-5)
    assert loss_of(model, x, y, sample_weight=WEIGHTS[:, None]) == pytest.approx(expected, rel=1e-5)
    batches = tf.data.Dataset.from_tensor_slices((x, y, WEIGHTS)).batch(5)
    assert loss_of(model, batches) == pytest.approx(expected, rel=1e-5)
    trained = model.fit(x, y, sample_weight=WEIGHTS, verbose=0).history["loss"]
    assert trained == pytest.approx([expected], rel=1e-5)


class Whole(keras.utils.PyDataset):
    """All rows in one batch."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = parts

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.parts


WORD_WEIGHTS = [1.0, 0.0, 2.0]
FORMS = {
    "list": lambda: WORD_WEIGHTS,
    "tuple": lambda: tuple(WORD_WEIGHTS),
    "array": lambda: np.array(WORD_WEIGHTS),
    "column": lambda: pd.Series(WORD_WEIGHTS, index=[5, 7, 9]),
    "tensor": lambda: tf.constant(WORD_WEIGHTS),
    "words": lambda: [[1.0, 1.0], [0.0], [2.0, 2.0, 2.0]],
}


@pytest.mark.parametrize("form", FORMS)
def test_weights_of_sentences_and_of_words(form, tagger):
    # 2, 1 and 3 words: a sentence counts as its weight and its words.
    losses = [loss_of(tagger, [s], [t]) for s, t in zip(SENTENCES, TAGS, strict=True)]
    expected = np.average(losses, weights=np.array([2, 1, 3]) * WORD_WEIGHTS)
    weights = FORMS[form]()
    assert loss_of(tagger, SENTENCES, TAGS, sample_weight=weights) == pytest.approx(expected, 1e-5)
    assert loss_of(tagger, Whole(SENTENCES, TAGS, weights)) == pytest.approx(expected, 1e-5)
    data = (SENTENCES, TAGS, weights)
    history = tagger.fit(SENTENCES, TAGS, validation_data=data, verbose=0).history
    assert history["val_loss"] == pytest.approx([expected], 1e-5)


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1.0, 2.0], "each of 3 rows.* 2"),
        ([[1.0, 1.0], [1.0]], "each of 3 sentences.* 2"),
        ([[1.0, 1.0], [1.0, 1.0], [1.0]], "row 1: 2 for 1 words"),
        ([[1.0, 1.0], [np.inf], [1.0, 1.0, 1.0]], "must be finite"),
    ],
)
def test_weights_that_fit_no_sentence(weights, message, tagger):
    with pytest.raises(ValueError, match=f"(?s)`sample_weight`.*{message}"):
        tagger.evaluate(SENTENCES, TAGS, sample_weight=weights, verbose=0)


def test_the_weight_of_a_question_counts_for_all_of_its_windows(tokenizer):
    preprocessor = XLNetQuestionAnsweringPreprocessor(
        tokenizer, sequence_length=40, doc_stride=12, max_question_length=16
    )
    model = untrained(XLNetQuestionAnswering(backbone(), preprocessor=preprocessor, dropout=0.0))
    x = [("where?", "the harbor is for ships " * 6), ("what?", "a ship sails"), ("who?", "it is")]
    windows = preprocessor.encode(x).row
    assert list(np.bincount(windows)) != [1, 1, 1]
    answers = ["harbor", "ship", None]
    features, labels, weights = examples_of(model, x, answers, sample_weight=[2.0, 0.0, 0.5])
    np.testing.assert_array_equal(weights, np.array([2.0, 0.0, 0.5])[windows])
    expected = model.evaluate(features, labels, sample_weight=weights, verbose=0)
    found = model.evaluate(x, ["harbor", "ship", None], sample_weight=[2.0, 0.0, 0.5], verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# === Classes ===


def test_class_weights_of_all_classes():
    found = weights_of_classes({"spam": 3, 0: 0.5, 2.0: 1.5}, ["ham", "spam", "other", "x"], 4)
    np.testing.assert_array_equal(found, [0.5, 3.0, 1.5, 1.0])
    labels = np.array([[0, 2, -100], [1, 3, 1]])
    expected = [[0.5, 1.5, 1.0], [3.0, 1.0, 3.0]]
    np.testing.assert_array_equal(weights_by_class(found, labels, rank=2), expected)
    vectors = np.eye(4)[[0, 2]]
    np.testing.assert_array_equal(weights_by_class(found, vectors, rank=1), [0.5, 1.5])


DATA_FORMS = {
    "arrays": lambda *data: data,
    "datasets": lambda *data: (tf.data.Dataset.from_tensor_slices(data).batch(5),),
    "PyDataset": lambda *data: (Whole(*data),),
    "generator": lambda *data: (iter_of(data),),
}


def iter_of(data):
    yield data


@pytest.mark.parametrize("form", DATA_FORMS)
def test_the_weight_of_a_tag_is_that_of_its_tokens(form):
    model, x, y = MODELS["tags"]()
    y = np.where(IDS < 40, -100, y)
    by_class = np.array([0.5, 1.0, 4.0])[IDS % 3] * (y >= 0)
    expected = loss_of(model, x, y, sample_weight=by_class * WEIGHTS[:, None])
    data = DATA_FORMS[form]
    arguments = {"validation_data": (x, y), "batch_size": 5 if form == "arrays" else None}
    if form == "arrays":
        data = DATA_FORMS["arrays"](x, y)
        arguments["sample_weight"] = WEIGHTS
    else:
        data = DATA_FORMS[form](x, y, WEIGHTS)
    weights = {0: 0.5, 2: 4.0}
    history = model.fit(*data, class_weight=weights, verbose=0, **arguments).history
    assert history["loss"] == pytest.approx([expected], rel=1e-5)
    # Validation, and a later `fit`, are without.
    plain = loss_of(model, x, y)
    assert history["val_loss"] == pytest.approx([plain], rel=1e-5)
    assert model.fit(x, y, verbose=0).history["loss"] == pytest.approx([plain], rel=1e-5)
    logs = model.train_on_batch(x, y, class_weight=weights, return_dict=True)
    assert logs["loss"] == pytest.approx(loss_of(model, x, y, sample_weight=by_class), rel=1e-5)


def test_tags_have_weights_by_name(tagger):
    weights = {"O": 0.25, "B-x": 3.0}
    words = [[{"I-x": 1.0, **weights}[tag] for tag in row] for row in TAGS]
    tagger.fit(SENTENCES, TAGS, verbose=0)
    tagger.trainable = True
    history = tagger.fit(SENTENCES, TAGS, class_weight=weights, verbose=0).history
    expected = loss_of(tagger, SENTENCES, TAGS, sample_weight=words)
    assert history["loss"] == pytest.approx([expected], rel=1e-5)
    assert loss_of(tagger, SENTENCES, TAGS) != pytest.approx(expected, rel=0.05)


TEXTS = ["win a free prize", "see you at six", "free cash, call now", "are you home"]


@pytest.mark.parametrize("form", DATA_FORMS)
@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_class_weight_of_texts(form, activation, tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=12)
    is_softmax = activation == "softmax"
    model = untrained(
        XLNetTextClassifier(
            backbone(), 3 if is_softmax else 1, preprocessor, activation=activation, dropout=0.0,
            class_names=["ham", "other", "spam"] if is_softmax else ["spam"],
        )
    )  # fmt: skip
    # A class that `class_weight` leaves out is the largest label.
    labels = np.array([2, 0, 2, 1] if is_softmax else [1, 0, 1, 0])
    weights = {"ham": 3.0} if is_softmax else {"spam": 3.0}
    by_text = np.array([1, 3, 1, 1] if is_softmax else [3, 1, 3, 1], "float32")
    data = DATA_FORMS[form](TEXTS, labels)
    history = model.fit(*data, class_weight=weights, verbose=0).history
    expected = loss_of(model, TEXTS, labels, sample_weight=by_text)
    assert history["loss"] == pytest.approx([expected], rel=1e-5)


def test_class_weight_does_not_count_in_the_part_for_validation(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=12)
    model = untrained(XLNetTextClassifier(backbone(), 2, preprocessor, dropout=0.0))
    arguments = {"validation_split": 0.5, "verbose": 0}
    history = model.fit(TEXTS, [1, 0, 1, 0], class_weight={1: 9.0}, **arguments).history
    expected = loss_of(model, TEXTS[2:], [1, 0])
    assert history["val_loss"] == pytest.approx([expected], rel=1e-5)

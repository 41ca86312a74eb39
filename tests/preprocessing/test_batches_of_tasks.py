"""Words, choices, questions and documents: in batches that Python makes, and without padding."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import (
    XLNetMultipleChoice,
    XLNetQuestionAnswering,
    XLNetRanker,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import (
    XLNetMultipleChoicePreprocessor,
    XLNetQuestionAnsweringPreprocessor,
    XLNetRankerPreprocessor,
    XLNetTokenClassifierPreprocessor,
)
from keras_xlnet.preprocessing.examples import ExampleReader
from tests.small_models import small_backbone

LENGTH = 96
# Batches of which the third has the longest text.
SENTENCES = [["a", "ship"], ["water"], ["the", "harbor", "is", "for", "ships"] * 4]
TAGS = [["O", "B-x"], ["O"], ["O", "B-x", "O", "O", "B-x"] * 4]
CONTEXTS = ["a ship sails", "the water is cold", "the harbor is for ships " * 3]
CHOICES = [["a ship", "water"], ["cold", "the sea"], ["ships", "cold water"]]
TASKS = {
    "words": (SENTENCES, TAGS),
    "choices": (list(zip(CONTEXTS, CHOICES, strict=True)), [0, 0, 1]),
    "questions": ([("what is it?", context) for context in CONTEXTS], ["ship", "cold", None]),
    "documents": (
        list(zip(["a ship", "sea", "it"], CHOICES, strict=True)),
        [[1, 0], [0, 2], [0, 1]],
    ),
}


def examples_of(model, x, y, **options):
    reader = ExampleReader(model.preprocessor_cls, model.preprocessor, model.classes)
    return reader.read(x, y, **options).rows


def make(task, tokenizer, padding_side="left"):
    keras.utils.set_random_seed(3)
    backbone = small_backbone()
    arguments = {"sequence_length": LENGTH, "padding_side": padding_side}
    if task == "words":
        preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, **arguments)
        names = ["B-x", "I-x", "O"]
        model = XLNetTokenClassifier(
            backbone, 3, class_names=names, preprocessor=preprocessor, dropout=0.0
        )
    elif task == "choices":
        preprocessor = XLNetMultipleChoicePreprocessor(tokenizer, max_choice_length=16, **arguments)
        model = XLNetMultipleChoice(backbone, preprocessor=preprocessor)
    elif task == "questions":
        preprocessor = XLNetQuestionAnsweringPreprocessor(
            tokenizer, doc_stride=40, max_question_length=16, **arguments
        )
        model = XLNetQuestionAnswering(backbone, preprocessor, 2, 2)
    else:
        model = XLNetRanker(backbone, preprocessor=XLNetRankerPreprocessor(tokenizer, **arguments))
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    return model


class RowByRow(keras.utils.PyDataset):
    """Batches of one row."""

    def __init__(self, *columns):
        super().__init__()
        self.columns = columns

    def __len__(self):
        return len(self.columns[0])

    def __getitem__(self, index):
        batch = tuple(column[index : index + 1] for column in self.columns)
        return batch if len(batch) > 1 else batch[0]


@pytest.mark.parametrize("task", TASKS)
def test_a_py_dataset_is_that_of_its_rows(task, tokenizer):
    model, (x, y) = make(task, tokenizer), TASKS[task]
    expected = model.evaluate(x, y, batch_size=1, verbose=0, return_dict=True)
    found = model.evaluate(RowByRow(x, y), verbose=0, return_dict=True)
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_predict_returns_arrays_for_all_inputs(task, tokenizer):
    model, (x, _) = make(task, tokenizer), TASKS[task]
    encoded = model.preprocessor.encode(x, shorten=False)
    expected = keras.tree.flatten(model.predict(encoded.features, verbose=0))
    batches = (x[i : i + 1] for i in range(len(x)))
    for form in (encoded, RowByRow(x), batches):
        found = keras.tree.flatten(model.predict(form, verbose=0))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("task", TASKS)
def test_padding_that_no_row_needs_is_left_out(task, side, tokenizer):
    model, (x, y) = make(task, tokenizer, side), TASKS[task]
    full, *_ = examples_of(model, x[:2], y[:2], shorten=False)
    short, *_ = examples_of(model, x[:2], y[:2])
    assert full["token_ids"].shape[-1] == LENGTH
    longest = full["padding_mask"].sum(axis=-1).max()
    assert longest <= short["token_ids"].shape[-1] < min(longest + 16, LENGTH)
    for key in ("token_ids", "segment_ids", "padding_mask"):
        found, expected = (part[key][part["padding_mask"]] for part in (short, full))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("side", ["left", "right"])
def test_labels_and_answers_move_with_the_tokens(side, tokenizer):
    model, (x, y) = make("questions", tokenizer, side), TASKS["questions"]
    (features, labels, _), (whole, whole_labels, _) = (
        examples_of(model, x[:2], y[:2], shorten=flag) for flag in (True, False)
    )
    for key in ("start_positions", "end_positions"):
        picked, expected = (
            np.take_along_axis(part["token_ids"], of[key][:, np.newaxis], axis=1)
            for part, of in ((features, labels), (whole, whole_labels))
        )
        np.testing.assert_array_equal(picked, expected)
    windows = model.preprocessor.encode(x[:2])
    for found, expected in zip(
        model.answer(x[:2], verbose=0), model.answer(windows, verbose=0), strict=True
    ):
        assert found.null_score == pytest.approx(expected.null_score, abs=1e-5)
        assert [(a.text, a.start) for a in found.answers] == [
            (a.text, a.start) for a in expected.answers
        ]


@pytest.mark.parametrize("task", TASKS)
def test_a_dataset_of_text_is_refused(task, tokenizer):
    model = make(task, tokenizer)
    texts = tf.data.Dataset.from_tensor_slices((CONTEXTS, CONTEXTS)).batch(2)
    keys = {"questions": "context", "choices": "text", "documents": "query"}
    of_dicts = texts.map(lambda text, _: {keys.get(task, "text"): text})
    for dataset in (texts, of_dicts):
        with pytest.raises(ValueError, match="`x` is a dataset of raw text, which XLNet.* lists"):
            model.evaluate(dataset, verbose=0)

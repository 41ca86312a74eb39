"""Exports of models that answer questions: the answers and scores are those of `answer`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetBackbone, XLNetQuestionAnswering
from keras_xlnet.preprocessing import XLNetQuestionAnsweringPreprocessor
from keras_xlnet.serving import export
from tests.serving.conftest import TEXTS

QUESTIONS = ["who?", "where do they meet, and when?", "12,345", "\u4f60\u597d ", "why " * 40]
# Many need several windows of 32 tokens. One word is repeated, so that answers are equal.
CONTEXTS = [
    "Ann Lee sees r\u00e9sum\u00e9s \U0001f600, 12,345 pounds; and that's \u4f60\u597d at home. "
    * 3,
    "call now " * 40,
    "  a  b\t c\n\n",
    "see you at lunch",
    "x",
]


def make(preprocessor, padding_side="right", seed=6):
    keras.utils.set_random_seed(seed)
    initializer = keras.initializers.RandomNormal(0, 0.5)
    backbone = XLNetBackbone(200, 1, 2, 16, 32, kernel_initializer=initializer)
    preprocessor = XLNetQuestionAnsweringPreprocessor(
        preprocessor.tokenizer,
        sequence_length=32,
        doc_stride=8,
        max_question_length=12,
        padding_side=padding_side,
    )
    return XLNetQuestionAnswering(backbone, preprocessor, start_n_top=4, end_n_top=3)


def served(model, directory, **options):
    return tf.saved_model.load(export(model, directory / "1", **options)).signatures


def ask(signature, questions, contexts):
    outputs = signature(question=tf.constant(questions), context=tf.constant(contexts))
    return {name: value.numpy() for name, value in outputs.items()}


def check(outputs, expected):
    assert len(outputs["answer"]) == len(expected)
    for row, answer in enumerate(expected):
        assert outputs["answer"][row].decode() == answer.text
        np.testing.assert_allclose(outputs["null_score"][row], answer.null_score, atol=1e-5)
        count = np.count_nonzero(outputs["answers"][row])
        assert count == len(answer.answers)
        for index, one in enumerate(answer.answers):
            assert outputs["answers"][row, index].decode() == one.text
            assert outputs["answer_start"][row, index] == one.start
            assert outputs["answer_end"][row, index] == one.end
            found = outputs["answer_probability"][row, index]
            np.testing.assert_allclose(found, one.probability, atol=1e-6)
        assert not outputs["answer_probability"][row, count:].any()


@pytest.fixture(scope="module")
def exported(preprocessor, tmp_path_factory):
    """A model and its signature, for each padding side."""
    found = {}
    for side in ("left", "right"):
        model = make(preprocessor, side)
        found[side] = model, served(model, tmp_path_factory.mktemp(side))["serving_default"]
    return found


@pytest.mark.parametrize("padding_side", ["left", "right"])
def test_answers_are_those_of_python(exported, padding_side):
    model, signature = exported[padding_side]
    pairs = [(question, context) for question in QUESTIONS for context in CONTEXTS]
    questions, contexts = map(list, zip(*pairs, strict=True))
    expected = model.answer({"question": questions, "context": contexts}, verbose=0)
    assert len({len(answer.answers) for answer in expected}) > 1
    check(ask(signature, questions, contexts), expected)
    # One question alone has the windows of one question.
    check(ask(signature, questions[:1], contexts[:1]), expected[:1])


def test_options_and_a_static_batch_size(preprocessor, tmp_path):
    """Four questions at a time, with more windows than that; the thresholds decide."""
    model = make(preprocessor)
    questions, contexts = QUESTIONS[:4], CONTEXTS[:4]
    x = {"question": questions, "context": contexts}
    nulls = sorted(answer.null_score for answer in model.answer(x, verbose=0))
    threshold = float(np.mean(nulls[1:3]))
    options = {"num_answers": 2, "max_answer_length": 4, "null_threshold": threshold}
    signature = served(model, tmp_path, batch_size=4, **options)["serving_default"]
    assert signature.structured_outputs["answers"].shape == (4, 2)
    outputs = ask(signature, questions, contexts)
    assert np.count_nonzero(outputs["answer"] == b"") == 2
    check(outputs, model.answer(x, verbose=0, **options))


def test_the_threshold_of_the_model_is_the_default(preprocessor, tmp_path):
    model = make(preprocessor)
    model.null_threshold = -1e6
    outputs = ask(served(model, tmp_path)["serving_default"], QUESTIONS[:2], CONTEXTS[:2])
    assert outputs["answer"].tolist() == [b"", b""]
    assert outputs["answers"][0, 0] != b""


def test_texts_without_an_answer(exported):
    """Texts that Python refuses have answers to nobody: a request fails for no other client."""
    _, signature = exported["right"]
    outputs = ask(signature, ["", "who?", "who?"], [CONTEXTS[3], "", "   "])
    assert outputs["answer"].tolist()[1:] == [b"", b""]
    assert not outputs["answer_probability"][1:].any()
    # The bytes are no UTF-8.
    texts = [text for text in TEXTS if isinstance(text, bytes)]
    outputs = ask(signature, texts, texts)
    assert np.isfinite(outputs["null_score"]).all()


@pytest.mark.parametrize(
    "options", [{"num_answers": 0}, {"max_answer_length": -1}, {"num_answer": 2}]
)
def test_options_are_checked(preprocessor, tmp_path, options):
    (name,) = options
    with pytest.raises(ValueError, match=name):
        export(make(preprocessor), tmp_path / "1", **options)
    assert not [*tmp_path.iterdir()]

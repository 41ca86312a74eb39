"""Multiple choice from texts: training, prediction, saving, and what is refused."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetMultipleChoice
from keras_xlnet.preprocessing import XLNetMultipleChoicePreprocessor
from keras_xlnet.preprocessing.choices import choice_columns, choice_labels
from keras_xlnet.tokenizers import XLNetTokenizer

COLORS = ["red", "blue", "green", "black", "white"]


def examples(count, seed):
    """The right choice is the last color of the text; there are two to four choices."""
    rng = np.random.default_rng(seed)
    texts, choices, labels = [], [], []
    for _ in range(count):
        colors = rng.permutation(COLORS)
        options = [str(color) for color in colors[: rng.integers(2, 5)]]
        labels.append(int(rng.integers(len(options))))
        texts.append(f"it is {options[labels[-1]]}")
        choices.append(options)
    return {"text": texts, "question": ["the color is _."] * count, "choices": choices}, labels


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    x, _ = examples(40, 0)
    lines = [*x["text"], *x["question"], *COLORS]
    tokenizer = XLNetTokenizer.train(iter(lines * 3), vocabulary_size=40)
    backbone = XLNetBackbone(
        40, 1, 2, 32, 64, dropout=0.0, attention_dropout=0.0, kernel_initializer="glorot_normal"
    )
    preprocessor = XLNetMultipleChoicePreprocessor(
        tokenizer, sequence_length=32, max_choice_length=16
    )
    return XLNetMultipleChoice(backbone, preprocessor=preprocessor, dropout=0.0)


def test_learns_from_text(model):
    model.compile(keras.optimizers.Adam(5e-3))
    x, labels = examples(200, 1)
    history = model.fit(
        x, labels, epochs=6, batch_size=20, verbose=0, validation_data=examples(40, 2)
    ).history
    assert history["loss"][-1] < 0.7 * history["loss"][0]
    assert history["val_accuracy"][-1] > 0.6
    x, labels = examples(40, 2)
    found = model.evaluate(x, labels, verbose=0, return_dict=True)
    assert found["accuracy"] == pytest.approx(history["val_accuracy"][-1])


def test_choices_that_a_text_does_not_have_are_never_chosen(model):
    x, _ = examples(30, 4)
    probabilities = model.predict(x, verbose=0)
    assert probabilities.shape == (30, 4)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    for row, options in zip(probabilities, x["choices"], strict=True):
        assert (row[len(options) :] == 0).all() and (row[: len(options)] > 0).all()
    for choice, row, options in zip(
        model.choose(x, verbose=0), probabilities, x["choices"], strict=True
    ):
        assert choice.index == row.argmax() and choice.text == options[choice.index]
        assert choice.score == pytest.approx(row.max(), abs=1e-5)
        assert len(choice.scores) == len(options)


def test_a_text_does_not_depend_on_the_others(model):
    x, _ = examples(6, 5)
    together = model.predict(x, verbose=0)
    for row in range(6):
        alone = model.predict({key: column[row : row + 1] for key, column in x.items()}, verbose=0)
        count = len(x["choices"][row])
        np.testing.assert_allclose(together[row, :count], alone[0], atol=1e-5)


def test_forms_of_choices(model):
    x, _ = examples(4, 6)
    expected = model.predict(x, verbose=0)
    texts, questions, choices = x.values()
    forms = [
        (texts, questions, choices),
        list(zip(texts, questions, choices, strict=True)),
        (texts, [[f"the color is {option}." for option in row] for row in choices]),
    ]
    for form in forms:
        np.testing.assert_allclose(model.predict(form, verbose=0), expected, atol=1e-6)
    assert choice_columns([("a", "b", ["c"])])["choices"] == [["b c"]]


def test_saved_models_choose_the_same(model, tmp_path):
    x, _ = examples(4, 7)
    expected = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    for loaded in (
        keras.models.load_model(tmp_path / "model.keras"),
        XLNetMultipleChoice.from_preset(tmp_path / "preset"),
    ):
        np.testing.assert_allclose(loaded.predict(x, verbose=0), expected, atol=1e-6)


BAD = {
    "another key": ({"text": ["a"], "options": [["b"]]}, 'the keys "text" and "choices"'),
    "lengths": ((["a", "b"], [["c"]]), "columns of equal lengths. Received: {'text': 2, 'choices'"),
    "a string for choices": ([("a", "b")], "`choices` must be lists of strings. Received in row 0"),
    "no choices": ((["a", "b"], [["c"], []]), "must be lists of strings. Received in row 1"),
    "a number": ((["a"], [["c", 3]]), "`choices` must be strings. Received in row 0: 3"),
    "rows": ([("a", ["b"]), ("c",)], r"rows \(text, choices\).* Received in row 1: \('c',\)"),
    "nothing": ([], "`x` must have at least one text"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_choices(model, case):
    x, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        model.predict(x)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 2], "Received in row 1: 2, for 2 choices"),
        ([0, 0.5], "Received in row 1: 0.5"),
        ([0], r"each of 2 texts. Received: shape \(1,\)"),
        (["a", "b"], "Received: shape .* dtype <U1"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        choice_labels(labels, [["a", "b"], ["c", "d"]])

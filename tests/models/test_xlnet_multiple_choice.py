"""Multiple choice: from arrays, and from texts."""

import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetMultipleChoice
from keras_xlnet.preprocessing import XLNetMultipleChoicePreprocessor
from keras_xlnet.preprocessing.choices import choice_columns, choice_labels
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.small_models import small_backbone

_rng = np.random.default_rng(8)
TOKEN_IDS = _rng.integers(9, 40, (12, 4, 6)).astype("int32")
LABELS = _rng.integers(0, 4, 12)
# Only the right choice holds token 39.
TOKEN_IDS[TOKEN_IDS == 39] = 38
TOKEN_IDS[np.arange(12), LABELS, _rng.integers(0, 5, 12)] = 39
INPUTS = {
    "token_ids": TOKEN_IDS,
    "segment_ids": _rng.integers(0, 2, TOKEN_IDS.shape).astype("int32"),
    "padding_mask": np.arange(6) >= _rng.integers(0, 2, (12, 4, 1)),
}


def make(**kwargs):
    keras.utils.set_random_seed(9)
    backbone = small_backbone(vocabulary_size=40)
    return XLNetMultipleChoice(backbone, dropout=0.0, **kwargs)


def test_learns_to_choose():
    model = make()
    model.compile(keras.optimizers.Adam(0.02))
    history = model.fit(INPUTS, LABELS, batch_size=12, epochs=25, verbose=0).history
    assert history["loss"][-1] < 0.1 < history["loss"][0]
    np.testing.assert_array_equal(model.predict(INPUTS, verbose=0).argmax(-1), LABELS)


@pytest.mark.parametrize("num_choices", [1, 2, 4])
@pytest.mark.parametrize("pooling", ["last", "pair"])
def test_each_choice_is_a_text_of_its_own(num_choices, pooling):
    model = make(activation="linear", pooling=pooling)
    outputs = model({key: value[:, :num_choices] for key, value in INPUTS.items()})
    assert outputs.shape == (12, num_choices)
    for i in range(num_choices):
        alone = model({key: value[:, i : i + 1] for key, value in INPUTS.items()})
        np.testing.assert_allclose(outputs[:, i : i + 1], alone, atol=1e-5)
    assert np.ptp(outputs) > 0.01


def test_pair_learns_which_choice_repeats_the_text():
    parts = slice(0, 64), slice(64, 96)  # To learn from, and to test on.
    rng = np.random.default_rng(4)
    texts = np.repeat(rng.integers(9, 40, (96, 1, 4)), 4, axis=1)
    choices, labels = rng.integers(9, 40, (96, 4, 2)), rng.integers(0, 4, 96)
    choices[np.arange(96), labels] = texts[:, 0, 1:3]
    segments = np.tile([0, 0, 0, 0, 1, 1], (96, 4, 1))
    inputs = {"token_ids": np.concatenate([texts, choices], axis=2), "segment_ids": segments}
    known, unseen = ({key: value[rows] for key, value in inputs.items()} for rows in parts)
    model = make(pooling="pair")
    model.compile(keras.optimizers.Adam(0.02), run_eagerly=True)
    model.fit(known, labels[parts[0]], batch_size=64, epochs=15, verbose=0)
    # `pooling="last"` has 0.3 to 0.5 of them right, and chance 0.25.
    chosen = model.predict(unseen, verbose=0).argmax(-1)
    assert np.mean(chosen == labels[parts[1]]) > 0.7


def test_probabilities_and_logits_have_one_loss():
    logits, probabilities = make(activation="linear"), make()
    outputs = logits.predict(INPUTS, verbose=0)
    expected = np.exp(outputs) / np.exp(outputs).sum(-1, keepdims=True)
    np.testing.assert_allclose(probabilities.predict(INPUTS, verbose=0), expected, atol=1e-6)
    expected = -np.log(expected[np.arange(12), LABELS]).mean()
    for model in (logits, probabilities):
        loss = model.evaluate(INPUTS, LABELS, batch_size=12, verbose=0)[0]
        assert loss == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "shape",
    [
        (None, 4, 6),
        (None, None, 6),
        (None, 4, None),
        (None, None, None),
        (3, 4, 6),
        (3, None, None),
    ],
)
def test_symbolic_shapes(shape):
    token_ids = keras.Input(batch_shape=shape, dtype="int32")
    outputs = make()({"token_ids": token_ids})
    assert outputs.shape == shape[:2]
    model = keras.Model(token_ids, outputs)
    assert model(TOKEN_IDS[:3]).shape == (3, 4)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"activation": "sigmoid"}, "`activation` must be one of"),
        ({"pooling": "max"}, "`pooling` must be one of"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(**kwargs)


# === From texts ===

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
    backbone = small_backbone(vocabulary_size=40, hidden_dim=32, intermediate_dim=64)
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
    "lengths": ((["a", "b"], [["c"]]), "must have equal lengths. Received: {'text': 2, 'choices'"),
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

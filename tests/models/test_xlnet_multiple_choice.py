import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetMultipleChoice

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
    backbone = XLNetBackbone(
        40, 1, 2, 16, 32, dropout=0.0, attention_dropout=0.0, kernel_initializer="glorot_normal"
    )
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
        ({"pooling": "max"}, "`mode` must be one of"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(**kwargs)

import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTokenClassifier

_rng = np.random.default_rng(7)
PADDING_MASK = np.arange(8) >= np.arange(24)[:, None] % 4
TOKEN_IDS = np.where(PADDING_MASK, _rng.integers(9, 40, (24, 8)), 5).astype("int32")
INPUTS = {"token_ids": TOKEN_IDS, "padding_mask": PADDING_MASK}
# The class of a token depends on the token before it: a model of single tokens cannot know it.
LABELS = np.roll(TOKEN_IDS, 1, axis=1) % 2
WEIGHTS = PADDING_MASK * np.linspace(0.5, 1.5, 8)


def make(**kwargs):
    keras.utils.set_random_seed(6)
    backbone = XLNetBackbone(
        40, 1, 2, 16, 32, dropout=0.0, attention_dropout=0.0, kernel_initializer="glorot_normal"
    )
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

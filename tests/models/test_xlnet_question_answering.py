import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetBackbone, XLNetQuestionAnswering

ROWS, LENGTH = 24, 9
_rng = np.random.default_rng(12)
# Paragraph of 6, then a question, then <cls> (3). Answers start with 38 and end with 39.
TOKEN_IDS = _rng.integers(9, 38, (ROWS, LENGTH)).astype("int32")
TOKEN_IDS[:, -1] = 3
STARTS = _rng.integers(0, 5, ROWS)
ENDS = np.minimum(STARTS + _rng.integers(1, 3, ROWS), 5)
IMPOSSIBLE = np.arange(ROWS) % 3 == 0
STARTS[IMPOSSIBLE] = ENDS[IMPOSSIBLE] = LENGTH - 1
TOKEN_IDS[~IMPOSSIBLE, STARTS[~IMPOSSIBLE]] = 38
TOKEN_IDS[~IMPOSSIBLE, ENDS[~IMPOSSIBLE]] = 39
ALLOWED = np.isin(np.arange(LENGTH), [0, 1, 2, 3, 4, 5, LENGTH - 1])
INPUTS = {
    "token_ids": TOKEN_IDS,
    "segment_ids": np.tile([0] * 6 + [1, 1, 2], (ROWS, 1)).astype("int32"),
    "paragraph_mask": np.tile(ALLOWED, (ROWS, 1)),
}
LABELS = {
    "start_positions": STARTS,
    "end_positions": ENDS,
    "is_impossible": IMPOSSIBLE.astype("float32"),
}
WEIGHTS = np.linspace(0.2, 2, ROWS)


def make(dtype=None, **kwargs):
    keras.utils.set_random_seed(13)
    backbone = XLNetBackbone(
        40, 1, 2, 16, 32, dropout=0.0, attention_dropout=0.0, kernel_initializer="glorot_normal",
        dtype=dtype,
    )  # fmt: skip
    return XLNetQuestionAnswering(backbone, **{"start_n_top": 2, "end_n_top": 3, **kwargs})


@pytest.fixture(scope="module")
def model():
    return make()


@pytest.fixture(scope="module")
def trained():
    model = make(dropout=0.0)
    model.compile(keras.optimizers.Adam(0.02))
    return model, model.fit(INPUTS, LABELS, epochs=30, batch_size=12, verbose=0).history


def test_learns_to_answer(trained):
    model, history = trained
    assert history["loss"][-1] < 0.1 < history["loss"][0]
    for key in LABELS:
        assert history[f"{key}_accuracy"][-1] > 0.95
    answers = model.predict(INPUTS, verbose=0)
    np.testing.assert_array_equal(answers["start_top_index"][:, 0], STARTS)
    np.testing.assert_array_equal(answers["end_top_index"][:, 0], ENDS)
    np.testing.assert_array_equal(answers["cls_logits"] > 0, IMPOSSIBLE)


def twin_losses(model):
    """Each row's three losses, from the outputs of training."""
    outputs = model({**INPUTS, "start_positions": STARTS})
    outputs = {key: np.asarray(value, dtype="float64") for key, value in outputs.items()}
    logits = outputs["is_impossible"][:, 0]
    return {
        "start_positions": -outputs["start_positions"][np.arange(ROWS), STARTS],
        "end_positions": -outputs["end_positions"][np.arange(ROWS), ENDS],
        "is_impossible": np.log1p(np.exp(logits)) - IMPOSSIBLE * logits,
    }


DATA = {
    "arrays": lambda: ((INPUTS, LABELS), {}),
    "weighted": lambda: ((INPUTS, LABELS), {"sample_weight": WEIGHTS}),
    "weight_of_each_label": lambda: (
        (INPUTS, LABELS), {"sample_weight": dict.fromkeys(LABELS, WEIGHTS)}
    ),
    "start_among_the_inputs": lambda: (({**INPUTS, "start_positions": STARTS}, LABELS), {}),
    "dataset": lambda: (
        (tf.data.Dataset.from_tensor_slices((INPUTS, LABELS)).batch(ROWS),), {}
    ),
    "weighted_dataset": lambda: (
        (tf.data.Dataset.from_tensor_slices((INPUTS, LABELS, WEIGHTS)).batch(ROWS),), {}
    ),
    "generator": lambda: (((batch for batch in [(INPUTS, LABELS)]),), {}),
}  # fmt: skip


@pytest.mark.parametrize("form", DATA)
def test_every_form_of_data_gives_the_same_losses(model, form):
    args, kwargs = DATA[form]()
    results = model.evaluate(*args, **kwargs, batch_size=ROWS, verbose=0, return_dict=True)
    weights = WEIGHTS if "weight" in form else np.ones(ROWS)
    losses = {key: (loss * weights).mean() for key, loss in twin_losses(model).items()}
    assert results["loss"] == pytest.approx(0.5 * sum(losses.values()), abs=1e-5)
    # Keras counts a generator's batch twice in the losses of the outputs.
    if "weight" not in form and form != "generator":
        for key, loss in losses.items():
            assert results[f"{key}_loss"] == pytest.approx(loss, abs=1e-5)


def test_fit_of_arrays_and_of_a_dataset_is_the_same():
    histories = []
    for dataset in (False, True):
        model = make()
        model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        data = (INPUTS, LABELS, WEIGHTS)
        held_out = ({k: v[:4] for k, v in INPUTS.items()}, {k: v[:4] for k, v in LABELS.items()})
        if dataset:
            args = (tf.data.Dataset.from_tensor_slices(data).batch(12),)
            held_out, kwargs = tf.data.Dataset.from_tensor_slices(held_out).batch(4), {}
        else:
            args = data[:2]
            kwargs = {"sample_weight": WEIGHTS, "batch_size": 12, "shuffle": False}
        history = model.fit(*args, **kwargs, epochs=2, verbose=0, validation_data=held_out)
        histories.append(history.history)
    assert set(histories[0]) == set(histories[1])
    assert "val_end_positions_accuracy" in histories[0]
    assert histories[0]["loss"][0] > histories[0]["loss"][1]
    for key, values in histories[0].items():
        np.testing.assert_allclose(histories[1][key], values, rtol=1e-5, err_msg=key)


def test_end_is_given_the_labelled_start(model):
    """A beam for the start and the output for the same start are the same."""
    beams = model(INPUTS)
    given = model({**INPUTS, "start_positions": beams["start_top_index"][:, 1]})
    top, index = keras.ops.top_k(given["end_positions"], 3)
    np.testing.assert_allclose(beams["end_top_log_probs"][:, 3:], top, atol=1e-5)
    np.testing.assert_array_equal(beams["end_top_index"][:, 3:], index)
    np.testing.assert_allclose(np.exp(given["end_positions"]).sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(beams["cls_logits"], given["is_impossible"][:, 0], atol=1e-6)
    other = model({**INPUTS, "start_positions": beams["start_top_index"][:, 0]})
    assert np.abs(other["end_positions"] - given["end_positions"])[:, ALLOWED].max() > 0.01


def test_answers_are_where_they_may_be(model):
    beams = model(INPUTS)
    for key in ("start_top_index", "end_top_index"):
        assert np.isin(beams[key], np.flatnonzero(ALLOWED)).all()
    for key in ("start_top_log_probs", "end_top_log_probs"):
        assert np.asarray(beams[key]).min() > -50
    outputs = model({**INPUTS, "start_positions": STARTS})
    for key in ("start_positions", "end_positions"):
        forbidden = np.asarray(outputs[key])[:, ~ALLOWED]
        np.testing.assert_array_equal(forbidden, np.float32(-1e30))


@pytest.mark.parametrize("side", ["left", "right"])
def test_defaults_are_the_real_tokens_and_the_last_of_them(model, side):
    kept = np.array([9, 7, 4, 8])[:, None]
    positions = np.arange(LENGTH)
    padding_mask = positions < kept if side == "right" else positions >= LENGTH - kept
    last = kept[:, 0] - 1 if side == "right" else np.full(4, LENGTH - 1)
    inputs = {"token_ids": TOKEN_IDS[:4], "padding_mask": padding_mask}
    given = {**inputs, "paragraph_mask": padding_mask, "cls_index": last}
    for extra in ({}, {"start_positions": last}):
        actual, expected = model({**inputs, **extra}), model({**given, **extra})
        for key, value in expected.items():
            np.testing.assert_array_equal(actual[key], value, err_msg=key)
    moved = model({**given, "cls_index": last - 1})
    assert np.abs(moved["cls_logits"] - model(inputs)["cls_logits"]).max() > 1e-3


def test_short_texts_have_as_many_beams(model):
    model = make(start_n_top=4, end_n_top=5)
    beams = model({"token_ids": TOKEN_IDS[:3, :2]})
    assert beams["start_top_index"].shape == (3, 4)
    assert beams["end_top_index"].shape == (3, 20)
    np.testing.assert_allclose(np.exp(beams["start_top_log_probs"][:, :2]).sum(-1), 1, atol=1e-6)
    assert np.asarray(beams["start_top_log_probs"])[:, 2:].max() <= -1e30
    for key in ("start_top_index", "end_top_index"):
        assert np.isin(beams[key], [0, 1]).all()


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_half_precision(model, policy):
    half = make(policy)
    half.set_weights(model.get_weights())
    inputs = {**INPUTS, "start_positions": STARTS}
    for key, expected in model(inputs).items():
        actual = half(inputs)[key]
        assert actual.dtype == "float32"
        # -1e30 is in float32 only.
        np.testing.assert_allclose(actual, expected, rtol=0, atol=0.1, err_msg=key)
    assert all(np.isfinite(value).all() for value in half(INPUTS).values())


def test_gradients_are_finite_in_float16():
    model = make("mixed_float16")
    x = {**INPUTS, "start_positions": STARTS}
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, LABELS, model(x, training=True))
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    assert all(np.isfinite(tf.convert_to_tensor(gradient)).all() for gradient in gradients)


@pytest.mark.parametrize("shape", [(None,), (LENGTH,)], ids=["unknown", "known"])
def test_in_a_users_functional_model(model, shape):
    inputs = {
        "token_ids": keras.Input(shape, dtype="int32", name="token_ids"),
        "start_positions": keras.Input((), dtype="int32", name="start_positions"),
    }
    outputs = model(inputs)
    assert {key: value.shape for key, value in outputs.items()} == {
        "start_positions": (None, *shape),
        "end_positions": (None, *shape),
        "is_impossible": (None, 1),
    }
    beams = model({"token_ids": inputs["token_ids"]})
    assert beams["end_top_index"].shape == (None, 6)
    users = keras.Model(inputs, [outputs, beams])
    values = {"token_ids": TOKEN_IDS, "start_positions": STARTS}
    actual = users(values)
    for part, expected in zip(
        actual, (model(values), model({"token_ids": TOKEN_IDS})), strict=True
    ):
        for key, value in expected.items():
            np.testing.assert_allclose(part[key], value, atol=1e-6, err_msg=key)


def test_trains_on_after_loading(trained, tmp_path):
    model, history = trained
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    expected = model.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)
    actual = copy.evaluate(INPUTS, LABELS, verbose=0, return_dict=True)
    assert actual == expected
    assert int(copy.optimizer.iterations) == int(model.optimizer.iterations) == 60
    copy.run_eagerly = True  # To trace the step would take seconds.
    copy.fit(INPUTS, LABELS, verbose=0)


def test_sublayers_are_saved_once(model, tmp_path):
    model.save_weights(tmp_path / "model.weights.h5")
    copy = make()
    assert len(copy.weights) == len({weight.path for weight in copy.weights})
    copy.load_weights(tmp_path / "model.weights.h5")
    for actual, expected in zip(copy.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_one_step_on_one_batch(model):
    losses = model.test_on_batch(INPUTS, LABELS, return_dict=True)
    expected = 0.5 * sum(loss.mean() for loss in twin_losses(model).values())
    assert losses["loss"] == pytest.approx(expected, abs=1e-5)


def test_trains_on_two_replicas(two_replicas):
    with two_replicas.scope():
        model = make()
        model.compile(keras.optimizers.SGD(0.1))
    loss = model.evaluate(INPUTS, LABELS, batch_size=ROWS, verbose=0, return_dict=True)["loss"]
    expected = 0.5 * sum(loss.mean() for loss in twin_losses(model).values())
    assert loss == pytest.approx(expected, abs=1e-5)
    history = model.fit(INPUTS, LABELS, batch_size=ROWS, epochs=2, verbose=0).history
    assert history["loss"][1] < history["loss"][0]


@pytest.mark.parametrize(
    "y, given",
    [
        (None, "NoneType"),
        (STARTS, "ndarray|Tensor"),
        ({"start_positions": STARTS, "end_positions": ENDS}, r"\['end_positions', 'start_pos"),
    ],
)
def test_labels_that_are_missing_are_named(model, y, given):
    with pytest.raises(
        ValueError, match=f"`y` must be a dict with the keys.*Received: .*({given})"
    ):
        model.evaluate(INPUTS, y, verbose=0)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"start_n_top": 0}, "`start_n_top` must be a positive integer"),
        ({"end_n_top": 2.5}, "`end_n_top` must be a positive integer"),
    ],
)
def test_bad_arguments_are_named(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(**kwargs)


def test_unknown_inputs_are_named(model):
    with pytest.raises(ValueError, match=r"does not take: \['p_mask'\].*'start_positions'\]"):
        model({"token_ids": TOKEN_IDS, "p_mask": TOKEN_IDS})

"""What every task model promises, whatever its task."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import models
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.training import FineTuningAdamW

BATCH, CHOICES, LENGTH = 5, 3, 7
MODELS = {
    "text_classifier": lambda b: models.XLNetTextClassifier(b, 3, activation="sigmoid"),
    "text_regressor": lambda b: models.XLNetTextRegressor(b, pooling="attention"),
    "token_classifier": lambda b: models.XLNetTokenClassifier(b, 4, class_names=list("abcd")),
    "multiple_choice": lambda b: models.XLNetMultipleChoice(b, pooling="mean"),
    "question_answering": lambda b: models.XLNetQuestionAnswering(b, None, 2, 3),
}
every_model = pytest.mark.parametrize("name", MODELS)


def backbone(**kwargs):
    rates = {"dropout": 0.0, "attention_dropout": 0.0}
    return XLNetBackbone(60, 1, 2, 16, 32, **{**rates, **kwargs})


def fill(model):
    rng = np.random.default_rng(4)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(scale=0.4, size=weight.shape))
    return model


@pytest.fixture(scope="module")
def model_of():
    """`model_of("text_classifier")`: made once, for tests that do not change it."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = fill(MODELS[name](backbone()))
        return made[name]

    return get


def texts(name, padding_side="left"):
    """Ids, segments and padding of 0 to 4 tokens; the real tokens are the same on both sides."""
    rng = np.random.default_rng(3)
    padding = np.arange(BATCH)
    if name == "multiple_choice":
        padding = (padding[:, None] + np.arange(CHOICES)) % BATCH
    shape, padding = padding.shape, padding[..., None]
    arrays = {
        "token_ids": rng.integers(9, 60, (*shape, LENGTH)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (*shape, LENGTH)).astype("int32"),
        "padding_mask": np.broadcast_to(np.arange(LENGTH) >= padding, (*shape, LENGTH)),
    }
    if padding_side == "right":
        rows = (np.arange(LENGTH) + padding) % LENGTH
        arrays = {key: np.take_along_axis(a, rows, -1) for key, a in arrays.items()}
    return arrays


def assert_same(actual, expected, atol=0.0):
    keras.tree.assert_same_structure(actual, expected)
    for a, e in zip(keras.tree.flatten(actual), keras.tree.flatten(expected), strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=atol)


@every_model
def test_config_round_trip(name, model_of):
    model = model_of(name)
    config = model.get_config()
    copy = type(model).from_config(config)
    assert copy.get_config() == config
    assert keras.saving.get_registered_name(type(model)) == f"keras_xlnet>{type(model).__name__}"


@every_model
def test_saved_and_loaded_exactly(name, model_of, tmp_path):
    model, inputs = model_of(name), texts(name)
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    assert_same(keras.saving.load_model(tmp_path / "model.keras")(inputs), expected)
    model.save_to_preset(tmp_path / "preset")
    copy = type(model).from_preset(tmp_path / "preset", dropout=0.25)
    assert copy.dropout == 0.25
    assert_same(copy(inputs), expected)


# Composite layers with what can be quantized in them; each test takes ten seconds.
@pytest.mark.parametrize("name", ["text_regressor", "question_answering"])
def test_quantized_model_is_loaded_exactly(name, tmp_path):
    model, inputs = fill(MODELS[name](backbone())), texts(name)
    exact = keras.tree.flatten(model(inputs))[0]
    model.quantize("int8")
    expected = model(inputs)
    assert np.abs(keras.tree.flatten(expected)[0] - exact).max() > 0
    model.save(tmp_path / "model.keras")
    assert_same(keras.saving.load_model(tmp_path / "model.keras")(inputs), expected)


@every_model
def test_outputs_are_float32_and_close_in_half_precision(name, model_of):
    expected = model_of(name)(texts(name))
    for policy, atol in (("mixed_bfloat16", 0.3), ("mixed_float16", 0.03)):
        half = MODELS[name](backbone(dtype=policy))
        half.set_weights(model_of(name).get_weights())
        outputs = half(texts(name))
        for key, output in outputs.items() if isinstance(outputs, dict) else [("", outputs)]:
            if "index" not in key:
                assert output.dtype == "float32"
                assert np.isfinite(output).all()
        if name != "question_answering":
            assert_same(outputs, expected, atol)


@pytest.mark.parametrize("name", [*MODELS, "permutation_lm"])
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_the_loss_is_scaled_in_float16(name, policy):
    make = models.XLNetPermutationLM if name == "permutation_lm" else MODELS[name]
    optimizer = make(backbone(dtype=policy)).optimizer
    scales = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    assert scales == (policy == "mixed_float16")


@every_model
def test_padding_side_does_not_matter(name, model_of):
    left, right = (model_of(name)(texts(name, side)) for side in ("left", "right"))
    padding = np.arange(BATCH)
    if name == "token_classifier":
        for i in padding:
            assert_same(left[i, i:], right[i, : LENGTH - i], 1e-5)
        return
    if name == "question_answering":
        left = {
            key: value - padding[:, None] if "index" in key else value
            for key, value in left.items()
        }
    assert_same(left, right, 1e-5)


@every_model
def test_batch_size_does_not_matter(name, model_of):
    inputs = texts(name)
    expected = model_of(name).predict(inputs, batch_size=BATCH, verbose=0)
    assert_same(model_of(name).predict(inputs, batch_size=2, verbose=0), expected, 1e-5)


@every_model
def test_graph_of_unknown_shapes_agrees(name, model_of):
    model, inputs = model_of(name), texts(name)
    signature = {
        key: tf.TensorSpec([None] * value.ndim, value.dtype, key) for key, value in inputs.items()
    }
    call = tf.function(model, input_signature=[signature], jit_compile=True)
    tensors = {key: tf.constant(value) for key, value in inputs.items()}
    assert_same(call(tensors), model(inputs), 1e-5)


@every_model
def test_only_token_ids_are_needed(name, model_of):
    token_ids = texts(name)["token_ids"]
    full = {
        "token_ids": token_ids,
        "segment_ids": token_ids * 0,
        "padding_mask": np.ones_like(token_ids, dtype="bool"),
    }
    assert_same(model_of(name)({"token_ids": token_ids}), model_of(name)(full))


@every_model
def test_memory_of_the_backbone_is_not_used(name, model_of):
    model = MODELS[name](backbone(memory_length=4))
    model.set_weights(model_of(name).get_weights())
    found, expected = (m(texts(name)) for m in (model, model_of(name)))
    assert_same(found, expected, 1e-6)


@every_model
def test_backbone_that_reads_backwards_is_refused(name):
    with pytest.raises(ValueError, match="bidirectional_data=False"):
        MODELS[name](backbone(bidirectional_data=True))


@every_model
def test_what_compile_is_not_given_stays_as_it_came(name):
    model = MODELS[name](backbone())
    loss = model.loss
    assert isinstance(model.optimizer, FineTuningAdamW)
    model.compile(keras.optimizers.SGD(0.5))
    assert isinstance(model.optimizer, keras.optimizers.SGD)
    types = [keras.tree.map_structure(type, tree) for tree in (loss, model.loss)]
    assert types[0] == types[1]
    model.compile(loss="mse")
    assert model.loss == "mse"
    assert isinstance(model.optimizer, keras.optimizers.AdamW)


@pytest.mark.parametrize(
    "model_class, num_classes",
    [
        (models.XLNetTextClassifier, {"num_classes": CHOICES}),
        (models.XLNetTokenClassifier, {"num_classes": CHOICES}),
        (models.XLNetMultipleChoice, {}),
    ],
)
def test_accuracy_is_that_of_the_labels_of_the_loss(model_class, num_classes):
    model = fill(model_class(backbone(), **num_classes))
    x = texts("multiple_choice" if model_class is models.XLNetMultipleChoice else "")
    shape = (BATCH, LENGTH) if model_class is models.XLNetTokenClassifier else (BATCH,)
    labels = np.random.default_rng(5).integers(0, CHOICES, shape)
    logs = []
    for loss, y in (
        (keras.losses.SparseCategoricalCrossentropy(), labels),
        (keras.losses.CategoricalCrossentropy(), keras.utils.to_categorical(labels, CHOICES)),
    ):
        model.compile(loss=loss, run_eagerly=True)
        logs.append(model.evaluate(x, y, verbose=0, return_dict=True))
    assert logs[0]["accuracy"] == logs[1]["accuracy"] not in (0, 1)
    assert logs[0]["loss"] == pytest.approx(logs[1]["loss"], abs=1e-5)


@every_model
def test_bad_dropout_is_named(name, model_of):
    model = model_of(name)
    arguments = {"num_classes": 2} if "classifier" in name else {}
    for dropout in (-0.1, 1, "0.5"):
        with pytest.raises(ValueError, match="`dropout` must be a dropout rate"):
            type(model)(model.backbone, dropout=dropout, **arguments)

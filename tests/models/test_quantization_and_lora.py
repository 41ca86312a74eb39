"""Quantized and LoRA models are loaded with difference 0."""

import keras
import numpy as np
import pytest

from keras_xlnet import layers
from keras_xlnet.checkpoints import save_checkpoint
from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from tests.small_models import small_backbone

IDS = {"token_ids": np.random.default_rng(5).integers(0, 50, (3, 7))}


def make(**kwargs):
    keras.utils.set_random_seed(2)
    return XLNetBackbone(50, 2, 2, 16, 32, kernel_initializer="glorot_normal", **kwargs)


def output(model):
    return np.asarray(model(IDS)["sequence_output"])


@pytest.mark.parametrize(
    "kwargs, mode",
    [
        ({}, "int8"),
        pytest.param({}, "int4", marks=pytest.mark.slow),
        *(
            pytest.param(
                {"tie_attention_biases": True, "memory_length": 4}, m, marks=pytest.mark.slow
            )
            for m in ("int8", "int4")
        ),
    ],
)
def test_quantized_backbone_is_loaded_exactly(tmp_path, mode, kwargs):
    model = make(**kwargs)
    exact = output(model)
    model.quantize(mode)
    quantized = output(model)
    assert 0 < np.abs(quantized - exact).max() < (0.5 if mode == "int8" else 3)
    assert {block.attention.query_dense.quantization_mode for block in model.blocks} == {mode}
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(output(copy), quantized)
    model.save_to_preset(tmp_path / "preset")
    np.testing.assert_array_equal(output(XLNetBackbone.from_preset(tmp_path / "preset")), quantized)
    copy.save(tmp_path / "again.keras")
    np.testing.assert_array_equal(
        output(keras.saving.load_model(tmp_path / "again.keras")), quantized
    )


def test_quantized_block_of_a_users_model_is_loaded_exactly(tmp_path):
    content = np.random.default_rng(1).normal(size=(2, 5, 8)).astype("float32")
    inputs = keras.Input((5, 8))
    positions = layers.RelativePositionEncoding(8)(inputs)
    x = layers.TwoStreamBlock(2, 4, 16, kernel_initializer="glorot_normal")(
        inputs, position_encoding=positions
    )
    x = layers.SequencePooling("attention", num_heads=2, head_dim=4)(x)
    model = keras.Model(inputs, x)
    model.quantize("int8")
    expected = np.asarray(model(content))
    model.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(copy(content), expected)


def test_lora_is_loaded_exactly(tmp_path):
    model = make()
    exact = output(model)
    model.trainable = False
    for block in model.blocks:
        for dense in (
            block.attention.query_dense,
            block.attention.value_dense,
            block.attention.output_dense,
            block.feed_forward.intermediate_dense,
            block.feed_forward.output_dense,
        ):
            dense.trainable = True
            dense.enable_lora(2)
    np.testing.assert_array_equal(output(model), exact)
    head = keras.Sequential([keras.layers.Lambda(lambda x: x["sequence_output"][:, 0, :1])])
    trainer = keras.Model(model.input, head(model(model.input)))
    trainer.compile(keras.optimizers.Adam(0.05), "mse", run_eagerly=True)
    full = {**IDS, "segment_ids": IDS["token_ids"] * 0, "padding_mask": IDS["token_ids"] >= 0}
    trainer.fit(full, np.ones((3, 1)), epochs=3, verbose=0)
    trained = output(model)
    assert np.abs(trained - exact).max() > 1e-3
    model.save(tmp_path / "model.keras")
    np.testing.assert_allclose(
        output(keras.saving.load_model(tmp_path / "model.keras")), trained, rtol=0, atol=0
    )


# === Both ===

IDS_OF_TEXTS = {"token_ids": np.random.default_rng(6).integers(10, 200, (4, 6))}


def quantized_with_lora(mode, lora_first, rng):
    """A classifier whose matrices are far from 0, also of the head and of the embedding."""
    model = XLNetTextClassifier(small_backbone(), 2)
    parts = (model.backbone.token_embedding, model.logits_dense)
    if not lora_first:
        model.quantize(mode)
    model.enable_lora(2, lora_alpha=3, projections=("key", "output", "feed_forward"))
    for part in parts:
        part.enable_lora(2, lora_alpha=5)
    for weight in model.weights:
        if weight.name.startswith("lora_"):
            weight.assign(rng.normal(size=weight.shape) * 0.3)
    if lora_first:
        model.quantize(mode)
    return model


def in_preset(model, folder):
    model.save_to_preset(folder / "preset")
    return XLNetTextClassifier.from_preset(folder / "preset")


def in_keras_file(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def in_weights(model, folder):
    model.save_weights(folder / "model.weights.h5")
    copy = model.clone()
    copy.load_weights(folder / "model.weights.h5")
    return copy


@pytest.mark.parametrize("mode, lora_first", [("int8", True), ("int4", False)])
def test_quantized_with_lora_is_saved_exactly(mode, lora_first, rng, tmp_path):
    model = quantized_with_lora(mode, lora_first, rng)
    expected = np.asarray(model(IDS_OF_TEXTS))
    for save in (in_preset, in_keras_file, in_weights):
        np.testing.assert_array_equal(save(model, tmp_path)(IDS_OF_TEXTS), expected)
    np.testing.assert_array_equal(model.with_arguments()(IDS_OF_TEXTS), expected)


def test_quantized_with_lora_is_not_rounded_into_other_models(rng, tmp_path):
    model = quantized_with_lora("int8", True, rng)
    model.save_weights(tmp_path / "model.weights.h5")
    other = XLNetTextClassifier(small_backbone(), 2)
    other.quantize("int8")
    with pytest.raises(ValueError, match="could not be loaded"):
        other.load_weights(tmp_path / "model.weights.h5")
    with pytest.raises(ValueError, match="has no name for the weight"):
        save_checkpoint(model, tmp_path / "huggingface", "huggingface")


def test_lora_on_int8_is_trained_and_loaded_exactly(tmp_path):
    model = XLNetTextClassifier(small_backbone(), 2, dropout=0.0)
    model.backbone.quantize("int8")
    model.enable_lora(2)
    model.compile(keras.optimizers.Adam(0.05), jit_compile=False)
    x, y = {"token_ids": IDS_OF_TEXTS["token_ids"]}, np.array([0, 1, 0, 1])
    before = {weight.path: np.array(weight) for weight in model.weights}
    untrained = np.asarray(model(x))
    model.fit(x, y, epochs=2, verbose=0)
    changed = {w.path for w in model.weights if np.any(np.array(w) != before[w.path])}
    trained = {w.path for w in model.trainable_variables}
    assert changed == trained and sum("lora_kernel" in path for path in changed) == 4
    expected = np.asarray(model(x))
    assert np.abs(expected - untrained).max() > 1e-3
    for save in (in_preset, in_keras_file, in_weights):
        loaded = save(model, tmp_path)
        np.testing.assert_array_equal(loaded(x), expected)
        assert {w.path for w in loaded.trainable_variables} == trained
    # Training goes on from the file as in the model.
    loaded = in_keras_file(model, tmp_path)
    for each in (model, loaded):
        each.fit(x, y, shuffle=False, verbose=0)
    np.testing.assert_allclose(loaded(x), model(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "bfloat16"])
def test_lora_is_merged_in_the_dtype_of_the_weights(dtype, rng, tmp_path):
    model = XLNetTextClassifier(small_backbone(dtype=dtype), 2)
    model.enable_lora(2)
    for weight in model.trainable_variables:
        weight.assign(rng.normal(size=weight.shape) * 0.3)
    query = model.backbone.blocks[0].attention.query_dense
    product = keras.ops.matmul(query.lora_kernel_a, query.lora_kernel_b)
    expected = keras.ops.cast(query._kernel + product, query._kernel.dtype)
    loaded = in_preset(model, tmp_path)
    found = loaded.backbone.blocks[0].attention.query_dense._kernel
    assert found.dtype == dtype.replace("mixed_bfloat16", "float32")
    np.testing.assert_array_equal(found, expected)
    # In `mixed_bfloat16` the sum is one of rounded numbers, and is now rounded itself.
    atol = 0.01 if dtype == "mixed_bfloat16" else 0
    np.testing.assert_allclose(loaded(IDS_OF_TEXTS), model(IDS_OF_TEXTS), rtol=0, atol=atol)


# === What is refused ===


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"rank": -1}, "`rank` must be a positive integer"),
        ({"rank": 0}, "`rank` must be a positive integer"),
        ({"rank": "a"}, "`rank` must be a positive integer"),
        ({"rank": 2.0}, "`rank` must be a positive integer"),
        ({"rank": 2, "lora_alpha": float("nan")}, "`lora_alpha` must be a number"),
        ({"rank": 2, "lora_alpha": 0}, "`lora_alpha` must be above 0"),
        ({"rank": 2, "lora_alpha": "a"}, "`lora_alpha` must be a number"),
        ({"rank": 2, "projections": ()}, "`projections` must be a list of some of"),
        ({"rank": 2, "projections": "query"}, "`projections` must be a list of some of"),
        ({"rank": 2, "projections": ["query", "q"]}, "`projections` must be a list of some of"),
        ({"rank": 2, "projections": [["query"]]}, "`projections` must be a list of some of"),
    ],
)
def test_wrong_lora_changes_nothing(arguments, message):
    model = XLNetTextClassifier(small_backbone(), 2)
    trained = [weight.path for weight in model.trainable_variables]
    with pytest.raises(ValueError, match=message):
        model.enable_lora(**arguments)
    assert [weight.path for weight in model.trainable_variables] == trained
    if "projections" not in arguments:
        with pytest.raises(ValueError, match=message):
            model.logits_dense.enable_lora(**arguments)
    model.enable_lora(2, projections=["query", "query"])
    assert len(model.backbone.trainable_variables) == 2


def test_lora_is_enabled_once(rng):
    model = XLNetTextClassifier(small_backbone(), 2)
    model.backbone.blocks[0].attention.value_dense.enable_lora(2)
    trained = [weight.path for weight in model.trainable_variables]
    with pytest.raises(ValueError, match="attention/value' has LoRA already, of rank 2"):
        model.enable_lora(2)
    assert [weight.path for weight in model.trainable_variables] == trained

"""Quantized and LoRA models are loaded with difference 0."""

import keras
import numpy as np
import pytest

from keras_xlnet import layers
from keras_xlnet.models import XLNetBackbone

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

"""Equal layers are traced once, and each has its own weights, seeds and gradients."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.layers import TwoStreamBlock
from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetBackbone,
    XLNetTextClassifier,
    base_model,
)

IDS = np.random.default_rng(0).integers(9, 40, (4, 6))


def classifier(**arguments):
    keras.utils.set_random_seed(4)
    backbone = XLNetBackbone(
        40, 3, 2, 16, 32, **{"dropout": 0.3, "attention_dropout": 0.2, "seed": 7, **arguments}
    )
    return XLNetTextClassifier(backbone, 2, dropout=0.0)


def causal_lm():
    keras.utils.set_random_seed(4)
    return TransformerXLLanguageModel(40, 3, 2, 16, 32, dropout=0.3, seed=7, memory_length=4)


MODELS = {
    "classifier": classifier,
    "checkpointing": lambda: classifier(gradient_checkpointing=True),
    "mixed": lambda: classifier(dtype="mixed_float16"),
    "causal": causal_lm,
}


@pytest.fixture
def traced(monkeypatch):
    """The names of the blocks whose `call` ran in a graph."""
    names = []
    attend = TwoStreamBlock.attend

    def noted(block, *args, **kwargs):
        if not tf.executing_eagerly():
            names.append(block.name)
        return attend(block, *args, **kwargs)

    monkeypatch.setattr(TwoStreamBlock, "attend", noted)
    return names


def trained(model):
    labels = IDS % 3 if isinstance(model, TransformerXLLanguageModel) else IDS[:, 0] % 2
    losses = [model.train_on_batch({"token_ids": IDS}, labels) for _ in range(3)]
    return losses, [keras.ops.convert_to_numpy(v) for v in model.variables]


@pytest.mark.parametrize("name", MODELS)
def test_steps_are_those_without(name, monkeypatch):
    losses, weights = trained(MODELS[name]())
    monkeypatch.setattr(base_model, "shared_graphs", lambda model: contextlib.nullcontext())
    expected_losses, expected = trained(MODELS[name]())
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    assert expected_losses[0] != expected_losses[1]
    for found, weight in zip(weights, expected, strict=True):
        np.testing.assert_allclose(found, weight, atol=1e-6)


def test_equal_blocks_are_traced_once(traced):
    trained(classifier())
    assert traced == ["block_0"]


def test_blocks_that_differ_are_traced_each(traced):
    model = classifier()
    model.backbone.blocks[1].feed_forward.trainable = False
    model.backbone.blocks[2].attention_add_and_norm.dropout.rate = 0.0
    trained(model)
    assert set(traced) == {"block_0", "block_1", "block_2"}


def test_frozen_blocks_get_no_update(traced):
    model = classifier()
    model.backbone.blocks[0].trainable = False
    before = model.backbone.blocks[0].get_weights()
    trained(model)
    for weight, old in zip(model.backbone.blocks[0].get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, old)
    assert traced == ["block_0", "block_1"]


def test_a_strategy_traces_all(traced):
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        model = classifier()
    trained(model)
    assert set(traced) == {"block_0", "block_1", "block_2"}


def test_a_step_that_xla_compiles_traces_all(traced):
    """XLA would compile each batch anew: see `shared_graphs`."""
    model = classifier()
    model.compile(jit_compile=True)
    trained(model)
    assert set(traced) == {"block_0", "block_1", "block_2"}


def test_a_model_of_the_user_traces_all(traced):
    """It may be compiled by XLA: layers do not know."""
    backbone = classifier().backbone
    inputs = {
        key: keras.Input(x.shape[1:], dtype=x.dtype, name=key) for key, x in backbone.input.items()
    }
    model = keras.Model(inputs, keras.layers.Dense(2)(backbone(inputs)["sequence_output"][:, 0]))
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    traced.clear()
    mask = np.ones(IDS.shape, bool)
    x = {"token_ids": IDS, "segment_ids": np.zeros_like(IDS), "padding_mask": mask}
    model.train_on_batch(x, IDS[:, 0] % 2)
    assert set(traced) == {"block_0", "block_1", "block_2"}

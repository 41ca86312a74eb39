"""Frozen weights stay frozen, however a model is copied, saved and loaded."""

import copy
import json

import keras
import numpy as np
import pytest

from keras_xlnet import layers
from keras_xlnet.models import (
    MultiTask,
    TransformerXLLanguageModel,
    XLNetBackbone,
    XLNetPermutationLM,
    XLNetTextClassifier,
    XLNetTokenClassifier,
)
from keras_xlnet.training import GradualUnfreezing
from keras_xlnet.training.average_checkpoints import load_average
from tests.small_models import PUBLIC_MODELS

SIZES = (40, 2, 2, 8, 12)
IDS = np.random.default_rng(3).integers(9, 40, (4, 6))


def new_model(cls, **kwargs):
    if cls in (XLNetBackbone, TransformerXLLanguageModel):
        return cls(*SIZES, **kwargs)
    if cls is MultiTask:
        return cls({"topic": XLNetTextClassifier(XLNetBackbone(*SIZES), 2)}, **kwargs)
    arguments = {XLNetTextClassifier: [2], XLNetTokenClassifier: [2]}.get(cls, [])
    return cls(XLNetBackbone(*SIZES), *arguments, **kwargs)


def classifier(**kwargs):
    return new_model(XLNetTextClassifier, **kwargs)


# === Ways of copying, and of freezing ===


def saved(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


def preset(model, folder):
    model.save_to_preset(folder / "preset")
    return type(model).from_preset(folder / "preset")


WAYS = {
    "keras_file": saved,
    "preset": preset,
    "config": lambda model, _: type(model).from_config(json.loads(json.dumps(model.get_config()))),
    "clone": lambda model, _: model.clone(),
    "with_arguments": lambda model, _: model.with_arguments(name="other"),
    "with_vocabulary": lambda model, _: model.with_vocabulary(42),
    "deepcopy": lambda model, _: copy.deepcopy(model),
}


def freeze_mostly(model):
    """Freezes all but one block, and one part and one weight of that."""
    model.trainable = False
    block = model.backbone.blocks[0]
    block.trainable = True
    block.feed_forward.trainable = False
    block.attention.query_dense.kernel.trainable = False


def freeze_lora_by_hand(model):
    model.trainable = False
    for dense in (model.backbone.blocks[0].feed_forward.output_dense, *lora_layers(model)):
        dense.trainable = True
        dense.enable_lora(2)


def lora_layers(model):
    return [block.attention.value_dense for block in model.backbone.blocks]


def quantize_and_freeze(model):
    model.quantize("int8")
    model.backbone.blocks[1].trainable = False


def lora_of_quantized(model):
    model.quantize("int8")
    model.enable_lora(2, lora_alpha=3)


FREEZERS = {
    "nothing": lambda model: None,
    "backbone": lambda model: setattr(model.backbone, "trainable", False),
    "all": lambda model: setattr(model, "trainable", False),
    "weight": lambda model: setattr(model.logits_dense.bias, "trainable", False),
    "mostly": freeze_mostly,
    "lora": lambda model: model.enable_lora(2),
    "lora_by_hand": freeze_lora_by_hand,
    "quantized": quantize_and_freeze,
    "lora_of_quantized": lora_of_quantized,
}


def state(layer, path=""):
    """`{path: trainable}` of all layers inside."""
    found = {}
    for sublayer in layer._flatten_layers(include_self=False, recursive=False):
        name = f"{path}{sublayer.name}"
        found |= {name: sublayer.trainable} | state(sublayer, f"{name}/")
    return found


def whole_state(model):
    variables = [(v.path, v.trainable) for v in model.weights]
    return state(model), model.trainable, variables, [v.path for v in model.trainable_variables]


@pytest.mark.parametrize(
    "freezer, way",
    [(freezer, "preset") for freezer in FREEZERS]
    + [(freezer, way) for freezer in ("mostly", "lora") for way in WAYS if way != "preset"]
    + [("lora_of_quantized", "keras_file")],
)
def test_every_copy_is_frozen_alike(freezer, way, tmp_path):
    model = classifier()
    FREEZERS[freezer](model)
    made = WAYS[way](model, tmp_path)
    assert whole_state(made) == whole_state(model)


@pytest.mark.parametrize("cls", PUBLIC_MODELS)
def test_of_every_model(cls, tmp_path):
    model = new_model(cls)
    backbone = getattr(model, "backbone", model)
    backbone.token_embedding.trainable = False
    backbone.blocks[0].trainable = False
    backbone.blocks[0].attention.trainable = True
    backbone.blocks[0].attention.key_dense.kernel.trainable = False
    made = preset(model, tmp_path)
    assert whole_state(made) == whole_state(model)
    assert 0 < len(made.trainable_variables) < len(made.weights)


def test_an_unchanged_model_says_nothing():
    assert not {"quantization", "lora", "trainability"} & set(classifier().get_config())


def test_a_config_without_it_trains_everything():
    """As those of earlier releases."""
    model = classifier()
    model.backbone.blocks[0].trainable = False
    config = model.get_config()
    del config["trainability"], config["backbone"]["config"]["trainability"]
    made = XLNetTextClassifier.from_config(config)
    assert len(made.trainable_variables) == len(made.weights)


def test_a_config_that_names_what_is_not_there(tmp_path):
    model = classifier()
    model.backbone.blocks[0].trainable = False
    model.save_to_preset(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(file.read_text().replace("/block_0", "/block_7"))
    with pytest.raises(ValueError, match="config.json.*names 'xlnet_backbone/block_7', which it"):
        XLNetTextClassifier.from_preset(tmp_path)


# === The constructor and overrides ===


@pytest.mark.parametrize("cls", PUBLIC_MODELS)
def test_trainable_in_the_constructor_freezes_the_layers_inside(cls):
    model = new_model(cls, trainable=False)
    assert not any(state(model).values())
    inputs = {
        key: keras.Input(x.shape[1:], dtype=x.dtype, name=key) for key, x in model.input.items()
    }
    assert not keras.Model(inputs, model(inputs)).trainable_variables


@pytest.mark.parametrize(
    "layer",
    [
        layers.FeedForward(4, trainable=False),
        layers.AddAndNorm(trainable=False),
        layers.SequencePooling("attention", num_heads=2, head_dim=2, trainable=False),
        layers.SequenceSummary(trainable=False),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_made_with_it_are_frozen_in_other_models(layer):
    inputs = keras.Input((5, 8))
    more = [inputs] if isinstance(layer, layers.AddAndNorm) else []
    model = keras.Model(inputs, layer(inputs, *more))
    assert model.weights and not model.trainable_variables
    assert not keras.models.clone_model(model).trainable_variables


def test_layers_of_a_users_model_keep_it(tmp_path):
    inputs = keras.Input((5, 8))
    positions = layers.RelativePositionEncoding(8)(inputs)
    block = layers.TwoStreamBlock(2, 4, 16, name="block")
    model = keras.Model(inputs, block(inputs, position_encoding=positions))
    block.attention.trainable = False
    block.feed_forward_add_and_norm.norm.gamma.trainable = False
    for made in saved(model, tmp_path), keras.models.clone_model(model):
        assert whole_state(made.get_layer("block")) == whole_state(block)
    assert len(model.trainable_variables) < len(model.weights)


def test_freezing_again_freezes_all():
    """With TensorFlow, Keras does nothing when the flag of the model does not change."""
    model = classifier()
    model.backbone.trainable = False
    model.backbone.blocks[0].trainable = True
    model.backbone.trainable = False
    assert len(model.trainable_variables) == 4


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    """Presets of a language model: with a frozen embedding, and frozen as a whole."""
    folder = tmp_path_factory.mktemp("presets")
    model = new_model(XLNetPermutationLM)
    model.backbone.token_embedding.trainable = False
    model.save_to_preset(folder / "embedding")
    model.trainable = False
    model.save_to_preset(folder / "all")
    return folder


def test_the_backbone_of_another_task_is_frozen_alike(presets):
    made = XLNetTextClassifier.from_preset(presets / "embedding", num_classes=2)
    frozen = [v.path for v in made.weights if not v.trainable]
    assert frozen == ["token_embedding/embeddings"]
    made = XLNetTextClassifier.from_preset(presets / "all", num_classes=2)
    assert len(made.trainable_variables) == 4
    assert not XLNetBackbone.from_preset(presets / "all").trainable_variables


@pytest.mark.parametrize(
    "name, overrides, count",
    [
        ("embedding", {"backbone_trainable": False}, 4),
        ("all", {"backbone_trainable": True}, None),
        ("embedding", {"trainable": False}, 0),
        ("all", {"trainable": True}, None),
        ("all", {"trainable": True, "backbone_trainable": False}, 4),
    ],
    ids=str,
)
def test_overrides_hold_for_all_layers_inside(overrides, count, name, presets, tmp_path):
    new = XLNetTextClassifier.from_preset(presets / name, num_classes=2, **overrides)
    new.save_to_preset(tmp_path)
    again = XLNetTextClassifier.from_preset(tmp_path)
    same = XLNetTextClassifier.from_preset(tmp_path, **overrides)
    for model in new, again, same:
        assert len(model.trainable_variables) == (len(model.weights) if count is None else count)


def test_overrides_are_booleans(presets):
    with pytest.raises(ValueError, match="`trainable` must be one of .*'no'"):
        XLNetBackbone.from_preset(presets / "all", trainable="no")


def test_with_arguments_takes_it():
    model = classifier()
    model.backbone.trainable = False
    assert len(model.with_arguments(trainable=True).trainable_variables) == len(model.weights)
    assert not model.with_arguments(trainable=False).trainable_variables


# === Training goes on ===


def trained(model, epochs=1, **kwargs):
    model.fit({"token_ids": IDS}, np.arange(4) % 2, epochs=epochs, verbose=0, **kwargs)
    return model


def fast(model):
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    return model


def exact_classifier():
    backbone = XLNetBackbone(
        *SIZES, dropout=0.0, attention_dropout=0.0, kernel_initializer="glorot_normal"
    )
    return XLNetTextClassifier(backbone, 2, dropout=0.0)


@pytest.mark.parametrize("freezer", ["backbone", "weight", "lora"])
def test_fit_goes_on_exactly(freezer, tmp_path):
    model = exact_classifier()
    FREEZERS[freezer](model)
    loaded = saved(trained(fast(model), 2), tmp_path)
    assert [v.path for v in loaded.optimizer.variables] == [
        v.path for v in model.optimizer.variables
    ]
    for found, expected in zip(trained(loaded).weights, trained(model).weights, strict=True):
        np.testing.assert_array_equal(found, expected, err_msg=expected.path)


@pytest.mark.parametrize("change", ["freeze", "unfreeze"])
def test_the_state_of_the_optimizer_is_that_of_the_weights_of_then(change, tmp_path, recwarn):
    model = exact_classifier()
    model.backbone.trainable = change == "freeze"
    trained(fast(model))
    model.backbone.trainable = change != "freeze"
    recwarn.clear()
    loaded = saved(model, tmp_path)
    assert not [w for w in recwarn if "optimizer" in str(w.message)]
    assert whole_state(loaded) == whole_state(model)
    for found, expected in zip(loaded.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(found, expected)
    if change == "freeze":
        trained(loaded)


def test_a_trained_model_is_quantized_and_saved(tmp_path):
    """Its optimizer has states of weights that are no longer there."""
    model = trained(fast(exact_classifier()))
    model.quantize("int8")
    assert whole_state(saved(model, tmp_path)) == whole_state(model)


def test_gradual_unfreezing_goes_back_to_what_was_frozen(tmp_path):
    model = exact_classifier()
    model.backbone.blocks[0].trainable = False
    before = whole_state(model)
    folder = tmp_path / "half"
    folder.mkdir()
    halves = []
    half = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: halves.append((whole_state(model), saved(model, folder)))
    )
    trained(fast(model), 2, callbacks=[GradualUnfreezing(), half])
    assert whole_state(model) == whole_state(saved(model, tmp_path)) == before
    for expected, made in halves:
        assert whole_state(made) == expected
        for found in made.optimizer.variables:
            assert any(found.path == v.path for v in model.optimizer.variables)


# === LoRA ===


def test_lora_is_copied_with_its_matrices(tmp_path):
    model = exact_classifier()
    model.enable_lora(2, lora_alpha=5)
    trained(fast(model), 2)
    expected = np.asarray(model({"token_ids": IDS}))
    for way in ("keras_file", "with_arguments", "with_vocabulary", "deepcopy"):
        made = WAYS[way](model, tmp_path)
        np.testing.assert_array_equal(made({"token_ids": IDS}), expected, err_msg=way)
        for found, weight in zip(lora_layers(made), lora_layers(model), strict=True):
            np.testing.assert_array_equal(found.lora_kernel_a, weight.lora_kernel_a)
            assert (found.lora_rank, found.lora_alpha) == (2, 5)


def test_lora_in_a_preset_is_merged_and_starts_again(tmp_path):
    model = exact_classifier()
    model.enable_lora(2)
    trained(fast(model), 2)
    made = preset(model, tmp_path)
    ids = {"token_ids": IDS}
    np.testing.assert_allclose(made(ids), model(ids), atol=1e-6)
    for layer in lora_layers(made):
        assert np.any(layer.lora_kernel_a) and not np.any(layer.lora_kernel_b)
    trained(fast(made), 2)
    assert all(np.any(layer.lora_kernel_b) for layer in lora_layers(made))


def test_weights_with_lora_load_into_a_model_without(tmp_path):
    model = exact_classifier()
    plain = exact_classifier()
    plain.save_weights(tmp_path / "plain.weights.h5")
    model.enable_lora(2)
    trained(fast(model), 2)
    model.save_weights(tmp_path / "lora.weights.h5")
    load_average(plain, [tmp_path / "lora.weights.h5"])
    ids = {"token_ids": IDS}
    np.testing.assert_allclose(plain(ids), model(ids), atol=1e-6)
    model.load_weights(tmp_path / "plain.weights.h5")
    trained(fast(model), 1)
    assert all(np.any(layer.lora_kernel_b) for layer in lora_layers(model))

"""Presets that the real KerasHub wrote, and damaged ones."""

import json
import shutil

import h5py
import numpy as np
import pytest

import keras_xlnet
from keras_xlnet.checkpoints import detect_format, detect_task, load_checkpoint, load_keras_hub
from keras_xlnet.checkpoints.keras_hub import KERAS_HUB, ROWS

LAYER = "layers/xl_net_encoder"
MASK = "layers/xl_net_attention_mask_layer/vars/0"


@pytest.fixture(scope="module")
def preset(golden_dir):
    return golden_dir / "keras_hub" / "preset"


@pytest.fixture
def copy(preset, tmp_path):
    return shutil.copytree(preset, tmp_path / "preset")


def outputs_of(model, expected):
    inputs = {key: expected[key] for key in ("token_ids", "segment_ids", "padding_mask")}
    return np.asarray(model(inputs, training=False)["sequence_output"])


def test_outputs_are_those_of_keras_hub(preset, golden):
    expected = golden("keras_hub/outputs.npz")
    model = load_keras_hub(preset)
    assert (model.dropout, model.attention_dropout, model.activation.__name__) == (0, 0, "gelu")
    outputs = outputs_of(model, expected)
    np.testing.assert_allclose(outputs, expected["sequence_output"], rtol=0, atol=1e-5)
    # Another activation is another model: the comparison can see a difference.
    tanh = outputs_of(load_keras_hub(preset, activation="gelu_tanh"), expected)
    assert np.abs(tanh - expected["sequence_output"]).max() > 1e-4


def test_every_weight_is_used_once(preset):
    opened = KERAS_HUB.open(preset)
    names = [match.name for match in opened.matches]
    assert len(set(names)) == len(names) == len(opened.model.weights)
    # Each has one row, and each row is of a weight.
    paths = {weight.path.replace("block_1", "block_{layer}") for weight in opened.model.weights}
    assert {path for path in paths if "block_0" not in path} == {row.path for row in ROWS}
    assert opened.unused() == [MASK]
    opened.load()
    for match in opened.matches:
        value = opened.files.read(match.name)[...]
        value = value if match.axes is None else value.transpose(match.axes)
        np.testing.assert_array_equal(match.weight, value, err_msg=match.name)


def test_it_is_a_format_that_can_be_read(preset, tmp_path):
    assert (detect_format(preset), detect_task(preset)) == ("keras_hub", None)
    assert keras_xlnet.checkpoints.load_tokenizer(preset) is None
    model = load_checkpoint(preset, memory_length=3)
    assert model.memory_length == 3
    with pytest.raises(ValueError, match="KerasHub has no model for the task 'text_classifier'"):
        load_checkpoint(preset, task="text_classifier")
    with pytest.raises(ValueError, match="`format` must be one of"):
        keras_xlnet.checkpoints.save_checkpoint(model, tmp_path, "keras_hub")
    with pytest.raises(ValueError, match="it is KerasHub's: see .*load_keras_hub"):
        keras_xlnet.models.XLNetBackbone.from_preset(preset)


def test_arguments(preset):
    assert load_keras_hub(preset, dropout=0.3, attention_type="uni").dropout == 0.3
    with pytest.raises(ValueError, match=r"\['num_heads'\] are fixed by the checkpoint"):
        load_keras_hub(preset, num_heads=4)


# === Other configurations ===


def edit_config(directory, **entries):
    """Sets entries of the model's configuration; `None` removes one."""
    file = directory / "config.json"
    config = json.loads(file.read_text())
    config["config"] |= entries
    config["config"] = {key: v for key, v in config["config"].items() if v is not None}
    file.write_text(json.dumps(config))


def edit_weight(directory, name, edit):
    with h5py.File(directory / "model.weights.h5", "a") as root:
        value = edit(root[name][...])
        del root[name]
        root[name] = value


def test_what_is_no_size_is_read_too(copy):
    edit_config(copy, trainable=False, kernel_initializer_range=0.5)
    model = load_keras_hub(copy)
    assert not model.trainable_weights
    assert model.kernel_initializer.stddev == 0.5


def test_activations(copy):
    function = {"module": "builtins", "class_name": "function", "config": "relu"}
    edit_config(copy, activation=function)
    assert load_keras_hub(copy).activation.__name__ == "relu"
    edit_config(copy, activation={**function, "module": "os", "config": "system"})
    with pytest.raises(ValueError, match="has the activation .*'system'.*: pass `activation`"):
        load_keras_hub(copy)
    assert load_keras_hub(copy, activation="tanh").activation.__name__ == "tanh"


def test_bfloat16(copy):
    import ml_dtypes

    edit_config(copy, dtype={"module": "keras", "config": {"name": "bfloat16"}})
    name = "layers/content_and_query_embedding/word_embed/vars/0"
    expected = np.asarray(load_keras_hub(copy).token_embedding.embeddings)
    expected = expected.astype(ml_dtypes.bfloat16)
    edit_weight(copy, name, lambda value: value.astype(ml_dtypes.bfloat16).view("V2"))
    with h5py.File(copy / "model.weights.h5", "a") as root:
        root[name].attrs["dtype"] = "bfloat16"
    found = load_keras_hub(copy).token_embedding.embeddings
    np.testing.assert_array_equal(np.asarray(found), expected.astype("float32"))


# === Errors ===


def unregister(directory):
    config = json.loads((directory / "config.json").read_text())
    config["registered_name"] = "keras_hub>BertBackbone"
    (directory / "config.json").write_text(json.dumps(config))


def remove(directory, name):
    with h5py.File(directory / "model.weights.h5", "a") as root:
        del root[name]


def link_to_another_file(directory):
    other = directory.parent / "other.h5"
    shutil.copy(directory / "model.weights.h5", other)
    with h5py.File(directory / "model.weights.h5", "a") as root:
        del root[f"{LAYER}/vars/0"]
        root[f"{LAYER}/vars/0"] = h5py.ExternalLink(str(other), f"{LAYER}/vars/0")


def store_elsewhere(directory):
    other = directory.parent / "other.bin"
    other.write_bytes(bytes(64))
    with h5py.File(directory / "model.weights.h5", "a") as root:
        del root[f"{LAYER}/vars/0"]
        root.create_dataset(f"{LAYER}/vars/0", (2, 8), "float32", external=[(str(other), 0, 64)])


def store_nothing(directory):
    with h5py.File(directory / "model.weights.h5", "a") as root:
        del root[f"{LAYER}/vars/0"]
        root.create_dataset(f"{LAYER}/vars/0", (2, 8), "float32", chunks=(2, 8))


BAD_PRESETS = {
    "no-config": (lambda d: (d / "config.json").unlink(), "config.json is missing"),
    "no-weights": (lambda d: (d / "model.weights.h5").unlink(), "weights.h5 is missing"),
    "not-hdf5": (
        lambda d: (d / "model.weights.h5").write_bytes(b"not at all"),
        "model.weights.h5 cannot be read as HDF5",
    ),
    "truncated": (
        lambda d: (d / "model.weights.h5").write_bytes(
            (d / "model.weights.h5").read_bytes()[:-5000]
        ),
        "model.weights.h5 cannot be read as HDF5",
    ),
    "another-model": (unregister, "is of 'keras_hub>BertBackbone', not 'keras_hub>XLNetBackb"),
    "no-size": (lambda d: edit_config(d, hidden_dim=None), r"has no \['hidden_dim'\]"),
    "text-for-a-number": (
        lambda d: edit_config(d, num_heads="2"),
        "config.json: `num_heads` must be a positive integer",
    ),
    "unknown": (lambda d: edit_config(d, rotary=True), r"config.json has \['rotary'\], which"),
    "endless": (lambda d: edit_config(d, num_layers=10**12), "has only"),
    "few-layers": (
        lambda d: edit_config(d, num_layers=1),
        "'layers/xl_net_encoder_1/.* is not a weight of the model that its configuration",
    ),
    "many-layers": (lambda d: edit_config(d, num_layers=3), "lacks 17 of 52 weights"),
    "missing": (
        lambda d: remove(d, f"{LAYER}/vars/3"),
        rf"lacks 1 of 35 .*: '{LAYER}/vars/3'.*Expected '{LAYER}/vars/3' of shape \(2, 2, 8\)",
    ),
    "shape": (
        lambda d: edit_config(d, vocabulary_size=31),
        r"word_embed/vars/0' in .*weights.h5 has shape \(30, 16\), expected \(31, 16\)",
    ),
    "integers": (
        lambda d: edit_weight(d, f"{LAYER}/vars/0", lambda value: value.astype("int8")),
        f"'{LAYER}/vars/0' in .* is of dtype int8, expected float32",
    ),
    "link": (link_to_another_file, f"lacks 1 of 35 weights of the model: '{LAYER}/vars/0'"),
    "elsewhere": (store_elsewhere, "vars/0' in .* is empty, compressed or stored in another"),
    "not-stored": (store_nothing, "vars/0' in .* is empty, compressed or stored in another"),
}


@pytest.mark.parametrize("damage, message", BAD_PRESETS.values(), ids=BAD_PRESETS)
def test_bad_presets(damage, message, copy):
    damage(copy)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_keras_hub(copy)

"""Files that the real old keras-xlnet wrote, and damaged ones."""

import json
import shutil
import warnings

import h5py
import keras
import numpy as np
import pytest

import keras_xlnet
from keras_xlnet.checkpoints import (
    detect_format,
    detect_task,
    load_checkpoint,
    load_keras_xlnet_h5,
)
from keras_xlnet.checkpoints.keras_xlnet_h5 import KERAS_XLNET_H5, keras_xlnet_rows

FILES = ("encoder.h5", "trainer.h5")
PADDING = 5


@pytest.fixture(scope="module")
def folder(golden_dir):
    return golden_dir / "keras_xlnet_h5"


@pytest.fixture(scope="module")
def expected(golden):
    return golden("keras_xlnet_h5/outputs.npz")


@pytest.fixture
def copies(folder, tmp_path):
    for name in FILES:
        shutil.copy(folder / name, tmp_path)
    return tmp_path


def test_the_encoder_with_memory(folder, expected):
    model = load_keras_xlnet_h5(folder / "encoder.h5")
    config = model.get_config()
    stated = {"num_heads": 2, "dropout": 0.1, "attention_dropout": 0, "activation": "gelu_tanh"}
    stated |= {"memory_length": 4, "attention_type": "uni", "tie_attention_biases": True}
    assert {key: config[key] for key in stated} == stated
    memory = {}
    for i in range(2):
        inputs = {key: expected[key][i] for key in ("token_ids", "segment_ids")}
        outputs = model({**inputs, **memory}, training=False)
        np.testing.assert_allclose(
            outputs["sequence_output"], expected[f"encoder_output_{i}"], rtol=0, atol=1e-5
        )
        memory = {"memory": outputs["memory"]}


def test_the_trainer(folder, expected):
    model = load_keras_xlnet_h5(
        folder / "trainer.h5", "permutation_lm", num_heads=2, partial_prediction=False
    )
    assert not model.backbone.tie_attention_biases
    ids = expected["padded_ids"]
    logits = model(
        {
            "token_ids": ids,
            "segment_ids": expected["segment_ids"][0],
            "padding_mask": ids != PADDING,
            # All other tokens are seen, as keras-xlnet does outside of training.
            "permutation_mask": np.broadcast_to(~np.eye(6, dtype=bool), (2, 6, 6)),
            "target_mask": expected["targets"].astype(bool),
        },
        training=False,
    )["logits"]
    found = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
    is_real = ids != PADDING
    np.testing.assert_allclose(
        found[is_real], expected["trainer_output"][is_real], rtol=0, atol=1e-5
    )


@pytest.mark.parametrize(
    "name, task", [("encoder.h5", None), ("trainer.h5", "permutation_lm"), ("trainer.h5", None)]
)
def test_every_weight_is_used_once(name, task, folder):
    opened = KERAS_XLNET_H5.open(folder / name, task, num_heads=2)
    kernels = {match.name for match in opened.matches if match.name.endswith("/kernel")}
    assert kernels == {"Attention-1/kernel", "Attention-2/kernel"}
    places = [(match.name, str(match.view)) for match in opened.matches]
    assert len(set(places)) == len(places) == len(opened.model.weights)
    is_part = name == "trainer.h5" and task is None
    assert opened.unused() == (["Embed-Mask/embeddings", "Softmax/bias"] if is_part else [])
    # All numbers of the file are in the model, each as often.
    model = opened.load()
    ours = np.concatenate([np.ravel(weight) for weight in model.weights])
    names = {match.name for match in opened.matches}
    theirs = np.concatenate([np.ravel(opened.files.read(name)[...]) for name in names])
    np.testing.assert_array_equal(np.sort(ours), np.sort(theirs))


def test_every_row_is_of_a_weight(folder):
    tied = load_keras_xlnet_h5(folder / "encoder.h5")
    untied = load_keras_xlnet_h5(folder / "trainer.h5", "permutation_lm", num_heads=2)
    paths = {weight.path for model in (tied, untied) for weight in model.weights}
    rows = {row.path.replace("{layer}", "1") for row in keras_xlnet_rows(untied)}
    assert rows == {path for path in paths if not path.startswith("block_0/")}


def test_it_is_a_format_that_can_be_read(folder, tmp_path):
    for name, task in zip(FILES, (None, "permutation_lm"), strict=True):
        assert detect_format(folder / name) == "keras_xlnet_h5"
        assert detect_task(folder / name) == task
        assert keras_xlnet.checkpoints.load_tokenizer(folder / name) is None
    model = load_checkpoint(folder / "encoder.h5", memory_length=None, attention_type="bi")
    assert (model.memory_length, model.attention_type) == (None, "bi")
    with pytest.raises(ValueError, match="The old keras-xlnet has no model for the task 'text_cl"):
        load_checkpoint(folder / "encoder.h5", task="text_classifier")


def test_a_head_that_is_not_there_is_new(folder):
    with pytest.warns(UserWarning, match="no fine-tuned 'Embed-Mask/embeddings', 'Softmax/bias'"):
        load_keras_xlnet_h5(folder / "encoder.h5", "permutation_lm", attention_type="bi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_keras_xlnet_h5(folder / "trainer.h5", "permutation_lm", num_heads=2)


def test_names_of_other_releases(copies):
    # As a model that is a layer of another one, and as TensorFlow 1 names layers again.
    with h5py.File(copies / "trainer.h5", "a") as root:
        names = [name for name in root if "top" not in name]
        for name in names:
            root.move(name, f"model/{name}_1" if name.startswith("Attention") else f"model/{name}")
        attention = root["model/Attention-1_1"]
        attention.move("Attention-1", "Attention-1_1")
    load_keras_xlnet_h5(copies / "trainer.h5", "permutation_lm", num_heads=2)


# === Errors ===


def edit_config(file, layer, **entries):
    with h5py.File(file, "a") as root:
        config = json.loads(root.attrs["model_config"])
        for entry in config["config"]["layers"]:
            if entry["config"]["name"] == layer:
                entry["config"] |= entries
        root.attrs["model_config"] = json.dumps(config)


def edit(file, name, value=None):
    """Sets an array; removes it for `None`."""
    with h5py.File(file, "a") as root:
        if name in root:
            del root[name]
        if value is not None:
            root[name] = value


BIAS = "model_weights/Segment-Bias/Segment-Bias/bias_segment:0"
BAD_FILES = {
    "attention": (
        lambda f: edit_config(f, "Attention-1", activation="relu"),
        "has another `activation` than 'linear' in the layer 'Attention-1'",
    ),
    "not-hdf5": (lambda f: f.write_bytes(b"not at all"), "encoder.h5 cannot be read as HDF5"),
    "none": (lambda f: f.unlink(), "encoder.h5 is missing"),
    "missing": (
        lambda f: edit(f, BIAS),
        r"encoder.h5 lacks 1 of .*: 'Segment-Bias/bias_segment'.* of shape \(16,\)",
    ),
    "shape": (
        lambda f: edit(f, BIAS, np.ones(8, "float32")),
        r"'Segment-Bias/bias_segment' in .*encoder.h5 has shape \(8,\), expected \(16,\)",
    ),
    "dtype": (lambda f: edit(f, BIAS, np.ones(16, "int8")), "is of dtype int8, expected float32"),
    "twice": (
        lambda f: edit(f, "model_weights/a/Segment-Bias/bias_segment:0", np.ones(16, "float32")),
        "several weights 'Segment-Bias/bias_segment'",
    ),
    "with-biases": (
        lambda f: edit(f, "model_weights/a/Attention-1/bias:0", np.ones(80, "float32")),
        "'Attention-1/bias' in .*encoder.h5 is not a weight of the model",
    ),
    "another-model": (
        lambda f: edit(f, "model_weights/Embed-Token"),
        "encoder.h5 is not of a model of keras-xlnet: .*, but, for example, 'Attention-1/kernel'",
    ),
    "no-layers": (
        lambda f: edit(f, "model_weights/Attention-2/Attention-2/kernel:0"),
        "encoder.h5 is not a weight of the model that its configuration",
    ),
    "config-not-json": (
        lambda f: set_config(f, "{"),
        "`model_config` in .*encoder.h5 is not JSON",
    ),
    "nested": (lambda f: set_config(f, "[" * 10**5), "`model_config` in .* is not JSON"),
    "heads": (
        lambda f: edit_config(f, "Attention-1", num_head="2"),
        "encoder.h5 has `num_head` '2' in the layer 'Attention-1'",
    ),
    "activation": (
        lambda f: edit_config(f, "FeedForward-1", activation="os.system"),
        "encoder.h5: .*os.system",
    ),
    "clamp": (
        lambda f: edit_config(f, "Embed-Pos", directional=False, clamp_len=3),
        "encoder.h5 has `clamp_len` 3, with which keras-xlnet",
    ),
}


def set_config(file, text):
    with h5py.File(file, "a") as root:
        root.attrs["model_config"] = text[:60000]


@pytest.mark.parametrize("damage, message", BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files(damage, message, copies):
    damage(copies / "encoder.h5")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        load_keras_xlnet_h5(copies / "encoder.h5")


def test_clamp_length_can_be_chosen(copies):
    file = copies / "encoder.h5"
    edit_config(file, "Embed-Pos", clamp_len=3)
    assert load_keras_xlnet_h5(file).clamp_length == 3
    edit_config(file, "Embed-Pos", directional=False)
    assert load_keras_xlnet_h5(file, clamp_length=None).clamp_length is None


def test_the_newer_layout_of_keras_is_refused(golden_dir):
    file = golden_dir / "keras_hub" / "preset" / "model.weights.h5"
    with pytest.raises(
        ValueError, match="is not of a model of keras-xlnet: .* for example, 'layers/"
    ):
        load_keras_xlnet_h5(file, num_heads=2)


@pytest.mark.parametrize(
    "name, arguments, message",
    [
        ("trainer.h5", {}, "does not state the number of heads: pass `num_heads`"),
        ("trainer.h5", {"num_heads": 3}, "`hidden_dim` must be a multiple of `num_heads`"),
        ("encoder.h5", {"num_heads": 4}, "of a model with num_heads=2. Received: 4"),
        ("encoder.h5", {"hidden_dim": 4}, r"\['hidden_dim'\] are fixed by the checkpoint"),
    ],
)
def test_bad_arguments(name, arguments, message, folder):
    with pytest.raises(ValueError, match=message):
        load_keras_xlnet_h5(folder / name, **arguments)


def test_the_epsilon_is_read(copies):
    file = copies / "encoder.h5"
    edit_config(file, "Attention-Normal-1", epsilon=1e-3)
    assert load_keras_xlnet_h5(file).layer_norm_epsilon == 1e-3

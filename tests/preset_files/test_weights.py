"""Weights of a model in a file: written once, compared before anything is assigned."""

import json
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_xlnet.checkpoints import load_original, save_original
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.preset_files.weights import (
    assign_in_blocks,
    load_weights,
    model_weights,
    save_weights,
)

KERNEL = "block_0/feed_forward/intermediate/kernel"
BIAS = "block_0/feed_forward/intermediate/bias"


@pytest.fixture(scope="module")
def model():
    return XLNetBackbone(20, 1, 1, 8, 16, kernel_initializer="glorot_normal")


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    file = tmp_path_factory.mktemp("saved") / "model.safetensors"
    save_weights(model, file)
    return file


@pytest.fixture
def file(saved, tmp_path):
    return shutil.copy(saved, tmp_path / "model.safetensors")


@pytest.fixture(scope="module")
def fresh():
    """A second model; tests that load nothing leave it as it was."""
    return XLNetBackbone(20, 1, 1, 8, 16)


def assert_same(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


def test_weights_come_back(model, file):
    copy = XLNetBackbone(20, 1, 1, 8, 16)
    assert any((a != b).any() for a, b in zip(model.get_weights(), copy.get_weights(), strict=True))
    load_weights(copy, file)
    assert_same(model.get_weights(), copy.get_weights())


def test_names_are_paths_of_variables(model, file):
    shapes = {name: value.shape for name, value in load_file(file).items()}
    assert shapes == {w.path: tuple(w.shape) for w in model.weights}


def test_seeds_optimizer_and_memory_are_not_saved(tmp_path):
    backbone = XLNetBackbone(20, 1, 1, 8, 16, memory_length=3)
    model = XLNetPermutationLM(backbone, stateful=True, batch_size=2)
    model.optimizer.build(model.trainable_variables)
    save_weights(model, tmp_path / "model.safetensors")
    names = set(load_file(tmp_path / "model.safetensors"))
    assert names == {w.path for w in model.trainable_variables}
    assert {v.path for v in model.variables} - names, "the model has nothing else to leave out"


def test_paths_that_are_not_unique_are_refused(tmp_path):
    class Pair(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.parts = [keras.layers.Dense(2, name="part"), keras.layers.Dense(3, name="part")]

        def call(self, x):
            return keras.ops.concatenate([part(x) for part in self.parts], axis=-1)

    inputs = keras.Input((4,))
    model = keras.Model(inputs, Pair()(inputs))
    message = r"same path: \['pair.*/part/bias', 'pair.*/part/kernel'\]. Give their layers differ"
    with pytest.raises(ValueError, match=message):
        save_weights(model, tmp_path / "model.safetensors")
    assert not (tmp_path / "model.safetensors").exists()


def test_a_model_made_in_a_name_scope(model, file, tmp_path):
    with keras.name_scope("outer"):
        scoped = XLNetBackbone(20, 1, 1, 8, 16)
    assert all(weight.path.startswith("outer/") for weight in scoped.weights)
    load_weights(scoped, file)
    assert_same(model.get_weights(), scoped.get_weights())
    scoped.save_to_preset(tmp_path)
    save_original(scoped, tmp_path / "original")
    for copy in XLNetBackbone.from_preset(tmp_path), load_original(tmp_path / "original"):
        assert_same(model.get_weights(), copy.get_weights())


@pytest.mark.parametrize("mode", [None, "int8"])
def test_lora_is_merged_into_weights_that_are_not_quantized(mode, rng, tmp_path):
    model = XLNetBackbone(20, 1, 1, 8, 16, kernel_initializer="glorot_normal")
    if mode:
        model.quantize(mode)
    before = set(model_weights(model))
    dense = model.blocks[0].feed_forward.output_dense
    dense.enable_lora(2)
    dense.lora_kernel_b.assign(rng.normal(size=(2, 8)))
    inputs = {"token_ids": rng.integers(0, 20, (2, 5))}
    expected = model(inputs)["sequence_output"]
    model.save_to_preset(tmp_path)
    matrices = {f"block_0/feed_forward/output/lora_kernel_{name}" for name in "ab"}
    assert set(load_file(tmp_path / "model.safetensors")) == before | (matrices if mode else set())
    loaded = XLNetBackbone.from_preset(tmp_path)(inputs)["sequence_output"]
    np.testing.assert_allclose(loaded, expected, rtol=0, atol=0 if mode else 1e-6)


@pytest.mark.parametrize("mode", ["int8", "int4"])
def test_quantized_weights_come_back(mode, rng, tmp_path):
    model = XLNetBackbone(20, 1, 1, 8, 16, kernel_initializer="glorot_normal")
    model.quantize(mode)
    model.save_to_preset(tmp_path)
    copy = XLNetBackbone.from_preset(tmp_path)
    assert "int8" in {w.dtype for w in copy.weights}
    assert_same(model.get_weights(), copy.get_weights())


def test_scalars_come_back(tmp_path):
    class Scale(keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

        def call(self, x):
            return self.scale * x

    inputs = keras.Input((4,))
    model = keras.Model(inputs, Scale(name="scale")(inputs))
    model.weights[0].assign(3.0)
    save_weights(model, tmp_path / "model.safetensors")
    model.weights[0].assign(0.0)
    load_weights(model, tmp_path / "model.safetensors")
    assert float(model.weights[0].numpy()) == 3.0


# === What is refused ===


def change(file, name, value):
    tensors = load_file(file)
    tensors[name] = np.asarray(value(tensors[name]) if callable(value) else value, order="C")
    save_file(tensors, file)


def drop(file, *names):
    tensors = load_file(file)
    save_file({key: value for key, value in tensors.items() if key not in names}, file)


def drop_block(file):
    drop(file, *(name for name in load_file(file) if name.startswith("block_0/")))


def edit_header(edit):
    """Returns a function that rewrites the JSON header of a file, and nothing else."""

    def damage(file):
        content = file.read_bytes()
        length = int.from_bytes(content[:8], "little")
        header = edit(content[8 : 8 + length].decode()).encode()
        file.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])

    return damage


def edit_entry(**changes):
    def edit(text):
        header = json.loads(text)
        header[BIAS] |= changes
        return json.dumps(header)

    return edit_header(edit)


def duplicate_with_other_values(text):
    header = json.loads(text)
    entry = json.dumps({BIAS: header["block_0/feed_forward/output/bias"]})
    return text.rstrip().removesuffix("}") + "," + entry.removeprefix("{")


UNREADABLE = "cannot be read as safetensors"
DAMAGES = {
    "shape": (
        lambda f: change(f, KERNEL, np.zeros((8, 15), "float32")),
        rf"'{KERNEL}' in .*model.safetensors has shape \(8, 15\), expected \(8, 16\) by its conf",
    ),
    "transposed": (lambda f: change(f, KERNEL, np.transpose), r"has shape \(16, 8\)"),
    "scalar": (
        lambda f: change(f, BIAS, np.array(1, "float32")),
        r"has shape \(\), expected \(16,\)",
    ),
    "missing": (
        lambda f: drop(f, BIAS),
        f"safetensors lacks 1 of 18 weights of the model: '{BIAS}",
    ),
    "missing_block": (drop_block, "lacks 17 of 18 weights .* and 14 more"),
    "renamed": (
        lambda f: (change(f, "theirs", np.zeros(16, "float32")), drop(f, BIAS)),
        f"lacks 1 of 18 weights of the model: '{BIAS}'. It has, for example, 'theirs'",
    ),
    "unexpected": (
        lambda f: change(f, "other/kernel", np.zeros(3, "float32")),
        "'other/kernel' in .*model.safetensors is not a weight of the model that its config",
    ),
    "several": (
        lambda f: (change(f, KERNEL, np.transpose), change(f, BIAS, np.zeros(1, "float32"))),
        "and 1 more problems",
    ),
    "float16": (
        lambda f: change(f, KERNEL, lambda x: x.astype("float16")),
        f"{KERNEL}' in .* is of dtype float16, expected float32. To load .* pass dtype='float16'",
    ),
    "float64": (lambda f: change(f, KERNEL, lambda x: x.astype("float64")), "is of dtype float64"),
    "int": (
        lambda f: change(f, BIAS, lambda x: x.astype("int64")),
        "is of dtype int64, expected float32$",
    ),
    "bool": (lambda f: change(f, BIAS, lambda x: x > 0), "is of dtype bool, expected float32$"),
    "truncated": (lambda f: f.write_bytes(f.read_bytes()[:-1000]), UNREADABLE),
    "longer": (lambda f: f.write_bytes(f.read_bytes() + b"more"), UNREADABLE),
    "header_only": (lambda f: f.write_bytes(f.read_bytes()[:100]), UNREADABLE),
    "empty": (lambda f: f.write_bytes(b""), UNREADABLE),
    "another_format": (lambda f: f.write_bytes(b"PK" + bytes(5000)), UNREADABLE),
    "huge_header": (lambda f: f.write_bytes((2**40).to_bytes(8, "little") + b"{}"), UNREADABLE),
    "not_json": (edit_header(lambda text: "{" + text), UNREADABLE),
    "nested": (edit_header(lambda text: "[" * 10**5), UNREADABLE),
    "unknown_dtype": (edit_entry(dtype="F31"), UNREADABLE),
    "overlap": (edit_entry(data_offsets=[0, 64]), UNREADABLE),
    "beyond_the_end": (edit_entry(data_offsets=[2**40, 2**40 + 64]), UNREADABLE),
    "shape_of_other_size": (edit_entry(shape=[17]), UNREADABLE),
    "negative_shape": (edit_entry(shape=[-16]), UNREADABLE),
    "duplicate": (edit_header(duplicate_with_other_values), UNREADABLE),
}


@pytest.mark.parametrize("damage, message", DAMAGES.values(), ids=DAMAGES)
def test_files_that_do_not_fit_are_refused_and_change_nothing(fresh, file, damage, message):
    before = fresh.get_weights()
    damage(file)
    with pytest.raises(ValueError, match=message) as caught:
        load_weights(fresh, file)
    assert str(file) in str(caught.value)
    assert_same(before, fresh.get_weights())


def test_other_floats_are_converted_only_when_asked_for(model, fresh, file):
    change(file, KERNEL, lambda x: x.astype("float16"))
    copy = XLNetBackbone(20, 1, 1, 8, 16)
    load_weights(copy, file, cast=True)
    dense = copy.blocks[0].feed_forward.intermediate_dense
    expected = np.asarray(model.blocks[0].feed_forward.intermediate_dense.kernel)
    np.testing.assert_array_equal(dense.kernel, expected.astype("float16").astype("float32"))
    change(file, KERNEL, lambda x: x.astype("int32"))
    with pytest.raises(ValueError, match="is of dtype int32, expected .*float32"):
        load_weights(fresh, file, cast=True)


def test_bfloat16_is_read_as_it_was_written(fresh, tmp_path):
    half = XLNetBackbone(20, 1, 1, 8, 16, dtype="bfloat16")
    file = tmp_path / "model.safetensors"
    save_weights(half, file)
    copy = XLNetBackbone(20, 1, 1, 8, 16, dtype="bfloat16")
    load_weights(copy, file)
    assert_same(half.get_weights(), copy.get_weights())
    with pytest.raises(ValueError, match="is of dtype bfloat16, expected float32"):
        load_weights(fresh, file)
    full = XLNetBackbone(20, 1, 1, 8, 16)
    load_weights(full, file, cast=True)
    assert_same([w.astype("float32") for w in half.get_weights()], full.get_weights())


def test_weights_that_are_converted_to_be_stored(model, fresh, file):
    save_weights(model, file, dtype="float16")
    copy = XLNetBackbone(20, 1, 1, 8, 16)
    load_weights(copy, file)
    expected = [w.astype("float16").astype("float32") for w in model.get_weights()]
    assert_same(expected, copy.get_weights())
    # The same weights in a file that does not declare it, or declares another dtype.
    for metadata, message in (
        ({}, "is of dtype float16, expected float32"),
        ({"stored_dtype": "bfloat16"}, "is of dtype float16, expected bfloat16 or float32"),
        ({"stored_dtype": "int8"}, "declares stored_dtype='int8', expected one of"),
    ):
        save_file(load_file(file), file, metadata=metadata)
        with pytest.raises(ValueError, match=message):
            load_weights(fresh, file)


def test_weights_that_would_be_infinite_are_named(tmp_path):
    model = XLNetBackbone(20, 1, 1, 8, 16)
    kernel = model.blocks[0].feed_forward.intermediate_dense.kernel
    value = np.zeros((8, 16), "float32")
    value[1, 2] = -65520.0  # The smallest that float16 rounds to infinity.
    kernel.assign(value)
    file = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match=f"'{KERNEL}' cannot be saved .*'float16'.* as 65520, "):
        save_weights(model, file, dtype="float16")
    assert not file.exists()
    save_weights(model, file, dtype="bfloat16")
    kernel.assign(np.where(value < 0, -65519.0, value))
    save_weights(model, file, dtype="float16")
    assert np.isfinite(load_file(file)[KERNEL]).all()


@pytest.mark.parametrize("block_bytes", [1, 24, 100])
def test_blocks_of_rows_are_all_assigned(block_bytes, monkeypatch, rng):
    monkeypatch.setattr("keras_xlnet.preset_files.weights._BLOCK_BYTES", block_bytes)
    value = rng.normal(size=(7, 3)).astype("float32")
    variable = keras.Variable(np.zeros((7, 3)))
    assign_in_blocks(variable, value)
    np.testing.assert_array_equal(variable, value)


@pytest.mark.parametrize("block_bytes", [1, 64, 96])  # 20 rows of 32 bytes: 1, 2 and 3 at a time
def test_large_weights_are_read_in_blocks_from_the_file(model, file, monkeypatch, block_bytes):
    monkeypatch.setattr("keras_xlnet.preset_files.weights._BLOCK_BYTES", block_bytes)
    copy = XLNetBackbone(20, 1, 1, 8, 16)
    load_weights(copy, file)
    assert_same(model.get_weights(), copy.get_weights())

import importlib
import json
import sys

import keras
import pytest

from keras_xlnet.layers import gelu_tanh
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.preset_files.trusted_config import read_config, trusted


@keras.saving.register_keras_serializable(package="test_trusted_config")
def swish_of_a_user(x):
    return keras.ops.silu(x)


def unregistered(x):
    return x


@pytest.fixture(scope="module")
def config():
    return keras.saving.serialize_keras_object(XLNetBackbone(20, 1, 1, 8, 16))


@pytest.fixture
def read(tmp_path, config):
    """Reads a config with other values in it, or another text."""

    def read_with(text=None, **values):
        changed = {**config, "config": {**config["config"], **values}}
        file = tmp_path / "config.json"
        file.write_bytes(json.dumps(changed).encode() if text is None else text)
        return read_config(file, XLNetBackbone)

    return read_with


def entry(class_name, config=None, module=None, registered_name=None):
    return {
        "module": module,
        "class_name": class_name,
        "config": {} if config is None else config,
        "registered_name": registered_name,
    }


@pytest.mark.parametrize(
    "value",
    [
        keras.initializers.TruncatedNormal(0.1, seed=3),
        keras.initializers.Constant(2.0),
        keras.DTypePolicy("mixed_bfloat16"),
        keras.dtype_policies.QuantizedDTypePolicy("int8", "float32"),
        gelu_tanh,
        swish_of_a_user,
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_configs_of_the_package_hold_is_trusted(read, value):
    serialized = keras.saving.serialize_keras_object(value)
    assert read(kernel_initializer=serialized)["config"]["kernel_initializer"] == serialized


def test_what_keras_adds_for_building_and_compiling_is_left_out(read, config):
    assert "build_config" in config
    plain = entry("GlorotNormal", module="keras.initializers")
    added = {"shared_object_id": 7, "compile_config": {"optimizer": "adam"}}
    result = read(kernel_initializer={**plain, **added})
    assert result["config"]["kernel_initializer"] == plain


def test_unset_arguments_of_a_newer_keras_are_dropped(read):
    # Keras 3.15 writes `input_axes`, which Keras 3.12 does not have.
    given = {"seed": 3, "stddev": 0.1, "newer": None}
    result = read(kernel_initializer=entry("RandomNormal", {**given}, "keras.initializers"))
    assert result["config"]["kernel_initializer"]["config"] == {"seed": 3, "stddev": 0.1}
    given["newer"] = 2
    result = read(kernel_initializer=entry("RandomNormal", {**given}, "keras.initializers"))
    assert result["config"]["kernel_initializer"]["config"] == given  # Keras refuses it.
    assert set(result) == {"module", "class_name", "config", "registered_name"}


HOSTILE = {
    "os": entry("function", "system", "os", "system"),
    "subprocess": entry("Popen", {"args": "true"}, "subprocess", "Popen"),
    "builtins": entry("function", "eval", "builtins", "eval"),
    "builtin_class": entry("type", {}, "builtins"),
    "get_file": entry("function", "get_file", "keras.utils"),
    "load_model": entry("function", "load_model", "keras.saving"),
    "activation": entry("function", "relu", "keras.activations"),
    "op": entry("function", "relu", "keras.ops"),
    "private": entry("function", "get_file", "keras.src.utils.file_utils"),
    "below_activations": entry("function", "relu", "keras.activations.keras"),
    "lambda": entry("__lambda__", {"value": ["4wAA", None, None]}),
    "lambda_in_disguise": entry(
        "__lambda__", {"value": []}, "keras.initializers", "keras_xlnet>XLNetBackbone"
    ),
    "function_in_disguise": entry(
        "function", "system", "keras.initializers", "keras_xlnet>XLNetBackbone"
    ),
    "typespec": {**entry("__typespec__", [], "tensorflow"), "spec_name": "TensorSpec"},
    "numpy": entry("__numpy__", {"value": [1], "dtype": "object"}),
    "lambda_layer": entry("Lambda", {"function": "x"}, "keras.layers"),
    "layer": entry("Dense", {"units": 1}, "keras.layers"),
    "unregistered": entry("function", "unregistered", "tests", "unregistered"),
    "other_registered_name": entry("GlorotNormal", {}, "keras.initializers", "os>system"),
    "not_an_initializer": entry("Initializers", {}, "keras.initializers"),
    "not_a_policy": entry("Model", {}, "keras"),
    "no_name": entry(None, {}, "keras.initializers"),
    "list_as_name": entry(["GlorotNormal"], {}, "keras.initializers"),
    "list_as_module": entry("GlorotNormal", {}, ["keras.initializers"]),
    "list_as_function": entry("function", ["relu"], "keras.activations"),
    "no_function": entry("function", "nothing", "keras.activations"),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_anything_else_is_refused_wherever_it_is(read, hostile):
    nested = entry("Constant", {"value": [1, {"a": hostile}]}, "keras.initializers")
    for values, place in (
        ({"activation": hostile}, "config/activation"),
        ({"kernel_initializer": nested}, "config/kernel_initializer/config/value/1/a"),
        ({"anything": {"deep": [hostile]}}, "config/anything/deep/0"),
    ):
        with pytest.raises(ValueError, match=f"config.json: entry {place} names .*registered"):
            read(**values)


def test_nothing_is_imported(read, tmp_path, monkeypatch):
    name = "named_by_a_config"
    (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="names"):
        read(activation=entry("Backbone", {}, name))
    assert name not in sys.modules
    # It could have been.
    importlib.import_module(name)
    del sys.modules[name]


@pytest.mark.parametrize(
    "text, message",
    [
        (b"not JSON", "is not JSON"),
        (b"\xff\x00\x01", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1, 2]", r"must hold a JSON object, not \[1, 2\]"),
        (b'"text"', "must hold a JSON object"),
        (b"{}", "holds a None, not the 'keras_xlnet>XLNetBackbone'"),
        (b'{"model_type": "xlnet"}', "load_huggingface"),
        (b'{"registered_name": ["keras_xlnet>XLNetBackbone"]}', r"holds a \['keras_xlnet"),
        (
            b'{"registered_name": "keras_xlnet>XLNetBackbone", "class_name": "X", "config": 3}',
            "'config' must be an object, not 3",
        ),
    ],
    ids=["text", "binary", "brackets", "list", "string", "empty", "foreign", "type", "config"],
)
def test_what_is_no_config_is_named(read, text, message):
    with pytest.raises(ValueError, match=f"config.json.*({message})"):
        read(text)


def test_depth_is_limited(read):
    deep = 0
    for _ in range(200):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        read(activation=deep)


def test_size_is_limited(read):
    with pytest.raises(ValueError, match="larger than 16777216 bytes"):
        read(b" " * ((1 << 24) + 1))


def test_the_source_is_named_when_a_model_is_saved():
    serialized = keras.saving.serialize_keras_object(unregistered)
    with pytest.raises(ValueError, match="Mine: entry config names"):
        trusted(serialized, "Mine")

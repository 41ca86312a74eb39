"""Presets that come with the package: a made-up one, and those that are there."""

import html
import json
import pathlib
import re
import shutil
import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file

import keras_xlnet
from keras_xlnet.checkpoints import detect_format, load_checkpoint, load_tokenizer
from keras_xlnet.models import (
    Task,
    XLNetBackbone,
    XLNetMultipleChoice,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.preset_files import write_preset_info
from keras_xlnet.tokenizers import XLNetTokenizer
from xlnet_command import parse, run

ROOT = pathlib.Path(__file__).parents[2]
FIGURES = {"bits per character": 1.75, "SMS <spam>, F1": "0.97 (0.01)"}
CLASSES = {
    XLNetBackbone: {},
    XLNetPermutationLM: {},
    XLNetTextClassifier: {"num_classes": 2},
    XLNetTextRegressor: {},
    XLNetTokenClassifier: {"num_classes": 2},
    XLNetMultipleChoice: {},
    XLNetQuestionAnswering: {},
}


@pytest.fixture
def folder(tokenizer, tmp_path, monkeypatch):
    """The folder of shipped presets, with `tiny_en` in it; the working directory is empty."""
    folder = tmp_path / "shipped"
    model = XLNetPermutationLM(XLNetBackbone(200, 1, 1, 8, 16, memory_length=3))
    model.save_to_preset(folder / "tiny_en", tokenizer, dtype="float16")
    (folder / "tiny_en" / "README.md").write_text("The model card")
    write_preset_info(folder / "tiny_en", "A tiny one & <random>", FIGURES)
    monkeypatch.setattr("keras_xlnet.preset_files.shipped.FOLDER", folder)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


# === What there is ===


def test_presets_are_listed(folder):
    presets = keras_xlnet.presets()
    assert list(presets) == ["tiny_en"] and len(presets) == 1 and "other" not in presets
    info = presets["tiny_en"]
    assert info["parameters"] == 200 * 8 + 8 + 200 + 672  # Embeddings, mask, logits, block.
    assert info["figures"] == FIGURES
    files = ["assets/spiece.model", "config.json", "model.safetensors", "tokenizer.json"]
    assert sorted(info["sha256"]) == files
    assert info["bytes"] == sum((folder / "tiny_en" / name).stat().st_size for name in files)


def test_the_list_is_printed_as_a_table(folder):
    text = repr(keras_xlnet.presets())
    assert text.splitlines() == [
        "                        tiny_en",
        "parameters                2,480",
        "size                     0.2 MB",
        "bits per character         1.75",
        "SMS <spam>, F1      0.97 (0.01)",
        "",
        "tiny_en: A tiny one & <random>",
    ]
    table = keras_xlnet.presets()._repr_html_()
    assert table.count("<tr>") == 6 and html.escape("A tiny one & <random>") in table


def test_there_may_be_none(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_xlnet.preset_files.shipped.FOLDER", tmp_path)
    assert repr(keras_xlnet.presets()).startswith("No presets come with")
    with pytest.raises(FileNotFoundError, match="no directory tiny_en. No presets come with"):
        XLNetBackbone.from_preset("tiny_en")


def test_the_command_line_knows_the_names(folder, capsys):
    assert run(parse(["xlnet", "presets"])) == 0
    assert capsys.readouterr().out == f"{keras_xlnet.presets()}\n"
    assert run(parse(["xlnet", "inspect", "tiny_en"])) == 0
    out = capsys.readouterr().out
    assert "XLNetPermutationLM (permutation_lm)" in out and "tiny_en/config.json" in out
    assert run(parse(["xlnet", "convert", "--to", "huggingface", "tiny_en", "there"])) == 0
    assert run(parse(["xlnet", "verify", "tiny_en", "there"])) == 0


# === Adapters ===


@pytest.fixture
def adapter(folder):
    """The directory of the adapter `kinds`, which comes with the package as `tiny_en` does."""
    model = XLNetTextClassifier.from_preset("tiny_en", num_classes=3, sequence_length=12)
    model.enable_lora(1)
    for weight in model.trainable_variables:
        weight.assign(np.random.default_rng(8).normal(size=weight.shape))
    directory = folder / "adapters" / "kinds"
    model.save_adapter(directory)
    write_preset_info(directory, "Three <kinds>", {"SMS, F1": 0.5})
    return directory


def test_without_adapters_none_are_listed(folder, capsys):
    assert repr(keras_xlnet.adapters()) == "No adapters come with this version of the package"
    with pytest.raises(FileNotFoundError, match="no directory kinds. No adapters come with"):
        Task.from_preset(adapter="kinds")


def test_adapters_are_listed(adapter, capsys):
    assert list(keras_xlnet.presets()) == ["tiny_en"]
    assert list(keras_xlnet.adapters()) == ["kinds"]
    info = keras_xlnet.adapters()["kinds"]
    assert sorted(info["sha256"]) == ["adapter.json", "adapter.safetensors"]
    assert repr(keras_xlnet.adapters()).splitlines()[-1] == "kinds: Three <kinds>"
    assert run(parse(["xlnet", "presets"])) == 0
    out = capsys.readouterr().out
    assert out == f"{keras_xlnet.presets()}\n\n{keras_xlnet.adapters()}\n"


def test_an_adapter_is_loaded_by_name_and_names_its_preset(adapter):
    model = Task.from_preset(adapter="kinds")
    assert type(model) is XLNetTextClassifier and model.num_classes == 3
    assert model.preprocessor.sequence_length == 12
    kernel = load_file(adapter / "adapter.safetensors")["logits/kernel"]
    np.testing.assert_array_equal(model.logits_dense.kernel, kernel.astype("float32"))
    assert json.loads((adapter / "adapter.json").read_text())["base"]["preset"] == "tiny_en"
    card = (adapter / "README.md").read_text()
    assert 'from_preset(adapter="kinds")' in card and "| base | tiny_en |" in card
    with pytest.raises(FileNotFoundError, match="Did you mean 'kinds'\\? Adapters that come with"):
        Task.from_preset(adapter="kinsd")


@pytest.mark.parametrize("name", ["adapter.safetensors", "adapter.json"])
def test_damaged_files_of_adapters_are_named(adapter, name):
    content = bytearray((adapter / name).read_bytes())
    content[-1] ^= 1
    (adapter / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} is damaged: its sha256 is .*, expected "):
        Task.from_preset(adapter="kinds")


# An adapter of others may name any place, which is not looked up.
@pytest.mark.parametrize("preset", ["https://example.com/a", "tiny", "/etc"])
def test_the_base_that_an_adapter_names_is_one_of_the_package(preset, adapter, tmp_path):
    shutil.copytree(adapter, tmp_path / "copy")
    file = tmp_path / "copy" / "adapter.json"
    file.write_text(file.read_text().replace('"tiny_en"', json.dumps(preset)))
    with pytest.raises(ValueError, match="belongs to no preset that comes with the package"):
        Task.from_preset(adapter=tmp_path / "copy")


# === By name ===


def test_every_class_is_loaded_by_name(folder):
    stored = load_file(folder / "tiny_en" / "model.safetensors")
    for cls, arguments in CLASSES.items():
        model = cls.from_preset("tiny_en", **arguments)
        assert type(model) is cls
        for weight in getattr(model, "backbone", model).weights:
            np.testing.assert_array_equal(weight, stored[weight.path].astype("float32"))
    assert XLNetTokenizer.from_preset("tiny_en").vocabulary_size() == 200


def test_checkpoints_are_loaded_by_name(folder):
    assert detect_format("tiny_en") == "preset"
    assert type(load_checkpoint("tiny_en", task="permutation_lm")) is XLNetPermutationLM
    assert load_tokenizer("tiny_en").vocabulary_size() == 200


def test_a_name_is_the_shipped_preset_and_a_path_is_a_directory(folder):
    with pytest.warns(UserWarning, match="comes with the package.*directory .* is './tiny_en'"):
        XLNetBackbone(200, 2, 1, 8, 16).save_to_preset("tiny_en")
        assert XLNetBackbone.from_preset("tiny_en").num_layers == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in "./tiny_en", pathlib.Path("tiny_en"), pathlib.Path("tiny_en").absolute():
            assert XLNetBackbone.from_preset(path).num_layers == 2


@pytest.mark.parametrize(
    "location, message",
    [
        ("tiny_ne", "Did you mean 'tiny_en'\\? Presets that come with the package: 'tiny_en', 'a'"),
        ("something", "no directory something. Presets that come with .*: 'a', 'tiny_en'$"),
        ("runs/mine", "'hf://runs/mine'\\). Presets that come with the package: 'a', 'tiny_en'$"),
        (pathlib.Path("tiny_en"), "no directory tiny_en. Did you mean"),
        ("./tiny_en", "no directory tiny_en. Did you mean"),
    ],
)
@pytest.mark.parametrize("cls", [XLNetTextRegressor, XLNetTokenizer])
def test_what_does_not_exist_lists_what_does(folder, cls, location, message):
    (folder / "a").mkdir()
    (folder / "a" / "preset.json").write_text("{}")
    (folder / "not a preset").mkdir()
    with pytest.raises(FileNotFoundError, match=message):
        cls.from_preset(location)


# === What is refused ===


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "assets/spiece.model"])
def test_damaged_files_are_named(folder, name):
    file = folder / "tiny_en" / name
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    for cls in XLNetBackbone, XLNetTokenizer:
        with pytest.raises(ValueError, match=f"{name} is damaged: its sha256 is .*, expected "):
            cls.from_preset("tiny_en")
    file.unlink()
    with pytest.raises(FileNotFoundError, match=f"{name} is missing"):
        XLNetBackbone.from_preset("tiny_en")


def test_the_model_card_may_change(folder):
    (folder / "tiny_en" / "README.md").write_text("A better one")
    XLNetTokenizer.from_preset("tiny_en")


# === The presets that are there ===

SHIPPED = keras_xlnet.presets()


def test_the_command_line_says_what_the_presets_are_for(capsys):
    assert run(parse(["xlnet", "presets"])) == 0
    (choice,) = re.findall(r"^Which model\?.*", capsys.readouterr().out, re.MULTILINE)
    assert all(name in choice for name in SHIPPED)
    assert all(info["description"].startswith("English only") for info in SHIPPED.values())


NAMES = list(SHIPPED) or [
    pytest.param("xlnet_small_en", marks=pytest.mark.skip(reason="no preset is shipped yet"))
]


@pytest.fixture
def offline(monkeypatch):
    def refuse(*_, **__):
        raise OSError("the network was used")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_preset_is_complete_and_small(name, offline):
    info = SHIPPED[name]
    folder = ROOT / "keras_xlnet" / "shipped" / name
    required = {"description", "parameters", "bytes", "figures", "sha256"}
    assert required <= set(info) <= required | {"task_arguments"}
    others = {"preset.json", "README.md"}
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert files - others == set(info["sha256"]) and others <= files
    assert info["bytes"] <= 45_000_000
    assert json.loads((folder / "config.json").read_text())["vocabulary_sha256"]
    assert {v.dtype.name for v in load_file(folder / "model.safetensors").values()} == {"float16"}


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_preset_computes_with_the_arrays_of_its_file(name, offline, rng):
    stored = load_file(ROOT / "keras_xlnet" / "shipped" / name / "model.safetensors")
    model = XLNetTextRegressor.from_preset(name, sequence_length=12)
    inputs = model.preprocessor(["She sat down by the fire.", "It rained all day in Paris."])
    other = XLNetBackbone.from_config(model.backbone.get_config())
    for weight in other.weights:
        weight.assign(stored[weight.path].astype("float32"))
    expected = np.asarray(other(inputs)["sequence_output"])
    np.testing.assert_array_equal(model.backbone(inputs)["sequence_output"], expected)
    assert np.abs(expected[0] - expected[1]).max() > 0.1


ADAPTERS = keras_xlnet.adapters()
ADAPTER_NAMES = list(ADAPTERS) or [
    pytest.param("sentiment", marks=pytest.mark.skip(reason="no adapter is shipped yet"))
]


@pytest.mark.parametrize("name", ADAPTER_NAMES)
def test_a_shipped_adapter_is_complete_and_small(name, offline):
    folder = ROOT / "keras_xlnet" / "shipped" / "adapters" / name
    files = {path.name for path in folder.iterdir()}
    weights = {"adapter.json", "adapter.safetensors"}
    assert files == {*weights, "preset.json", "README.md"}
    assert set(ADAPTERS[name]["sha256"]) == weights and ADAPTERS[name]["bytes"] <= 3_000_000
    model = Task.from_preset(adapter=name)
    assert f"{type(model).__name__}.from_preset(adapter=" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    "name, cls",
    [(NAMES[0], cls) for cls in CLASSES] + [(name, XLNetTextClassifier) for name in NAMES[1:]],
)
def test_every_class_starts_from_a_shipped_preset(name, cls, offline):
    model = cls.from_preset(name, **CLASSES[cls])
    backbone = getattr(model, "backbone", model)
    assert type(model) is cls
    assert backbone.vocabulary_sha256 == XLNetTokenizer.from_preset(name).vocabulary_sha256


def test_recommended_arguments_are_written(folder):
    write_preset_info(folder / "tiny_en", "A tiny one", {}, {"pooling": "mean"})
    model = XLNetTextClassifier.from_preset("tiny_en", num_classes=2)
    assert model.pooling == "mean"


def test_task_models_take_what_a_preset_recommends_unless_they_are_told_otherwise():
    recommended = SHIPPED["xlnet_mini_en"]["task_arguments"]
    assert recommended == {"pooling": "mean"}
    for arguments, pooling in (({}, "mean"), ({"pooling": "first"}, "first")):
        model = XLNetTextClassifier.from_preset(
            "xlnet_mini_en", num_classes=2, load_weights=False, **arguments
        )
        assert model.pooling == pooling
    tagger = XLNetTokenClassifier.from_preset("xlnet_mini_en", num_classes=2, load_weights=False)
    assert not hasattr(tagger, "pooling")  # It has no such argument.
    other = XLNetTextClassifier.from_preset("xlnet_small_en", num_classes=2, load_weights=False)
    assert other.pooling == "last"


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("xlnet-base-cased", "'hf://xlnet/xlnet-base-cased', activation='gelu_tanh'"),
        ("xlnet/xlnet-large-cased", "'hf://xlnet/xlnet-large-cased', activation='gelu_tanh'"),
        ("hfl/chinese-xlnet-mid", "'hf://hfl/chinese-xlnet-mid'"),
    ],
)
def test_names_of_released_models_lead_to_the_call_that_loads_them(name, arguments):
    for cls in (XLNetBackbone, XLNetTextClassifier):
        with pytest.raises(FileNotFoundError, match="there is no directory") as error:
            cls.from_preset(name)
        assert f"load_huggingface({arguments})" in str(error.value)

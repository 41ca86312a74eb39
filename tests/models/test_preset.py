"""Presets as users save and load them; what is refused in which file: tests/preset_files."""

import json
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetTextClassifier
from keras_xlnet.text import XLNetPreprocessor, XLNetTokenizer

IDS = {"token_ids": np.random.default_rng(3).integers(0, 200, (2, 6))}
TEXTS = ["Die Katze sitzt", "a dog runs"]


@pytest.fixture(scope="module")
def tokenizer(golden_dir):
    return XLNetTokenizer(golden_dir / "spiece.model", lowercase=True)


@pytest.fixture(scope="module")
def backbone():
    return XLNetBackbone(200, 1, 1, 8, 16, memory_length=3, kernel_initializer="glorot_normal")


@pytest.fixture(scope="module")
def classifier(tokenizer):
    model = XLNetTextClassifier(
        XLNetBackbone(200, 1, 1, 8, 16, kernel_initializer="glorot_normal"),
        num_classes=2,
        preprocessor=XLNetPreprocessor(tokenizer, 8),
    )
    model.compile(keras.optimizers.Adam(0.1), run_eagerly=True)
    model.fit(TEXTS, [0, 1], verbose=0)
    return model


@pytest.fixture(scope="module")
def saved(classifier, tmp_path_factory):
    directory = tmp_path_factory.mktemp("saved") / "preset"
    classifier.save_to_preset(directory)
    return directory


@pytest.fixture
def preset(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "preset")


def files_in(directory):
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


def sequence(model):
    return np.asarray(model(IDS)["sequence_output"])


WITH_TOKENIZER = ["assets/spiece.model", "config.json", "model.safetensors", "tokenizer.json"]


# === Saved and loaded ===


def test_trained_classifier_comes_back_without_its_optimizer(classifier, saved):
    assert files_in(saved) == WITH_TOKENIZER
    assert set(load_file(saved / "model.safetensors")) == {w.path for w in classifier.weights}
    copy = XLNetTextClassifier.from_preset(saved)
    expected = classifier.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(copy.predict(TEXTS, verbose=0), expected, atol=1e-6)
    assert copy.preprocessor.tokenizer.lowercase
    assert "compile_config" not in (saved / "config.json").read_text()


def test_a_stateful_model_comes_back_without_its_memory(backbone, tmp_path):
    model = XLNetPermutationLM(backbone, stateful=True, batch_size=2)
    for memory in model.memories:
        memory.training_state.assign(keras.ops.ones_like(memory.training_state))
    model.save_to_preset(tmp_path)
    for overrides in ({}, {"batch_size": 4}, {"stateful": False, "batch_size": None}):
        copy = XLNetPermutationLM.from_preset(tmp_path, **overrides)
        for memory in copy.memories:
            assert not np.asarray(memory.training_state).any()
        np.testing.assert_array_equal(sequence(copy.backbone), sequence(backbone))


def test_parts_of_a_user_come_back_if_they_are_registered(tmp_path):
    @keras.saving.register_keras_serializable(package="test_preset")
    def mine(x):
        return keras.ops.tanh(x)

    model = XLNetBackbone(200, 1, 1, 8, 16, activation=mine)
    model.save_to_preset(tmp_path)
    copy = XLNetBackbone.from_preset(tmp_path)
    assert copy.activation is mine
    np.testing.assert_array_equal(sequence(copy), sequence(model))


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    def unregistered(x):
        return x

    model = XLNetBackbone(200, 1, 1, 8, 16, activation=unregistered)
    with pytest.raises(ValueError, match="XLNetBackbone: entry config/activation names 'unr"):
        model.save_to_preset(tmp_path / "preset")
    assert not (tmp_path / "preset").exists()


def test_dtype_may_be_another_when_it_is_asked_for(backbone, tmp_path):
    backbone.save_to_preset(tmp_path)
    half = XLNetBackbone.from_preset(tmp_path, dtype="bfloat16")
    assert {w.dtype for w in half.weights} == {"bfloat16"}
    for a, b in zip(half.get_weights(), backbone.get_weights(), strict=True):
        np.testing.assert_allclose(a.astype("float32"), b, rtol=2**-8)


# === Tokenizers ===


def test_a_backbone_keeps_a_tokenizer_beside_it(backbone, tokenizer, tmp_path):
    backbone.save_to_preset(tmp_path, tokenizer)
    assert files_in(tmp_path) == WITH_TOKENIZER
    copy = XLNetTokenizer.from_preset(tmp_path)
    assert copy.get_config() == tokenizer.get_config()
    assert copy("Die KATZE").numpy().tolist() == tokenizer("Die KATZE").numpy().tolist()
    np.testing.assert_array_equal(sequence(XLNetBackbone.from_preset(tmp_path)), sequence(backbone))


def test_the_tokenizer_of_a_classifier_can_be_loaded_alone(saved):
    assert XLNetTokenizer.from_preset(saved).lowercase


def test_tokenizers_that_do_not_belong_to_the_model(backbone, classifier, tokenizer, tmp_path):
    small = XLNetBackbone(199, 1, 1, 8, 16)
    with pytest.raises(ValueError, match="has 200 ids, but the model knows only .*=199"):
        small.save_to_preset(tmp_path / "preset", tokenizer)
    with pytest.raises(ValueError, match="for models without a preprocessor"):
        classifier.save_to_preset(tmp_path / "preset", tokenizer)
    assert not (tmp_path / "preset").exists()


def test_a_vocabulary_that_is_too_large_is_refused_when_it_is_loaded(preset):
    config = json.loads((preset / "config.json").read_text())
    config["config"]["backbone"]["config"]["vocabulary_size"] = 150
    (preset / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="spiece.model: The tokenizer has 200 ids, .*=150"):
        XLNetTextClassifier.from_preset(preset)


@pytest.mark.parametrize("proto", ["/etc/hostname", "gs://bucket/spiece.model", "bytes"])
@pytest.mark.parametrize("cls", [XLNetTextClassifier, XLNetTokenizer])
def test_a_config_cannot_read_another_vocabulary(preset, cls, proto):
    name = "tokenizer.json" if cls is XLNetTokenizer else "config.json"
    text = (preset / name).read_text()
    assert '"proto": null' in text
    (preset / name).write_text(text.replace('"proto": null', f'"proto": "{proto}"'))
    with pytest.raises(ValueError, match=f"{name}.*`proto` must be None"):
        cls.from_preset(preset)


# === Presets that are replaced ===


def test_a_preset_is_replaced_and_other_files_stay(backbone, tokenizer, tmp_path):
    backbone.save_to_preset(tmp_path, tokenizer)
    (tmp_path / "README.md").write_text("mine")
    other = XLNetBackbone(200, 2, 1, 8, 16)
    other.save_to_preset(tmp_path)
    assert files_in(tmp_path) == ["README.md", "config.json", "model.safetensors"]
    np.testing.assert_array_equal(sequence(XLNetBackbone.from_preset(tmp_path)), sequence(other))


def test_a_save_that_fails_leaves_the_old_preset(backbone, tmp_path, monkeypatch):
    backbone.save_to_preset(tmp_path)

    def full(*_, **__):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("keras_xlnet.preset_files.safetensors_files.save_file", full)
        with pytest.raises(OSError, match="No space left"):
            XLNetBackbone(200, 2, 1, 8, 16).save_to_preset(tmp_path)
    assert files_in(tmp_path) == ["config.json", "model.safetensors"]
    np.testing.assert_array_equal(sequence(XLNetBackbone.from_preset(tmp_path)), sequence(backbone))


# === What is refused ===


def damage_config(path, value):
    def damage(preset):
        config = json.loads((preset / "config.json").read_text())
        entry = config["config"]
        for key in path[:-1]:
            entry = entry[key]
        entry[path[-1]] = value
        (preset / "config.json").write_text(json.dumps(config))

    return damage


SYSTEM = {"module": "os", "class_name": "function", "config": "system", "registered_name": None}
BACKBONE = ("backbone", "config")
TOKENIZER = ("preprocessor", "config", "tokenizer")
DAMAGES = {
    "code_in_backbone": (
        damage_config((*BACKBONE, "activation"), SYSTEM),
        "config.json: entry config/backbone/config/activation names 'system' of module 'os'",
    ),
    "code_in_tokenizer": (
        damage_config((*TOKENIZER, "config", "dtype"), SYSTEM),
        "config.json: entry config/preprocessor/config/tokenizer/config/dtype names 'system'",
    ),
    "code_as_preprocessor": (damage_config(("preprocessor",), SYSTEM), "names 'system'"),
    "unknown_argument": (
        damage_config((*BACKBONE, "layers"), 3),
        r"config.json: entry config/backbone has arguments that XLNetBackbone does not have: "
        r"\['layers'\]",
    ),
    "unknown_activation": (
        damage_config((*BACKBONE, "activation"), "os.system"),
        "config.json does not describe a model.*os.system",
    ),
    "wrong_type": (
        damage_config((*BACKBONE, "num_layers"), "many"),
        "`num_layers` must be a positive integer. Received: num_layers='many'",
    ),
    "backbone_is_a_number": (
        damage_config(("backbone",), 3),
        "config.json does not describe a model",
    ),
    "backbone_is_a_tokenizer": (
        damage_config(
            ("backbone",), {"class_name": "X", "registered_name": "keras_xlnet>XLNetTokenizer"}
        ),
        "config.json does not describe a model",
    ),
    "quantization": (
        damage_config(("quantization",), {"nothing": "int8"}),
        "config.json does not describe a model",
    ),
    "size": (
        damage_config((*BACKBONE, "intermediate_dim"), 17),
        r"model.safetensors has shape \(8, 16\), expected \(8, 17\)",
    ),
    "more_layers": (
        damage_config((*BACKBONE, "num_layers"), 2),
        "model.safetensors lacks 17 of 39 weights of the model: 'block_1/",
    ),
    "vocabulary": (
        lambda preset: (preset / "assets" / "spiece.model").write_bytes(b"nothing"),
        "spiece.model: `proto` must be a SentencePiece model",
    ),
    "link": (
        lambda preset: (
            (preset / "model.safetensors").rename(preset.parent / "other.safetensors"),
            (preset / "model.safetensors").symlink_to("../other.safetensors"),
        ),
        "model.safetensors is a symlink to .*outside its directory",
    ),
}


@pytest.mark.parametrize("damage, message", DAMAGES.values(), ids=DAMAGES)
def test_bad_presets_name_file_and_place(preset, damage, message):
    damage(preset)
    with pytest.raises(ValueError, match=f"(?s)preset/.*{message}") as caught:
        XLNetTextClassifier.from_preset(preset)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "assets/spiece.model"])
def test_missing_files_are_named(preset, name):
    (preset / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name} is missing"):
        XLNetTextClassifier.from_preset(preset)


def test_bad_overrides_are_named(saved):
    with pytest.raises(ValueError, match=r"no arguments \['layers'\] to override"):
        XLNetTextClassifier.from_preset(saved, layers=3)
    with pytest.raises(ValueError, match=r"with {'dropout': 2} .*`dropout` must be a dropout rate"):
        XLNetTextClassifier.from_preset(saved, dropout=2)


# === From elsewhere ===


def test_a_preset_of_the_hub(saved, classifier, monkeypatch):
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    asked = []
    monkeypatch.setattr(
        hub, "snapshot_download", lambda name, **kwargs: asked.append(kwargs) or str(saved)
    )
    copy = XLNetTextClassifier.from_preset("hf://owner/name@v1", dropout=0.3)
    assert copy.dropout == 0.3
    expected = classifier.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(copy.predict(TEXTS, verbose=0), expected, atol=1e-6)
    assert XLNetTokenizer.from_preset("hf://owner/name").lowercase
    assert [sorted(kwargs["allow_patterns"]) for kwargs in asked] == [
        WITH_TOKENIZER,
        ["assets/spiece.model", "tokenizer.json"],
    ]

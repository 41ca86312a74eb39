"""Presets as users save and load them; what is refused in which file: tests/preset_files."""

import json
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import keras_xlnet
from keras_xlnet.models import (
    XLNetBackbone,
    XLNetMultipleChoice,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import (
    XLNetTextClassifierPreprocessor,
    XLNetTextRegressorPreprocessor,
)
from keras_xlnet.tokenizers import XLNetTokenizer

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
        preprocessor=XLNetTextClassifierPreprocessor(tokenizer, 8),
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


def predict(model):
    """As `model.predict`, without compiling it."""
    return np.asarray(model(model.preprocessor(TEXTS)))


WITHOUT_TOKENIZER = ["README.md", "config.json", "model.safetensors"]
WITH_TOKENIZER = sorted([*WITHOUT_TOKENIZER, "assets/spiece.model", "tokenizer.json"])


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


def test_weights_are_stored_in_half_precision(backbone, tmp_path):
    backbone.save_to_preset(tmp_path, dtype="float16")
    stored = load_file(tmp_path / "model.safetensors")
    assert {value.dtype.name for value in stored.values()} == {"float16"}
    for dtype, expected in ((None, "float32"), ("bfloat16", "bfloat16")):
        copy = XLNetBackbone.from_preset(tmp_path, **({"dtype": dtype} if dtype else {}))
        assert {w.dtype for w in copy.weights} == {expected}
        for weight in copy.weights:
            value = stored[weight.path].astype(expected)
            np.testing.assert_array_equal(keras.ops.convert_to_numpy(weight), value)
    copy.save_to_preset(tmp_path, dtype="float32")
    assert {v.dtype.name for v in load_file(tmp_path / "model.safetensors").values()} == {"float32"}
    with pytest.raises(
        ValueError, match="`dtype` must be one of .*float16.* Received: dtype='int8'"
    ):
        backbone.save_to_preset(tmp_path, dtype="int8")


# === From a preset of another class ===


@pytest.fixture(scope="module")
def pretrained(tokenizer, tmp_path_factory):
    """The preset of a language model as in pretraining: it remembers, and reads backwards too."""
    directory = tmp_path_factory.mktemp("pretrained") / "preset"
    backbone = XLNetBackbone(
        *(200, 1, 1, 8, 16),
        memory_length=3,
        reuse_length=2,
        remember_segment_ids=True,
        bidirectional_data=True,
        kernel_initializer="glorot_normal",
    )
    model = XLNetPermutationLM(
        backbone, stateful=True, batch_size=2, attend_to_empty_memory=True, name="mine"
    )
    model.save_to_preset(directory, tokenizer)
    return directory


def assert_backbone_is_of(backbone, preset):
    stored = load_file(preset / "model.safetensors")
    for weight in backbone.weights:
        np.testing.assert_array_equal(weight, stored[weight.path])


TASKS = {
    XLNetTextClassifier: {"num_classes": 3},
    XLNetTextRegressor: {},
    XLNetTokenClassifier: {"num_classes": 3},
    XLNetMultipleChoice: {},
    XLNetQuestionAnswering: {"start_n_top": 2},
}


@pytest.mark.parametrize("cls", TASKS, ids=lambda cls: cls.__name__)
def test_task_models_start_from_a_language_model(cls, pretrained):
    model = cls.from_preset(pretrained, **TASKS[cls])
    backbone = model.backbone
    assert type(model) is cls and type(backbone) is XLNetBackbone
    assert_backbone_is_of(backbone, pretrained)
    assert backbone.memory_length is backbone.reuse_length is None
    assert backbone.bidirectional_data is backbone.remember_segment_ids is False
    if cls in (XLNetTextClassifier, XLNetTextRegressor):
        assert model.preprocessor.tokenizer.lowercase
        assert predict(model).shape == (2, TASKS[cls].get("num_classes", 1))


def test_a_fine_tuned_model_can_be_saved_and_loaded(pretrained, tmp_path):
    model = XLNetTextClassifier.from_preset(pretrained, num_classes=2, sequence_length=8)
    model.save_to_preset(tmp_path)
    copy = XLNetTextClassifier.from_preset(tmp_path)
    np.testing.assert_allclose(predict(copy), predict(model), atol=1e-6)
    # With the preprocessor that it has.
    regressor = XLNetTextRegressor.from_preset(tmp_path)
    assert regressor.preprocessor.sequence_length == 8
    assert_backbone_is_of(regressor.backbone, tmp_path)


def test_a_backbone_is_taken_out_of_every_model(pretrained, saved):
    for preset in pretrained, saved:
        backbone = XLNetBackbone.from_preset(preset)
        assert_backbone_is_of(backbone, preset)
        assert backbone.memory_length is None and not backbone.bidirectional_data
    backbone = XLNetBackbone.from_preset(pretrained, memory_length=4, bidirectional_data=True)
    assert (backbone.memory_length, backbone.reuse_length) == (4, None)
    assert backbone.bidirectional_data


def test_a_language_model_takes_a_backbone_as_it_is(tmp_path):
    backbone = XLNetBackbone(200, 1, 1, 8, 16, memory_length=3, bidirectional_data=True)
    backbone.save_to_preset(tmp_path)
    model = XLNetPermutationLM.from_preset(tmp_path, stateful=True, batch_size=4)
    assert model.batch_size == 4
    assert (model.backbone.memory_length, model.backbone.bidirectional_data) == (3, True)
    assert_backbone_is_of(model.backbone, tmp_path)


def test_overrides_reach_the_model_its_backbone_and_its_preprocessor(pretrained, saved):
    overrides = {
        "dropout": 0.2,
        "backbone_dropout": 0.3,
        "attention_dropout": 0.4,
        "dtype": "mixed_bfloat16",
        "activation": "sigmoid",
        "backbone_activation": "relu",
        "sequence_length": 9,
        "padding_side": "right",
        "trainable": True,
        "backbone_trainable": False,
    }
    for preset, other in ((pretrained, {"num_classes": 2}), (saved, {})):
        model = XLNetTextClassifier.from_preset(preset, **overrides, **other)
        backbone, preprocessor = model.backbone, model.preprocessor
        assert (model.dropout, backbone.dropout, backbone.attention_dropout) == (0.2, 0.3, 0.4)
        assert (model.activation, backbone.activation.__name__) == ("sigmoid", "relu")
        assert backbone.dtype_policy.name == "mixed_bfloat16"
        assert (preprocessor.sequence_length, preprocessor.padding_side) == (9, "right")
        assert not backbone.trainable_variables and model.trainable_variables
        assert_backbone_is_of(backbone, preset)


def test_a_preprocessor_of_the_user(pretrained, saved, tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 7)
    for preset in pretrained, saved:
        for given in preprocessor, None:
            model = XLNetTextClassifier.from_preset(preset, num_classes=2, preprocessor=given)
            assert model.preprocessor is given
    with pytest.raises(ValueError, match=r"\['sequence_length'\] are arguments of the preproc"):
        XLNetTextClassifier.from_preset(saved, preprocessor=preprocessor, sequence_length=9)


def test_without_a_tokenizer_there_is_no_preprocessor(backbone, tmp_path):
    backbone.save_to_preset(tmp_path)
    model = XLNetTextClassifier.from_preset(tmp_path, num_classes=2)
    assert model.preprocessor is None
    with pytest.raises(
        ValueError, match=r"no tokenizer, .* preprocessor for \['sequence_length'\]"
    ):
        XLNetTextClassifier.from_preset(tmp_path, num_classes=2, sequence_length=9)


def test_what_a_new_head_needs_is_named(pretrained):
    message = r"from_preset needs \['num_classes'\]: .* holds a XLNetPermutationLM, and only its"
    with pytest.raises(TypeError, match=message):
        XLNetTextClassifier.from_preset(pretrained)


def test_the_whole_file_is_checked(pretrained, tmp_path):
    preset = shutil.copytree(pretrained, tmp_path / "preset")
    weights = load_file(preset / "model.safetensors")
    save_file({**weights, "other": np.ones(2, "float32")}, preset / "model.safetensors")
    with pytest.raises(ValueError, match="'other' in .* is not a weight of the model"):
        XLNetBackbone.from_preset(preset)
    # One of the language model, which a backbone does not need.
    del weights["logits/bias"]
    save_file(weights, preset / "model.safetensors")
    with pytest.raises(ValueError, match="lacks 1 of 20 weights of the model: 'logits/bias'"):
        XLNetTextClassifier.from_preset(preset, num_classes=2)


def test_a_backbone_of_another_class_is_refused(tmp_path):
    @keras.saving.register_keras_serializable(package="test_preset")
    class Other(XLNetBackbone):
        pass

    Other(200, 1, 1, 8, 16).save_to_preset(tmp_path)
    with pytest.raises(ValueError, match="holds a 'test_preset>Other', not the 'keras_xlnet>XLN"):
        XLNetBackbone.from_preset(tmp_path)
    assert type(XLNetTextRegressor.from_preset(tmp_path).backbone) is Other


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


@pytest.fixture(scope="module")
def other_tokenizer():
    """One of as many pieces as `tokenizer`."""
    letters = np.random.default_rng(5).integers(97, 123, (400, 6), "uint8")
    return XLNetTokenizer.train((bytes(row).decode() for row in letters), vocabulary_size=200)


def test_the_vocabulary_of_another_model_is_refused(pretrained, other_tokenizer, tmp_path):
    preset = shutil.copytree(pretrained, tmp_path / "preset")
    other_tokenizer.save_to_preset(preset)
    for cls in XLNetBackbone, XLNetTextRegressor, XLNetPermutationLM, XLNetTokenizer:
        with pytest.raises(ValueError, match="spiece.model is not the vocabulary of this model"):
            cls.from_preset(preset)
    # Nor is it taken from the user.
    message = "is of another model: the sha256 of its vocabulary .* the {} was loaded with"
    preprocessor = XLNetTextRegressorPreprocessor(other_tokenizer, 8)
    with pytest.raises(ValueError, match=message.format("backbone")):
        XLNetTextRegressor.from_preset(pretrained, preprocessor=preprocessor)
    backbone = XLNetBackbone.from_preset(pretrained)
    with pytest.raises(ValueError, match=message.format("backbone")):
        XLNetTextRegressor(backbone, preprocessor=preprocessor)
    with pytest.raises(ValueError, match=message.format("model")):
        backbone.save_to_preset(tmp_path / "other", other_tokenizer)
    backbone.vocabulary_sha256 = None
    assert XLNetTextRegressor(backbone, preprocessor=preprocessor).preprocessor is preprocessor


def test_a_backbone_remembers_its_vocabulary(pretrained, tokenizer, tmp_path):
    backbone = XLNetTokenClassifier.from_preset(pretrained, num_classes=2).backbone
    assert backbone.vocabulary_sha256 == tokenizer.vocabulary_sha256
    backbone.save_to_preset(tmp_path)
    assert files_in(tmp_path) == WITHOUT_TOKENIZER
    assert XLNetBackbone.from_preset(tmp_path).vocabulary_sha256 == tokenizer.vocabulary_sha256


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
    assert files_in(tmp_path) == WITHOUT_TOKENIZER
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


def change_record(preset, value):
    """Changes the vocabulary that a preset records."""
    config = json.loads((preset / "config.json").read_text())
    assert len(config["vocabulary_sha256"]) == 64
    config["vocabulary_sha256"] = value
    (preset / "config.json").write_text(json.dumps(config))


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
        "`num_layers` of XLNetBackbone. Received: 'many'",
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
        "spiece.model is not the vocabulary of this model, .* its sha256 is 1785c.* records ",
    ),
    "vocabulary_that_is_not_recorded": (
        lambda preset: (
            change_record(preset, None),
            (preset / "assets" / "spiece.model").write_bytes(b"nothing"),
        ),
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
    with pytest.raises(ValueError, match=r"no arguments \['sequence_length'\] to override"):
        XLNetBackbone.from_preset(saved, sequence_length=3)
    with pytest.raises(ValueError, match="`sequence_length` must be above `max_choice_length`"):
        XLNetMultipleChoice.from_preset(saved, sequence_length=3)
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
        [name for name in WITH_TOKENIZER if name != "README.md"],
        ["assets/spiece.model", "config.json", "tokenizer.json"],
    ]


def test_new_weights(saved, pretrained):
    keras.utils.set_random_seed(9)
    model = XLNetTextClassifier.from_preset(saved, load_weights=False)
    loaded = XLNetTextClassifier.from_preset(saved)
    assert model.get_config() == loaded.get_config()
    assert model.preprocessor.sequence_length == loaded.preprocessor.sequence_length
    pairs = zip(model.get_weights(), loaded.get_weights(), strict=True)
    assert any((new != old).any() for new, old in pairs)
    backbone = XLNetBackbone.from_preset(pretrained, load_weights=False)
    assert (
        backbone.get_weights()[0] != XLNetBackbone.from_preset(pretrained).get_weights()[0]
    ).any()


def test_preprocessors_of_presets(saved, pretrained, tokenizer):
    loaded = XLNetTextClassifierPreprocessor.from_preset(saved)
    expected = XLNetTextClassifier.from_preset(saved).preprocessor
    assert loaded.sequence_length == expected.sequence_length != 512
    assert loaded.tokenizer.vocabulary_sha256 == tokenizer.vocabulary_sha256
    assert (
        XLNetTextClassifierPreprocessor.from_preset(saved, sequence_length=9).sequence_length == 9
    )
    assert XLNetTextClassifierPreprocessor.from_preset(pretrained).sequence_length == 512
    assert XLNetTextRegressorPreprocessor.from_preset(saved).sequence_length == 512


def test_a_preprocessor_can_be_replaced(saved, tokenizer, other_tokenizer):
    model = XLNetTextClassifier.from_preset(saved)
    model.preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 7)
    assert model.predict(["a", "b"], verbose=0).shape[0] == 2
    model.preprocessor = None
    with pytest.raises(ValueError, match="has no `preprocessor`"):
        model.predict(["a"], verbose=0)
    with pytest.raises(ValueError, match="`preprocessor` must be an instance of"):
        model.preprocessor = tokenizer
    with pytest.raises(ValueError, match="is of another model"):
        model.preprocessor = XLNetTextClassifierPreprocessor(other_tokenizer, 7)


def test_presets_of_classes():
    assert list(XLNetTextClassifier.presets) == list(keras_xlnet.presets())
    assert "xlnet_small_en" in XLNetBackbone.presets

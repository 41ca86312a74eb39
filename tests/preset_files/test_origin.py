"""A model records the preset and adapter of the package that it was trained from."""

import keras
import pytest
from safetensors.numpy import load_file, save_file

from keras_xlnet.models import (
    TransformerXLLanguageModel,
    XLNetBackbone,
    XLNetPermutationLM,
    XLNetTextClassifier,
)
from keras_xlnet.preset_files import adapters, presets, write_preset_info
from keras_xlnet.preset_files.model_card import data_section
from keras_xlnet.preset_files.origin import origin_of, preset_of_vocabulary

NOTHING = {"preset": None, "adapter": None}


@pytest.fixture
def folder(tokenizer, tmp_path, monkeypatch):
    """A folder of shipped files: the presets `words` and `tiny`, and the adapter `kinds` of it."""
    folder = tmp_path / "shipped"
    model = XLNetPermutationLM(XLNetBackbone(200, 1, 1, 8, 16), tokenizer)
    card = {"data": "Three kinds of books"}
    model.save_to_preset(folder / "tiny", dtype="float16", card=card)
    language_model = TransformerXLLanguageModel(200, 1, 1, 8, 16, memory_length=4)
    language_model.save_to_preset(folder / "words")
    for name in ("tiny", "words"):
        write_preset_info(folder / name, f"A {name} one", {})
    monkeypatch.setattr("keras_xlnet.preset_files.shipped.FOLDER", folder)
    model = classifier()
    model.enable_lora(1)
    model.save_adapter(folder / "adapters" / "kinds", card=card)
    write_preset_info(folder / "adapters" / "kinds", "Three kinds", {"F1": 0.5})
    return folder


def classifier(location="tiny", **arguments):
    return XLNetTextClassifier.from_preset(
        location, **{"num_classes": 2, "sequence_length": 12, **arguments}
    )


def names(model):
    return tuple(facts and facts["name"] for facts in origin_of(model).values())


def train(model):
    model.compile(keras.optimizers.Adam(0.02), run_eagerly=True)
    model.fit(["one book", "two"], [0, 1], verbose=0)


def saved(model, path):
    model.save(path)
    return keras.saving.load_model(path)


def test_a_preset_with_a_new_head():
    classifier = XLNetTextClassifier.from_preset("xlnet_small_en", num_classes=2)
    found = origin_of(classifier)
    assert found["adapter"] is None
    info = presets()["xlnet_small_en"]
    assert found["preset"]["name"] == "xlnet_small_en"
    for key in ("description", "figures"):
        assert found["preset"][key] == info[key]
    assert found["preset"]["data"].startswith("272 MB of English")
    assert found == origin_of(classifier.backbone)


def test_an_adapter_that_was_merged():
    found = origin_of(XLNetTextClassifier.from_preset(adapter="spam"))
    assert found["adapter"]["name"] == "spam"
    assert found["adapter"]["figures"] == adapters()["spam"]["figures"]
    assert found["preset"]["name"] == "xlnet_mini_en"
    assert found["preset"]["task_arguments"] == {"pooling": "mean"}


def test_training_and_quantizing_keep_the_record(folder):
    model = classifier()
    train(model)
    model.quantize("int8")
    assert names(model) == ("tiny", None)


@pytest.mark.parametrize("adapter", [None, "kinds"])
def test_files_and_copies_keep_the_record(adapter, folder, tmp_path):
    model = classifier(adapter=adapter)
    expected = ("tiny", adapter)
    assert names(model) == expected
    assert names(XLNetTextClassifier(model.backbone, 3)) == expected
    assert names(model.with_arguments(dropout=0.0)) == expected
    assert names(model.with_vocabulary(210)) == expected
    assert names(saved(model, tmp_path / "model.keras")) == expected
    model.save_to_preset(tmp_path / "preset", dtype="bfloat16")
    loaded = XLNetTextClassifier.from_preset(tmp_path / "preset")
    assert names(loaded) == expected
    model.backbone.save_to_preset(tmp_path / "backbone")
    assert names(XLNetBackbone.from_preset(tmp_path / "backbone")) == expected
    assert names(saved(loaded, tmp_path / "again.keras")) == expected


def test_a_language_model_is_its_own_backbone(folder, tmp_path):
    model = TransformerXLLanguageModel.from_preset("words")
    assert names(model) == names(saved(model, tmp_path / "model.keras")) == ("words", None)
    assert names(model.with_arguments(memory_length=2)) == ("words", None)


def test_new_weights_have_no_record(folder):
    model = classifier()
    for new in (
        model.clone(),
        XLNetBackbone.from_config(model.backbone.get_config()),
        classifier(load_weights=False),
        XLNetTextClassifier(XLNetBackbone(40, 1, 2, 16, 32), 2),
    ):
        assert origin_of(new) == NOTHING
    model.assign_weights(model.clone())
    assert origin_of(model) == NOTHING


def test_adapters_of_others(folder, tmp_path):
    model = classifier()
    model.enable_lora(1)
    train(model)
    model.save_adapter(tmp_path / "mine")
    assert names(classifier(adapter=tmp_path / "mine")) == ("tiny", None)
    model.load_adapter("kinds")  # The training goes on from it.
    assert names(model) == ("tiny", "kinds")
    train(model)
    model.save_adapter(tmp_path / "continued")
    assert names(classifier(adapter=tmp_path / "continued")) == ("tiny", "kinds")
    model.load_adapter(tmp_path / "mine")
    assert names(model) == ("tiny", None)


def test_the_base_of_an_adapter_is_a_preset_only_with_its_weights(folder, tmp_path):
    model = classifier()
    train(model)
    assert names(model) == ("tiny", None)
    model.enable_lora(1)
    model.save_adapter(tmp_path / "mine")
    with pytest.raises(ValueError, match="belongs to no preset that comes with the package"):
        XLNetTextClassifier.from_preset(adapter=tmp_path / "mine")


def test_other_names_in_a_file_are_not_looked_up(folder, tmp_path):
    classifier().save_to_preset(tmp_path / "preset")
    file = tmp_path / "preset" / "model.safetensors"
    weights = load_file(file)
    for name in ("of a newer version", "../tiny", "adapters/../tiny", "adapters"):
        save_file(weights, file, metadata={"trained_from": name})
        model = XLNetTextClassifier.from_preset(tmp_path / "preset")
        assert model.trained_from == name and origin_of(model) == NOTHING


def test_vocabularies():
    for name, info in presets().items():
        assert preset_of_vocabulary(info["sha256"]["assets/spiece.model"]) == name
    assert preset_of_vocabulary("0" * 64) is None


@pytest.mark.parametrize(
    "card, section",
    [
        ("# a\n\n## Data and licences\n\none\n\n### more\n\n## Metrics\n\n2\n", "one\n\n### more"),
        ("## Data\n\nlast", "last"),
        ("# Data\n\n## Metrics\n", None),
        ("", None),
    ],
)
def test_the_section_of_a_card(card, section):
    assert data_section(card) == section

"""Presets and adapters that a model comes from are found by its weights."""

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preset_files import adapters, presets
from keras_xlnet.preset_files.model_card import data_section
from keras_xlnet.preset_files.origin import origin_of, preset_of_vocabulary


@pytest.fixture(scope="module")
def classifier():
    return XLNetTextClassifier.from_preset("xlnet_small_en", num_classes=2)


def test_a_preset_with_a_new_head(classifier):
    found = origin_of(classifier)
    assert found["adapter"] is None
    info = presets()["xlnet_small_en"]
    assert found["preset"]["name"] == "xlnet_small_en"
    for key in ("description", "figures"):
        assert found["preset"][key] == info[key]
    assert found["preset"]["data"].startswith("272 MB of English")
    assert found["preset"] == origin_of(classifier.backbone)["preset"]


def test_a_backbone_that_was_trained_is_no_preset(classifier):
    weight = classifier.backbone.weights[0]
    value = np.array(weight)
    weight.assign(value + 1e-2)
    try:
        assert origin_of(classifier) == {"preset": None, "adapter": None}
    finally:
        weight.assign(value)


@pytest.mark.parametrize("name", ["sentiment", "spam"])
def test_an_adapter_that_was_merged(name):
    found = origin_of(XLNetTextClassifier.from_preset(adapter=name))
    assert found["adapter"]["name"] == name
    assert found["adapter"]["figures"] == adapters()[name]["figures"]
    assert found["preset"]["name"] == "xlnet_mini_en"
    assert found["preset"]["task_arguments"] == {"pooling": "mean"}


def test_a_model_of_no_preset():
    model = XLNetTextClassifier(XLNetBackbone(40, 1, 2, 16, 32), 2)
    assert origin_of(model) == {"preset": None, "adapter": None}


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

import sys

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier, XLNetTextRegressor
from tests.examples import RESEARCH

sys.path.append(str(RESEARCH / "tasks"))
from results_models import digest_of, fine_tune
from results_tasks import Examples, Recipe

RECIPE = Recipe(24, epochs=1, fewest_steps=2, few=0)
TEXTS = np.array(
    ["a cat", "the dog sat on the cat and the mat " * 3, "is it so?", "no", "it is a dog", "x y"],
    dtype=object,
)
CLASSES = Examples(TEXTS, np.array([0, 1, 0, 1, 0, 1], "int32"))
NUMBERS = Examples(
    np.stack([TEXTS, TEXTS[::-1]], axis=1), np.array([1, 4, 2, 5, 3, 0], "float32") * 100
)


@pytest.fixture
def fits(monkeypatch):
    """A list of the models that were fitted and the arguments of `fit`."""
    found = []

    def record(model, *arguments, **keywords):
        found.append((model, keywords))
        return type(model).__base__.fit(model, *arguments, **keywords)

    for model_class in (XLNetTextClassifier, XLNetTextRegressor):
        monkeypatch.setattr(model_class, "fit", record)
    return found


def test_a_seed_gives_the_same_predictions_and_another_seed_others(tiny_preset):
    predictions = [
        fine_tune(tiny_preset, NUMBERS, RECIPE, seed)(NUMBERS.texts) for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(predictions[0], predictions[1])
    assert not np.array_equal(predictions[0], predictions[2])


def test_numbers_come_back_on_their_scale(tiny_preset):
    predictions = fine_tune(tiny_preset, NUMBERS, RECIPE, 0)(NUMBERS.texts)
    assert predictions.shape == (6,) and predictions.dtype.kind == "f"
    assert 0 < predictions.mean() < 500


def test_classes_are_predicted(tiny_preset):
    predictions = fine_tune(tiny_preset, CLASSES, RECIPE, 0)(TEXTS)
    assert predictions.shape == (6,) and set(predictions) <= {0, 1}


def test_models_are_those_of_the_recipe(tiny_preset, fits):
    fine_tune(tiny_preset, NUMBERS, RECIPE, 0)
    few = Recipe(16, epochs=3, fewest_steps=1, few=7)
    fine_tune(tiny_preset, CLASSES, few, 0, "mixed_bfloat16")
    (pairs, of_pairs), (single, of_single) = fits
    assert pairs.pooling == "pair" and single.pooling != "pair"
    assert (of_pairs["epochs"], of_pairs["head_first"]) == (2, False)
    assert (of_single["epochs"], of_single["head_first"]) == (3, True)
    assert single.preprocessor.sequence_length == 16
    assert single.backbone.dtype_policy.name == "mixed_bfloat16"


def test_presets_of_other_weights_are_told_apart(tiny_preset, tmp_path):
    backbone = XLNetBackbone.from_preset(tiny_preset)
    backbone.save_to_preset(tmp_path / "same")
    weight = backbone.weights[-1]
    weight.assign(weight + 1)
    backbone.save_to_preset(tmp_path / "other")
    digests = [digest_of(location) for location in (tiny_preset, tmp_path / "same")]
    assert digests[0] == digests[1] != digest_of(tmp_path / "other")

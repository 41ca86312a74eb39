import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextRegressor
from keras_xlnet.training import load_average


def regressor():
    return XLNetTextRegressor(XLNetBackbone(40, 1, 2, 16, 32))


@pytest.fixture
def checkpoints(tmp_path):
    """Paths of three checkpoints, and their weights."""
    weights = []
    for seed in range(3):
        keras.utils.set_random_seed(seed)
        model = regressor()
        weights.append(model.get_weights())
        model.save_weights(tmp_path / f"{seed}.weights.h5")
    return sorted(tmp_path.iterdir()), weights


def test_the_mean_of_all(checkpoints):
    paths, weights = checkpoints
    model = regressor()
    load_average(model, paths)
    for found, *each in zip(model.get_weights(), *weights, strict=True):
        np.testing.assert_allclose(found, np.mean(each, axis=0, dtype="float64"), atol=1e-6)


def test_one_checkpoint_is_itself(checkpoints):
    paths, weights = checkpoints
    model = regressor()
    load_average(model, [str(paths[1])])
    for found, expected in zip(model.get_weights(), weights[1], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_whole_models_and_half_precision(tmp_path):
    model = XLNetBackbone(40, 1, 2, 16, 32, dtype="bfloat16")
    model.save(tmp_path / "a.keras")
    expected = [np.asarray(w.value, "float32") for w in model.weights]
    load_average(model, [tmp_path / "a.keras", tmp_path / "a.keras"])
    for weight, value in zip(model.weights, expected, strict=True):
        assert weight.dtype == "bfloat16"
        np.testing.assert_array_equal(np.asarray(weight.value, "float32"), value)


@pytest.mark.parametrize("paths", [[], "a.weights.h5"])
def test_what_is_no_list_is_refused(paths):
    with pytest.raises(ValueError, match="`paths` must be a list of files"):
        load_average(regressor(), paths)


def test_a_checkpoint_that_does_not_fit_changes_nothing(checkpoints, tmp_path):
    other = XLNetTextRegressor(XLNetBackbone(50, 1, 2, 16, 32))
    other.save_weights(tmp_path / "other.weights.h5")
    model = regressor()
    before = model.get_weights()
    with pytest.raises(ValueError):
        load_average(model, [*checkpoints[0], tmp_path / "other.weights.h5"])
    for found, expected in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)

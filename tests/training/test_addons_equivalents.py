"""Keras equivalents of tensorflow-addons classes (golden numbers of addons 0.23.0)."""

import keras
import numpy as np
import pytest

from keras_xlnet.evaluation import MatthewsCorrelation
from keras_xlnet.training import LambWeightDecay
from tests.training.original_steps import steps_of_addons


def assert_equal(golden, case, optimizer, atol=1e-6):
    expected = golden("addons/tfa.npz")
    first = 0 if f"{case}_0_0" in expected else 1
    for step, values in enumerate(steps_of_addons(golden("addons/traj.npz"), optimizer), first):
        for i, value in enumerate(values):
            np.testing.assert_allclose(value, expected[f"{case}_{step}_{i}"], rtol=0, atol=atol)


def test_lamb_without_decay(golden):
    assert_equal(golden, "lamb", keras.optimizers.Lamb(0.01, epsilon=1e-6))


def test_adamw_of_addons_does_not_multiply_decay_by_the_rate(golden):
    # addons subtracts `weight_decay * w`, Keras `learning_rate * weight_decay * w`.
    optimizer = keras.optimizers.AdamW(0.01, weight_decay=0.001 / 0.01, epsilon=1e-7)
    assert_equal(golden, "adamw", optimizer)
    with pytest.raises(AssertionError):
        assert_equal(golden, "adamw", keras.optimizers.AdamW(0.01, weight_decay=0.001))


def test_lamb_with_decay(golden):
    assert_equal(
        golden, "lamb_wd", LambWeightDecay(0.01, weight_decay=0.01, weight_decay_exclusions=[])
    )
    # Keras adds weight decay outside of the trust ratio, as LambWeightDecay documents.
    with pytest.raises(AssertionError):
        assert_equal(
            golden, "lamb_wd", keras.optimizers.Lamb(0.01, epsilon=1e-6, weight_decay=0.01)
        )


def test_f1_score_and_matthews_correlation(golden):
    arrays = golden("addons/met.npz")
    labels, predicted = arrays["y"], arrays["p"]
    f1 = keras.metrics.F1Score(average="macro")
    f1.update_state(*(keras.utils.to_categorical(x, 3) for x in (labels, predicted)))
    assert float(f1.result()) == pytest.approx(float(arrays["f1"]), abs=1e-6)
    mcc = MatthewsCorrelation(2)
    mcc.update_state(labels > 0, keras.utils.to_categorical(predicted > 0, 2))
    assert float(mcc.result()) == pytest.approx(float(arrays["mcc"]), abs=1e-6)

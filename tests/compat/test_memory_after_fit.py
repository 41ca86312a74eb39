"""Nothing holds the weights of a model that was fitted and deleted."""

import gc
import weakref

import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetTextClassifier
from tests.small_models import small_backbone

TOKEN_IDS = np.random.default_rng(3).integers(9, 40, (6, 8))
LABELS = np.array([0, 1, 1, 0, 1, 0])


def variables_after_fit(optimizer):
    """Weak references to the weights and the slots of a model that no longer exists."""
    model = XLNetTextClassifier(small_backbone(dropout=0.1), num_classes=2)
    if optimizer is not None:
        model.compile(optimizer(1e-3), "sparse_categorical_crossentropy", jit_compile=False)
    model.fit({"token_ids": TOKEN_IDS}, LABELS, verbose=0)
    return [weakref.ref(variable) for variable in [*model.weights, *model.optimizer.variables]]


# The default is not compiled, as it is of another class; Adam is.
@pytest.mark.parametrize("optimizer", [None, keras.optimizers.Adam], ids=["default", "adam"])
def test_weights_are_deleted(optimizer):
    variables = variables_after_fit(optimizer)
    gc.collect()
    assert len(variables) > 60
    assert not any(variable() is not None for variable in variables)

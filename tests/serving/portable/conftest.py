"""Small task models whose weights are large enough that rounding shows."""

import keras
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor

TEXTS = [
    "win a free prize now",
    "see you at lunch",
    "",
    "call now " * 40,
    "``R\u00e9sum\u00e9''  \u4f60\u597d \U0001f600\u2003 1,234 or 9, \u00e9t\u00e9",
]
PAIRS = ["yes", "", "at home", "Call " * 40, "9, or 12,5"]


def make_backbone(num_layers=1, dtype="float32"):
    keras.utils.set_random_seed(6)
    initializer = keras.initializers.RandomNormal(0, 0.3)
    return XLNetBackbone(*(200, num_layers, 2, 32, 64), kernel_initializer=initializer, dtype=dtype)


@pytest.fixture(scope="session")
def preprocessor(tokenizer):
    return XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24)


@pytest.fixture(scope="session")
def classifier(preprocessor):
    names = ["good", "bad", "n\u00e9ither"]
    return XLNetTextClassifier(make_backbone(), 3, preprocessor, class_names=names)

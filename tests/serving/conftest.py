"""One exported classifier for all tests of a process, because an export takes seconds."""

import types

import keras
import numpy as np
import pytest

TEXTS = [
    "win a free prize now",
    "see you at lunch",
    "",
    b"caf\xe9, not UTF-8 \xff",
    "r\u00e9sum\u00e9 \u4f60\u597d \U0001f600",
    "call now " * 40,
    "  12,345 pounds!  ",
]
PAIRS = ["yes", "", "at home", b"\xfe", "call " * 40, "now", "\u597d"]
# TensorFlow stores the second name outside of the tensor, a special case for the C program.
CLASS_NAMES = ["ham", "spam: n\u00e9ver what anybody ever asked for"]


def make_classifier(preprocessor, num_classes, dtype="float32", memory_length=None, **kwargs):
    from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier

    keras.utils.set_random_seed(6)
    backbone = XLNetBackbone(
        *(200, 1, 2, 16, 32),
        kernel_initializer=keras.initializers.RandomNormal(0, 0.5),
        memory_length=memory_length,
        dtype=dtype,
    )
    return XLNetTextClassifier(backbone, num_classes, preprocessor, **kwargs)


@pytest.fixture(scope="session")
def preprocessor(tokenizer):
    from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor

    return XLNetTextClassifierPreprocessor(tokenizer, sequence_length=24)


@pytest.fixture(scope="session")
def spam(preprocessor, tmp_path_factory):
    """A model with two classes, its predictions and its SavedModel."""
    from keras_xlnet.serving import export

    model = make_classifier(preprocessor, 2, class_names=CLASS_NAMES)
    probabilities = model.predict(TEXTS, verbose=0)
    # In the middle of the widest gap, so that labels do not depend on rounding.
    scores = np.sort(probabilities[:, 1])
    widest = np.diff(scores).argmax()
    threshold = float(scores[widest : widest + 2].mean())
    directory = export(
        model,
        tmp_path_factory.mktemp("models") / "spam" / "1",
        threshold=threshold,
        warmup=TEXTS,
    )
    return types.SimpleNamespace(
        model=model,
        directory=directory,
        texts=TEXTS,
        probabilities=probabilities,
        threshold=threshold,
        labels=[CLASS_NAMES[int(p >= threshold)] for p in probabilities[:, 1]],
    )

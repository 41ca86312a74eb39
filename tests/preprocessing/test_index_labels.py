"""Errors name rows by the index label of a pandas column too."""

import numpy as np
import pandas as pd
import pytest

from keras_xlnet.preprocessing.index_labels import index_labels_named

TEXTS = pd.Series(["a", "b", "c"], index=[30, 10, 20])


@pytest.mark.parametrize(
    "given, message, expected",
    [
        ((TEXTS,), "`x` must be. Received in row 1: nan", "in row 1 (index 10): nan"),
        ((["a"] * 3, TEXTS), "`y` must be. Received in row 2: 7", "in row 2 (index 20): 7"),
        ((["a"] * 3, None, TEXTS), "`sample_weight` must. In in row 0", "in row 0 (index 30)"),
        (((["a"] * 3, TEXTS),), "`pair` must be. Received in row 1: 0", "in row 1 (index 10): 0"),
        (({"text": TEXTS},), "`x` must be. Received in row 1: 0", "in row 1 (index 10): 0"),
        ((TEXTS.rename({10: "b"}),), "Received in row 1: 0", "in row 1 (index 'b'): 0"),
        ((TEXTS.to_frame(),), "`x`, in row 1: 0", "in row 1 (index 10): 0"),
        # Places are enough where the index counts them, or there is none.
        ((TEXTS.reset_index(drop=True),), "Received in row 1: 0", "Received in row 1: 0"),
        ((TEXTS.to_list(), np.zeros(3)), "`y` in row 1: 0", "`y` in row 1: 0"),
        ((TEXTS,), "`x` must have rows", "`x` must have rows"),
        ((TEXTS,), "`x` in row 9: 0", "`x` in row 9: 0"),
    ],
)
def test_message(given, message, expected):
    with pytest.raises(ValueError) as error, index_labels_named(*given):
        raise ValueError(message)
    assert str(error.value).endswith(expected)
    assert str(error.value).startswith(message.partition("in row")[0])


def test_labels_that_class_names_are_learned_from(tokenizer):
    from keras_xlnet.models import XLNetTextClassifier
    from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
    from tests.small_models import small_backbone

    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 16)
    classifier = XLNetTextClassifier(small_backbone(), 2, preprocessor)
    labels = pd.Series(["good", None, "bad"], index=TEXTS.index, dtype=object)
    with pytest.raises(ValueError, match=r"`y` must be .* in row 1 \(index 10\): None"):
        classifier.fit(TEXTS, labels)

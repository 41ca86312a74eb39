import keras
import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetTextRegressor
from keras_xlnet.preprocessing import XLNetTextRegressorPreprocessor
from tests.small_models import small_backbone

WORDS = ["prize", "lunch", "home", "cash", "call", "today"]
TEXTS = [" ".join(WORDS[(i + j) % 6] for j in range(1 + i % 5)) for i in range(32)]
# How many words there are.
VALUES = [1.0 + i % 5 for i in range(32)]


@pytest.fixture(scope="module")
def preprocessor(tokenizer):
    return XLNetTextRegressorPreprocessor(tokenizer, sequence_length=32)


def make(preprocessor):
    keras.utils.set_random_seed(5)
    backbone = small_backbone()
    return XLNetTextRegressor(backbone, preprocessor, dropout=0.0, pooling="mean")


def test_learns_from_raw_strings(preprocessor):
    model = make(preprocessor)
    model.compile(keras.optimizers.Adam(0.02))
    history = model.fit(TEXTS, VALUES, epochs=30, batch_size=8, verbose=0).history
    # Their variance is 2.
    assert history["loss"][-1] < 0.3
    loss, error = model.evaluate(TEXTS, VALUES, verbose=0)
    values = model.predict(TEXTS, verbose=0)
    assert values.shape == (32, 1)
    assert loss == pytest.approx(np.square(values[:, 0] - VALUES).mean(), abs=1e-5)
    assert error == pytest.approx(np.abs(values[:, 0] - VALUES).mean(), abs=1e-5)


def test_saved_with_its_vocabulary(preprocessor, tmp_path):
    model = make(preprocessor)
    model.save_to_preset(tmp_path)
    copy = XLNetTextRegressor.from_preset(tmp_path)
    np.testing.assert_array_equal(
        copy.predict(TEXTS[:3], verbose=0), model.predict(TEXTS[:3], verbose=0)
    )


def test_vocabulary_larger_than_the_backbones_is_refused(preprocessor):
    with pytest.raises(ValueError, match="has 200 ids, but the backbone knows only"):
        XLNetTextRegressor(XLNetBackbone(100, 1, 2, 16, 32), preprocessor)

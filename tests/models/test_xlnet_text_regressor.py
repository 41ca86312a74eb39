import keras
import numpy as np
import pytest

from keras_xlnet.checkpoints import load_huggingface, save_huggingface
from keras_xlnet.evaluation import explain
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


def make(preprocessor, **arguments):
    keras.utils.set_random_seed(5)
    backbone = small_backbone()
    arguments = {"dropout": 0.0, "pooling": "mean", **arguments}
    return XLNetTextRegressor(backbone, preprocessor, **arguments)


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


# === Several numbers ===

# How many words there are, and how many different ones.
BOTH = np.array([[len(text.split()), len(set(text.split()))] for text in TEXTS], "float32")


def test_learns_several_numbers(preprocessor):
    model = make(preprocessor, num_outputs=2)
    model.compile(keras.optimizers.Adam(0.02))
    model.fit(TEXTS, BOTH.tolist(), epochs=30, batch_size=8, verbose=0)
    values = model.predict(TEXTS, verbose=0)
    assert values.shape == (32, 2)
    loss, error = model.evaluate(TEXTS, BOTH, verbose=0)
    assert loss < 0.3 and loss == pytest.approx(np.square(values - BOTH).mean(), abs=1e-5)
    assert error == pytest.approx(np.abs(values - BOTH).mean(), abs=1e-5)


def test_forms_of_labels_of_several_numbers(preprocessor):
    pandas = pytest.importorskip("pandas")
    import tensorflow as tf

    model = make(preprocessor, num_outputs=2)
    expected = model.evaluate(TEXTS, BOTH, verbose=0)
    table = pandas.DataFrame(BOTH, columns=["words", "kinds"])
    for y in (table, [*BOTH], [tuple(row) for row in BOTH]):
        assert model.evaluate(TEXTS, y, verbose=0) == pytest.approx(expected)
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, BOTH)).batch(8)
    assert model.evaluate(dataset, verbose=0) == pytest.approx(expected)
    for y, message in (
        (VALUES, r"shape \(texts, 2\) \(2 numbers for each text\)"),
        ([[1.0, None]] * 32, "missing values.* row 0"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(TEXTS, y, verbose=0)


def test_several_numbers_by_name(preprocessor):
    model = make(preprocessor, num_outputs=2)
    assert model.csv_columns == ["value_0", "value_1"]
    rows = model.csv_rows(TEXTS[:2])
    assert rows == model.predict(TEXTS[:2], verbose=0).tolist()
    (found,) = explain(model, ["prize lunch"], label="value_1", verbose=0)
    assert found.label == "value_1"
    assert found.score == pytest.approx(model.predict(["prize lunch"], verbose=0)[0, 1], abs=1e-6)
    with pytest.raises(ValueError, match=r"which of the outputs \['value_0', 'value_1'\]"):
        explain(model, ["prize lunch"], verbose=0)


def test_files_of_several_numbers(preprocessor, tmp_path):
    model = make(preprocessor, num_outputs=2)
    expected = model.predict(TEXTS, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for copy in loaded, XLNetTextRegressor.from_preset(tmp_path / "preset"):
        np.testing.assert_array_equal(copy.predict(TEXTS, verbose=0), expected)


def test_several_numbers_in_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    model = make(None, num_outputs=2, pooling="last")
    save_huggingface(model, tmp_path)
    theirs = transformers.XLNetForSequenceClassification.from_pretrained(tmp_path).eval()
    assert theirs.config.num_labels == 2 and theirs.config.problem_type == "regression"
    ids = np.array([[9, 17, 12, 4, 3], [8, 11, 25, 4, 3]])
    segments = np.array([[0, 0, 0, 0, 2]] * 2)
    with torch.no_grad():
        expected = theirs(torch.tensor(ids), token_type_ids=torch.tensor(segments)).logits.numpy()
    inputs = {"token_ids": ids, "segment_ids": segments}
    np.testing.assert_allclose(model.predict(inputs, verbose=0), expected, atol=1e-5)
    copy = load_huggingface(tmp_path, task="text_regressor")
    np.testing.assert_allclose(copy.predict(inputs, verbose=0), expected, atol=1e-5)


def test_number_of_outputs_is_checked():
    with pytest.raises(ValueError, match="`num_outputs` must be a positive integer"):
        XLNetTextRegressor(XLNetBackbone(100, 1, 2, 16, 32), num_outputs=0)

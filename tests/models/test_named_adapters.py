"""Several adapters of one model, and models that share their weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import (
    Task,
    XLNetPermutationLM,
    XLNetTextClassifier,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.server import ModelStore
from keras_xlnet.serving import export
from tests.small_models import small_backbone

TEXTS = ["The cat sat down.", "It rained all day in Paris", "a free prize", "no"]
IDS = {"token_ids": np.random.default_rng(3).integers(10, 200, (4, 9))}
LORA = {
    "small": {"rank": 2},
    "same": {"rank": 2},
    "other": {"rank": 3, "lora_alpha": 6, "projections": ("key", "feed_forward")},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    """The preset `base`, three adapters of a classifier, and one of a tagger."""
    folder = tmp_path_factory.mktemp("adapters")
    keras.utils.set_random_seed(4)
    backbone = small_backbone(kernel_initializer="glorot_normal")
    XLNetPermutationLM(backbone, tokenizer).save_to_preset(folder / "base")
    rng = np.random.default_rng(7)
    for name, lora in LORA.items():
        save_random(new_classifier(folder, name), lora, folder / name, rng)
    tagger = XLNetTokenClassifier.from_preset(folder / "base", num_classes=3)
    save_random(tagger, {"rank": 2}, folder / "tags", rng)
    return folder


def new_classifier(folder, name="x"):
    return XLNetTextClassifier.from_preset(
        folder / "base", num_classes=2, class_names=[name, "none"], sequence_length=12
    )


def save_random(model, lora, directory, rng):
    model.enable_lora(**lora)
    for weight in model.trainable_variables:
        weight.assign(rng.normal(size=weight.shape) * 0.3)
    model.save_adapter(directory, dtype=None)


def outputs(model):
    return np.asarray(model(IDS))


@pytest.fixture(scope="module")
def expected(folder):
    """The outputs of a model for each adapter, which has it merged."""
    return {
        name: outputs(Task.from_preset(folder / "base", adapter=folder / name))
        for name in (*LORA, "tags")
    }


def assert_computes(model, expected):
    np.testing.assert_allclose(outputs(model), expected, rtol=0, atol=1e-5)


def with_all(folder):
    model = new_classifier(folder)
    for name in LORA:
        model.load_adapter(folder / name, name=name)
    return model


# === One model ===


def test_each_adapter_computes_as_a_model_of_its_own_in_any_order(folder, expected):
    model = new_classifier(folder)
    before = outputs(model)
    differences = [np.abs(x - before).max() for name, x in expected.items() if name in LORA]
    assert min(differences) > 0.01
    for name in ("other", "small", "same"):
        model.load_adapter(folder / name, name=name)
        assert_computes(model, expected[name])
        assert model.label_names == [name, "none"]
    assert model.adapters == ["other", "small", "same"] and model.active_adapter == "same"
    for name in ("small", "other", "same", None, "other", "small"):
        model.set_adapter(name)
        assert model.active_adapter == name
        assert_computes(model, before if name is None else expected[name])


def test_predict_notices_the_adapter(folder, expected):
    model = with_all(folder)
    for name in ("small", "same", "other"):
        model.set_adapter(name)
        found = model.predict(IDS, verbose=0)
        np.testing.assert_allclose(found, expected[name], rtol=0, atol=1e-5)


def test_training_one_adapter_leaves_the_others(folder, tmp_path):
    model = with_all(folder)
    before = {}
    for name in (None, *LORA):
        model.set_adapter(name)
        before[name] = outputs(model)
    model.set_adapter("small")
    model.compile(keras.optimizers.Adam(0.05), jit_compile=False)
    model.fit(TEXTS, ["small", "none", "small", "none"], epochs=2, verbose=0)
    trained = outputs(model)
    assert np.abs(trained - before["small"]).max() > 0.01
    model.save_adapter(tmp_path / "trained", dtype=None)
    for name in ("same", "other", None):
        model.set_adapter(name)
        np.testing.assert_array_equal(outputs(model), before[name])
    model.set_adapter("small")
    np.testing.assert_array_equal(outputs(model), trained)
    loaded = Task.from_preset(folder / "base", adapter=tmp_path / "trained")
    assert_computes(loaded, trained)


def test_a_file_has_the_active_adapter(folder, expected, tmp_path):
    model = with_all(folder)
    model.set_adapter("other")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_computes(loaded, expected["other"])
    assert loaded.adapters == []


def test_adapters_are_deleted(folder, expected):
    model = with_all(folder)
    model.delete_adapter("other")
    assert model.active_adapter is None and model.adapters == ["small", "same"]
    model.set_adapter("same")
    model.delete_adapter("small")
    assert_computes(model, expected["same"])
    for wrong in ("small", None):
        with pytest.raises(ValueError, match="`name` must be one of \\['same'\\]. Received"):
            model.delete_adapter(wrong)


def test_what_is_refused_changes_nothing(folder, expected):
    model = with_all(folder)
    for load, message in (
        (lambda: model.load_adapter(folder / "small", name="small"), "`name` must be a string"),
        (lambda: model.load_adapter(folder / "small", name=""), "`name` must be a string"),
        (lambda: model.load_adapter(folder / "small"), "needs a `name`, because this model has"),
        (lambda: model.load_adapter(folder / "tags", name="tags"), "of XLNetTokenClassifier, not"),
        (lambda: model.set_adapter("tags"), "`name` must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            load()
        assert model.adapters == list(LORA) and model.active_adapter == "other"
        assert_computes(model, expected["other"])
    model.backbone.trainable = True
    with pytest.raises(ValueError, match="no weights of the backbone besides LoRA"):
        model.set_adapter("small")


def test_the_backbone_of_another_model_is_not_changed(folder):
    model = with_all(folder)
    other = XLNetTextRegressor(model.backbone)
    for change in (lambda: model.set_adapter("small"), lambda: model.delete_adapter("other")):
        with pytest.raises(ValueError, match="which XLNetTextRegressor 'xlnet_text_regressor' has"):
            change()
    del other
    model.set_adapter("small")


# === Models that share weights ===


def shared_models(folder):
    first = new_classifier(folder)
    first.load_adapter(folder / "small", name="small")
    models = {"small": first}
    for name in ("other", "tags"):
        models[name] = Task.from_preset(adapter=folder / name, share_with=first)
    return models


def test_models_share_all_weights_but_lora_and_heads(folder, expected):
    models = shared_models(folder)
    base = {id(w) for w in models["small"].backbone.weights if not w.name.startswith("lora_")}
    for name, model in models.items():
        own = {id(w) for w in model.backbone.weights if not w.name.startswith("lora_")}
        assert own == base
        assert model.preprocessor.tokenizer is models["small"].preprocessor.tokenizer
        assert not any(w.trainable for w in model.backbone.weights if id(w) in base)
        assert_computes(model, expected[name])


def test_a_model_that_shares_weights_does_not_change(folder, expected, tmp_path):
    models = shared_models(folder)
    first, tagger = models["small"], models["tags"]
    first.set_adapter(None)
    first.load_adapter(folder / "same", name="same")
    assert_computes(tagger, expected["tags"])
    tagger.compile(keras.optimizers.Adam(0.05), jit_compile=False)
    before = outputs(models["other"])
    words = [text.split() for text in TEXTS]
    tagger.fit(words, [[1] * len(row) for row in words], verbose=0)
    trained = outputs(tagger)
    assert np.abs(trained - expected["tags"]).max() > 0.01
    np.testing.assert_array_equal(outputs(models["other"]), before)
    assert_computes(first, expected["same"])
    tagger.save(tmp_path / "tagger.keras")
    loaded = keras.saving.load_model(tmp_path / "tagger.keras")
    np.testing.assert_array_equal(outputs(loaded), trained)
    assert len(loaded.trainable_variables) == len(tagger.trainable_variables)


def test_shared_weights_are_not_merged_into(folder):
    models = shared_models(folder)
    model = XLNetTextRegressor(models["tags"].backbone)
    with pytest.raises(ValueError, match="An adapter changes the backbone, which"):
        model.load_adapter(folder / "small")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"location": "base"}, "exclude each other"),
        ({"adapter": None}, "`share_with` needs an `adapter`"),
        ({"backbone_trainable": True}, "`backbone_trainable` must be False"),
        ({"lenght": 3}, "no arguments \\['lenght'\\]"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, folder):
    with pytest.raises(ValueError, match=message):
        Task.from_preset(
            **{"adapter": folder / "tags", "share_with": new_classifier(folder), **arguments}
        )


def test_quantized_weights_are_not_shared(folder):
    model = new_classifier(folder)
    model.quantize("int8")
    with pytest.raises(ValueError, match="before `quantize`"):
        Task.from_preset(adapter=folder / "tags", share_with=model)


# === Served from one copy ===


def test_one_saved_model_has_the_weights_once(folder, tmp_path):
    models = shared_models(folder)
    predicted = {name: models[name].predict(TEXTS, verbose=0) for name in ("small", "other")}
    directory = export(models, tmp_path / "tasks" / "1")
    sizes = [
        shape
        for name, shape in tf.train.list_variables(str(directory / "variables" / "variables"))
        if shape == list(models["small"].backbone.token_embedding.embeddings.shape)
    ]
    assert len(sizes) == 1
    store = ModelStore(tmp_path)
    store.refresh()
    assert store.names == ["other", "small", "tags"]
    assert store.get("other").class_names == ["other", "none"]
    texts = {"text": np.array(TEXTS, object)}
    for name in ("other", "small"):
        found = store.get(name).run("serving_default", texts)["probabilities"]
        np.testing.assert_allclose(found, predicted[name], rtol=0, atol=1e-5)
    assert "serving_words" in store.get("tags").signature_defs
    loaded = tf.saved_model.load(str(directory))
    served = loaded.signatures["small/serving_default"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(served["probabilities"], predicted["small"], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "models, arguments, message",
    [
        ({}, {}, "a dict of models by name"),
        ({"a/b": None}, {}, "Received the names: \\['a/b'\\]"),
        ({"a": None}, {"warmup": ["a text"]}, "must be a dict by their names"),
    ],
)
def test_wrong_exports_are_refused(models, arguments, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        export(models, tmp_path / "1", **arguments)

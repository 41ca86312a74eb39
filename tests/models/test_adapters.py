"""LoRA and heads that are saved apart from the backbone, and loaded again."""

import functools
import json
import shutil

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_xlnet.models import (
    Task,
    XLNetBackbone,
    XLNetMultipleChoice,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetRanker,
    XLNetTextClassifier,
    XLNetTextEmbedder,
    XLNetTextRegressor,
    XLNetTokenClassifier,
)
from keras_xlnet.preprocessing import XLNetTextRegressorPreprocessor

TEXTS = ["The cat sat down.", "It rained all day in Paris", "a free prize", "no"]
IDS = np.random.default_rng(3).integers(10, 200, (4, 9))


def new_backbone(**kwargs):
    return XLNetBackbone(
        200, 2, 2, 16, 32, kernel_initializer="glorot_normal", **{"dropout": 0.0, **kwargs}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer):
    """The preset `base`, an adapter of a classifier that was trained on it, and the classifier."""
    folder = tmp_path_factory.mktemp("adapters")
    keras.utils.set_random_seed(4)
    XLNetPermutationLM(new_backbone(memory_length=3), tokenizer).save_to_preset(folder / "base")
    model = classifier(folder)
    before = model.predict(TEXTS, verbose=0)
    model.enable_lora(2, lora_alpha=8, projections=("query", "output"))
    train(model, TEXTS, [0, 1, 2, 1])
    model.save_adapter(folder / "adapter", dtype=None)
    assert np.abs(model.predict(TEXTS, verbose=0) - before).max() > 0.01
    return folder, model


def classifier(folder, **overrides):
    arguments = {
        "num_classes": 3,
        "class_names": ["a", "b", "c"],
        "pooling": "mean",
        "sequence_length": 12,
        **overrides,
    }
    return XLNetTextClassifier.from_preset(folder / "base", **arguments)


@functools.cache
def ready_classifier(folder):
    """A classifier for tests that do not change it."""
    return classifier(folder)


def train(model, x, y):
    model.compile(keras.optimizers.Adam(0.02), jit_compile=False)
    model.fit(x, y, epochs=3, verbose=0)


def arrays(model):
    return {weight.path: np.array(weight) for weight in model.weights}


def assert_same(model, other, inputs=TEXTS):
    outputs = (m.predict(inputs, verbose=0) for m in (model, other))
    np.testing.assert_allclose(*outputs, rtol=0, atol=1e-5)


# === What is written ===


def test_only_lora_and_the_head_are_saved(folder):
    folder, model = folder
    stored = load_file(folder / "adapter" / "adapter.safetensors")
    layers = [f"block_{i}/attention/{name}" for i in (0, 1) for name in ("query", "output")]
    matrices = {f"{layer}/lora_kernel_{m}" for layer in layers for m in "ab"}
    summary = {f"sequence_summary/dense/{name}" for name in ("kernel", "bias")}
    assert set(stored) == matrices | summary | {"logits/kernel", "logits/bias"}
    np.testing.assert_array_equal(stored["logits/kernel"], model.logits_dense.kernel)
    config = json.loads((folder / "adapter" / "adapter.json").read_text())
    assert config["lora"] == {layer: [2, 8] for layer in layers}
    assert config["base"]["preset"] is None
    assert not {"lora", "trainability"} & set(config["config"])


def test_matrices_are_stored_in_half_of_the_space_by_default(folder, tmp_path):
    folder, model = folder
    model.save_adapter(tmp_path)
    stored = load_file(tmp_path / "adapter.safetensors")
    assert {array.dtype.name for array in stored.values()} == {"float16"}
    loaded = Task.from_preset(folder / "base", adapter=tmp_path)
    outputs = (m.predict(TEXTS, verbose=0) for m in (model, loaded))
    np.testing.assert_allclose(*outputs, rtol=0, atol=5e-3)


def test_the_card_says_what_the_adapter_is(folder, tmp_path):
    folder, model = folder
    card = {"description": "Three kinds", "data": "Few", "metrics": {"F1": 0.5}, "license": "mit"}
    model.save_adapter(tmp_path / "kinds", card=card)
    text = (tmp_path / "kinds" / "README.md").read_text()
    for expected in ("# kinds", "Three kinds", "Few", "| F1 | 0.5 |", 'license: "mit"'):
        assert expected in text
    assert 'XLNetTextClassifier.from_preset(base, adapter="kinds")' in text
    assert "| classes | a, b, c |" in text and "| rank of LoRA | 2 |" in text
    model.save_adapter(tmp_path / "kinds")
    assert (tmp_path / "kinds" / "README.md").read_text() == text
    with pytest.raises(ValueError, match="`card` must be a dict"):
        model.save_adapter(tmp_path / "kinds", card={"title": "Kinds"})


# === Loading ===


def test_merged_the_outputs_are_those_of_the_training(folder, tmp_path):
    folder, model = folder
    merged = classifier(folder)
    merged.predict(TEXTS, verbose=0)  # What is compiled before computes with the new weights.
    merged.load_adapter(folder / "adapter")
    assert not merged.sublayer_config()
    assert_same(model, merged)
    merged.save_to_preset(tmp_path / "preset")
    assert_same(model, XLNetTextClassifier.from_preset(tmp_path / "preset"))
    merged.save(tmp_path / "model.keras")
    assert_same(model, keras.saving.load_model(tmp_path / "model.keras"))


def test_lora_of_all_kernels_is_merged(folder, tmp_path, rng):
    folder, _ = folder
    model = classifier(folder)
    before = model.predict(TEXTS, verbose=0)
    kernels = ("query", "key", "value", "position", "output", "feed_forward")
    model.enable_lora(3, projections=kernels)
    for weight in model.backbone.trainable_variables:
        weight.assign(rng.normal(size=weight.shape) * 0.1)
    model.save_adapter(tmp_path, dtype=None)
    loaded = Task.from_preset(folder / "base", adapter=tmp_path)
    assert len(json.loads((tmp_path / "adapter.json").read_text())["lora"]) == 2 * 7
    assert np.abs(model.predict(TEXTS, verbose=0) - before).max() > 0.01
    assert_same(model, loaded)


def test_with_lora_the_training_goes_on(folder):
    folder, model = folder
    other = classifier(folder)
    other.enable_lora(2, lora_alpha=8, projections=("query", "output"))
    other.load_adapter(folder / "adapter")
    for name in ("lora_kernel_a", "lora_kernel_b"):
        own, loaded = (
            getattr(m.backbone.blocks[1].attention.query_dense, name) for m in (model, other)
        )
        np.testing.assert_array_equal(own, loaded)
    assert_same(model, other)
    kernel = np.array(other.backbone.blocks[0].attention.query_dense._kernel)
    before = other.predict(TEXTS, verbose=0)
    train(other, TEXTS, [2, 1, 0, 0])
    assert np.abs(other.predict(TEXTS, verbose=0) - before).max() > 0.01
    np.testing.assert_array_equal(other.backbone.blocks[0].attention.query_dense._kernel, kernel)


def test_the_names_of_classes_come_with_the_head(folder):
    folder, _ = folder
    model = classifier(folder, class_names=None)
    model.load_adapter(folder / "adapter")
    assert model.classify(TEXTS[:1], verbose=0)[0].label in ("a", "b", "c")


def test_from_preset_makes_what_the_adapter_was_trained_with(folder):
    folder, model = folder
    for cls in (Task, XLNetTextClassifier):
        loaded = cls.from_preset(folder / "base", adapter=folder / "adapter")
        assert type(loaded) is XLNetTextClassifier
        assert (loaded.pooling, loaded.class_names) == ("mean", ["a", "b", "c"])
        assert loaded.preprocessor.sequence_length == 12
        assert_same(model, loaded)


def test_overrides_are_those_of_from_preset(folder):
    folder, _ = folder
    arguments = {"adapter": folder / "adapter", "sequence_length": 7, "backbone_dropout": 0.3}
    loaded = Task.from_preset(folder / "base", trainable=False, **arguments)
    assert loaded.preprocessor.sequence_length == 7 and loaded.backbone.dropout == 0.3
    assert not loaded.trainable_variables
    with pytest.raises(ValueError, match="no arguments \\['lenght'\\] to override"):
        Task.from_preset(folder / "base", adapter=folder / "adapter", lenght=3)


def test_the_base_may_be_a_preset_of_a_task(folder, tmp_path):
    folder, model = folder
    classifier(folder, num_classes=2, class_names=None).save_to_preset(tmp_path)
    assert_same(model, Task.from_preset(tmp_path, adapter=folder / "adapter"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_base_may_be_stored_or_loaded_in_half_precision(dtype, folder, tmp_path):
    folder, model = folder
    loaded = Task.from_preset(folder / "base", adapter=folder / "adapter", dtype=dtype)
    expected, found = (m.predict(TEXTS, verbose=0) for m in (model, loaded))
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.05)


def test_a_base_stored_as_float16_is_the_same_base(folder, tmp_path):
    folder, model = folder
    XLNetPermutationLM.from_preset(folder / "base").save_to_preset(tmp_path, dtype="float16")
    loaded = Task.from_preset(tmp_path, adapter=folder / "adapter")
    outputs = (m.predict(TEXTS, verbose=0) for m in (model, loaded))
    np.testing.assert_allclose(*outputs, rtol=0, atol=5e-3)


@pytest.mark.parametrize(
    "cls, arguments",
    [
        (XLNetTextRegressor, {}),
        (XLNetTextEmbedder, {}),
        (XLNetTokenClassifier, {"num_classes": 3}),
        (XLNetQuestionAnswering, {"null_threshold": 0.25}),
        (XLNetMultipleChoice, {"pooling": "pair"}),
        (XLNetRanker, {}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_task_has_adapters(cls, arguments, folder, tmp_path, rng):
    folder, _ = folder
    model = cls.from_preset(folder / "base", **arguments)
    model.enable_lora(2)
    for weight in model.trainable_variables:
        weight.assign(rng.normal(size=weight.shape) * 0.2)
    model.save_adapter(tmp_path, dtype="float32")
    loaded = Task.from_preset(folder / "base", adapter=tmp_path)
    assert type(loaded) is cls
    if cls is XLNetQuestionAnswering:
        assert loaded.null_threshold == 0.25
    # Some take several texts a row.
    has_lists = cls in (XLNetTextEmbedder, XLNetMultipleChoice, XLNetRanker)
    ids = np.stack([IDS, IDS[::-1]], axis=1) if has_lists else IDS
    outputs = [
        keras.tree.flatten(m.predict({"token_ids": ids}, verbose=0)) for m in (model, loaded)
    ]
    for expected, found in zip(*outputs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


# === `Task.from_preset` without an adapter ===


def test_the_class_of_a_task_is_that_of_its_preset(folder, tmp_path):
    folder, _ = folder
    XLNetTokenClassifier(new_backbone(), 4).save_to_preset(tmp_path)
    loaded = Task.from_preset(tmp_path)
    assert type(loaded) is XLNetTokenClassifier and loaded.num_classes == 4
    with pytest.raises(ValueError, match="a task model. .*XLNetPermutationLM'. Call"):
        Task.from_preset(folder / "base")
    with pytest.raises(ValueError, match="needs a `location` or an `adapter`"):
        Task.from_preset()


# === What is refused ===


def test_a_model_without_lora_has_no_adapter(folder, tmp_path):
    with pytest.raises(ValueError, match="XLNetTextClassifier has no LoRA to save. Call"):
        classifier(folder[0]).save_adapter(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_is_trained_and_would_not_be_saved_is_refused(folder, tmp_path):
    model = classifier(folder[0])
    model.enable_lora(2)
    model.backbone.blocks[1].attention.key_dense.kernel.trainable = True
    with pytest.raises(ValueError, match="besides LoRA.*: \\['block_1/attention/key/kernel'\\]"):
        model.save_adapter(tmp_path / "new")
    model.backbone.trainable = False
    model.sequence_summary.dense.enable_lora(2)
    with pytest.raises(ValueError, match="without LoRA. Received: LoRA in .*summary/dense"):
        model.save_adapter(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_classes": 2, "class_names": None}, "num_classes=3. Received: .* num_classes=2"),
        ({"pooling": "last"}, "pooling='mean'. Received: .* with pooling='last'"),
    ],
)
def test_other_arguments_are_refused(arguments, message, folder):
    folder, _ = folder
    model = classifier(folder, **arguments)
    before = arrays(model)
    with pytest.raises(ValueError, match=message):
        model.load_adapter(folder / "adapter")
    for path, array in arrays(model).items():
        np.testing.assert_array_equal(array, before[path])


def test_another_class_is_refused(folder):
    folder, _ = folder
    for load in (
        lambda: XLNetTextRegressor.from_preset(folder / "base").load_adapter(folder / "adapter"),
        lambda: XLNetTextRegressor.from_preset(folder / "base", adapter=folder / "adapter"),
    ):
        with pytest.raises(ValueError, match="of XLNetTextClassifier, not of XLNetTextRegressor"):
            load()


def test_other_sizes_are_refused(folder, tokenizer, tmp_path):
    folder, _ = folder
    backbone = XLNetBackbone(200, 2, 2, 8, 32)
    model = XLNetTextClassifier(backbone, 3, pooling="mean")
    with pytest.raises(ValueError, match="with hidden_dim=16, and that of this model has .*=8"):
        model.load_adapter(folder / "adapter")
    backbone.save_to_preset(tmp_path, tokenizer)
    with pytest.raises(ValueError, match=f"hidden_dim=16, and that of {tmp_path} has .*=8"):
        Task.from_preset(tmp_path, adapter=folder / "adapter")


def test_other_weights_are_refused(folder):
    folder, _ = folder
    model = XLNetTextClassifier(new_backbone(), 3, pooling="mean")
    with pytest.raises(ValueError, match="belongs to a backbone with other weights than"):
        model.load_adapter(folder / "adapter")
    # Of two adapters each is for the base.
    model = classifier(folder)
    model.load_adapter(folder / "adapter")
    with pytest.raises(ValueError, match="when an adapter is merged into them"):
        model.load_adapter(folder / "adapter")


@pytest.mark.parametrize(
    "dtype, stored",
    [(d, "float32") for d in ("float32", "mixed_bfloat16")]
    + [(d, "float16") for d in ("float16", "bfloat16")],
)
def test_an_adapter_is_merged_once(dtype, stored, folder, tmp_path):
    folder, _ = folder
    XLNetPermutationLM.from_preset(folder / "base").save_to_preset(tmp_path / "base", dtype=stored)
    arguments = {"num_classes": 3, "pooling": "mean", "dtype": dtype}
    model = XLNetTextClassifier.from_preset(tmp_path / "base", **arguments)
    model.load_adapter(folder / "adapter")
    merged = arrays(model)
    model.save_to_preset(tmp_path / "merged")
    for loaded in (model, XLNetTextClassifier.from_preset(tmp_path / "merged")):
        with pytest.raises(ValueError, match="when an adapter is merged into them"):
            loaded.load_adapter(folder / "adapter")
        for path, array in arrays(loaded).items():
            np.testing.assert_array_equal(array, merged[path])


def test_the_backbone_of_other_models_is_not_changed(folder):
    folder, _ = folder
    model = classifier(folder)
    other = XLNetTextRegressor(model.backbone, model_preprocessor(model))
    before = arrays(model)
    with pytest.raises(ValueError, match="the backbone, which XLNetTextRegressor 'xlnet_text_reg"):
        model.load_adapter(folder / "adapter")
    for path, array in arrays(model).items():
        np.testing.assert_array_equal(array, before[path])
    copy = model.with_arguments()
    copy.load_adapter(folder / "adapter")
    del other
    model.load_adapter(folder / "adapter")
    assert_same(model, copy)


def model_preprocessor(model):
    return XLNetTextRegressorPreprocessor(model.preprocessor.tokenizer, 12)


def test_other_lora_is_refused(folder):
    folder, _ = folder
    for arguments in ({"rank": 3}, {"rank": 2}, {"rank": 2, "lora_alpha": 8}):
        model = classifier(folder)
        model.enable_lora(**arguments)
        with pytest.raises(ValueError, match="LoRA of rank 2 and scale 8 in 4 layers.*, and this"):
            model.load_adapter(folder / "adapter")


def test_quantized_models_are_refused(folder, tmp_path):
    folder, _ = folder
    model = classifier(folder)
    model.quantize("int8")
    with pytest.raises(ValueError, match="before `quantize`"):
        model.load_adapter(folder / "adapter")


def change(file, edit):
    content = json.loads(file.read_text())
    edit(content)
    file.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda a: (a / "adapter.json").write_text("{"), "adapter.json is not JSON"),
        (lambda a: (a / "adapter.safetensors").write_bytes(b"x" * 9), "cannot be read as"),
        (lambda a: change(a / "adapter.json", lambda c: c.pop("lora")), "its 'lora' is None"),
        (
            lambda a: change(a / "adapter.json", lambda c: c["lora"].update({"x": [2]})),
            "is damaged: its 'lora' is",
        ),
        (
            lambda a: change(a / "adapter.json", lambda c: c["lora"].update({"x": [2, 2]})),
            "the backbone has no layer 'x'",
        ),
        (lambda a: change(a / "adapter.json", lambda c: c.pop("base")), "its 'base' is None"),
        (
            lambda a: change(a / "adapter.json", lambda c: c["config"].pop("backbone")),
            "is damaged: its backbone is None",
        ),
        (
            lambda a: change(
                a / "adapter.json",
                lambda c: c["config"].update({"dropout": {"class_name": "Lambda"}}),
            ),
            "names 'Lambda'",
        ),
        (
            lambda a: change(a / "adapter.json", lambda c: c.update(registered_name="os>system")),
            "holds a 'os>system', not",
        ),
        *(
            (lambda a, edit=edit: change(a / "adapter.json", edit), f"adapter.json.*{message}")
            for edit, message in (
                (lambda c: c.update(more=1), "unknown keys, .'more'."),
                (lambda c: c["base"].update(more=1), "'base' is"),
                (lambda c: c["base"].update(sha256_in_bfloat16=[3]), "'base' is"),
                (lambda c: c["config"].update(more=1), "does not have: .'more'."),
                (lambda c: c["config"].update(class_names=["a", "b"]), "must have `num_classes` n"),
                (lambda c: c["config"].update(class_names="abc"), "must be a list of strings"),
                (lambda c: c["config"].update(class_names=["a", None, "c"]), "a list of strings"),
                (lambda c: c["config"].update(class_names=5), "must be a list of strings"),
                (lambda c: c["config"].update(num_classes=2), "must have `num_classes` names"),
                (lambda c: c["config"].update(num_classes=3.0), "a value for `num_classes`"),
                (lambda c: c["config"].update(threshold=2), "`threshold` must be a number"),
                (lambda c: c["config"].update(threshold="a"), "a value for `threshold`"),
                (lambda c: c["config"].update(dropout=-1), "must be a dropout rate"),
                (lambda c: c["config"].update(gradient_segments="a"), "for `gradient_segments`"),
                (lambda c: c["config"].update(preprocessor=5), "does not describe a model"),
                (
                    lambda c: c["config"]["preprocessor"]["config"].update(sequence_length=0),
                    "`sequence_length` must be",
                ),
                (
                    lambda c: c["config"]["backbone"]["config"].update(num_layers=2.0),
                    "a value for `num_layers`",
                ),
                (
                    lambda c: c["config"]["backbone"]["config"].update(attention_dropout=3),
                    "must be a dropout rate",
                ),
                (lambda c: c["lora"].update({"x": [True, 2]}), "its 'lora' is"),
                (lambda c: c["lora"].update({"x": [2, 0]}), "its 'lora' is"),
            )
        ),
    ],
)
def test_damaged_files_are_refused(damage, message, folder, tmp_path):
    folder, _ = folder
    shutil.copytree(folder / "adapter", tmp_path / "adapter")
    damage(tmp_path / "adapter")
    model = ready_classifier(folder)
    before = arrays(model)
    for load in (
        lambda: Task.from_preset(folder / "base", adapter=tmp_path / "adapter"),
        lambda: model.load_adapter(tmp_path / "adapter"),
    ):
        with pytest.raises(ValueError, match=message) as error:
            load()
        assert "\n" not in str(error.value)
    assert model.class_names == ["a", "b", "c"] and model.threshold == 0.5
    for path, array in arrays(model).items():
        np.testing.assert_array_equal(array, before[path])


def test_missing_and_other_weights_are_refused(folder, tmp_path):
    folder, _ = folder
    shutil.copytree(folder / "adapter", tmp_path / "adapter")
    file = tmp_path / "adapter" / "adapter.safetensors"
    stored = load_file(file)
    query = "block_0/attention/query/lora_kernel_a"
    for changed, message in (
        ({k: v for k, v in stored.items() if k != query}, "lacks 1 of 12 weights"),
        ({**stored, "more": stored[query]}, "'more' in .* is not a weight of the model"),
        ({**stored, query: stored[query][..., :1]}, "has shape .*, 1\\), expected .*, 2\\)"),
    ):
        save_file(changed, file)
        model = classifier(folder)
        before = arrays(model)
        with pytest.raises(ValueError, match=message):
            model.load_adapter(tmp_path / "adapter")
        for path, array in arrays(model).items():
            np.testing.assert_array_equal(array, before[path])


def test_what_is_no_adapter_is_refused(folder, tmp_path):
    folder, _ = folder
    with pytest.raises(FileNotFoundError, match="base is not an adapter: it has no adapter.json"):
        Task.from_preset(folder / "base", adapter=folder / "base")
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        Task.from_preset(folder / "base", adapter=tmp_path / "none")
    with pytest.raises(ValueError, match="to no preset that comes with the package: pass `loc"):
        Task.from_preset(adapter=folder / "adapter")
    with pytest.raises(ValueError, match="needs the weights of the preset"):
        Task.from_preset(folder / "base", adapter=folder / "adapter", load_weights=False)

"""What all models have in common: checks before the first step, seeds, LoRA, copies."""

import copy
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet import models
from keras_xlnet.models import (
    XLNetBackbone,
    XLNetPermutationLM,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
)
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer

SIZES = (40, 2, 2, 16, 24)


def backbone_of(**kwargs):
    return XLNetBackbone(*SIZES, **kwargs)


MODELS = {
    "backbone": lambda **kwargs: backbone_of(**kwargs),
    "permutation_lm": lambda **kwargs: XLNetPermutationLM(backbone_of(**kwargs)),
    "text_classifier": lambda **kwargs: XLNetTextClassifier(backbone_of(**kwargs), 2),
    "attention_pooling": lambda **kwargs: XLNetTextClassifier(
        backbone_of(**kwargs), 2, pooling="attention"
    ),
    "pair_comparison": lambda **kwargs: XLNetTextClassifier(
        backbone_of(**kwargs), 2, pooling="pair"
    ),
    "segments": lambda **kwargs: XLNetTextClassifier(
        backbone_of(**{"memory_length": 4, **kwargs}), 2, long_document="memory", segment_length=4
    ),
    "windows": lambda **kwargs: XLNetTextClassifier(
        backbone_of(**kwargs), 2, long_document="windows", segment_length=4
    ),
    "text_regressor": lambda **kwargs: models.XLNetTextRegressor(backbone_of(**kwargs)),
    "multi_task": lambda **kwargs: models.MultiTask(
        {"topic": XLNetTextClassifier(backbone_of(**kwargs), 2)}
    ),
    "token_classifier": lambda **kwargs: models.XLNetTokenClassifier(backbone_of(**kwargs), 3),
    "multiple_choice": lambda **kwargs: models.XLNetMultipleChoice(backbone_of(**kwargs)),
    "question_answering": lambda **kwargs: models.XLNetQuestionAnswering(backbone_of(**kwargs)),
}


def classifier_data(rng, rows=4, length=6):
    return {"token_ids": rng.integers(9, 40, (rows, length))}, np.arange(rows) % 2


def lm_data(rng, rows=4, length=6):
    inputs = {
        "token_ids": rng.integers(9, 40, (rows, length)),
        "permutation_mask": np.tri(length, k=-1, dtype="bool")[None].repeat(rows, axis=0),
        "target_positions": np.tile([2, 5, -1], (rows, 1)),
    }
    return inputs, rng.integers(9, 40, (rows, 3))


# === Seeds ===


@pytest.mark.parametrize("name", MODELS)
def test_no_two_seeds_of_a_model_are_equal(name):
    model = MODELS[name](seed=11, dropout=0.1, attention_dropout=0.1)
    layers = {id(layer): layer for layer in model._flatten_layers()}
    seeds = [
        layer.seed
        for layer in layers.values()
        if isinstance(layer, keras.layers.Dropout) or type(layer).__name__ == "HashDropout"
    ]
    assert len(seeds) >= 2 * 4 + 3
    assert None not in seeds
    assert len(set(seeds)) == len(seeds)


# === Ranges of arrays ===


@pytest.mark.parametrize("wrong", [-1, 40])
@pytest.mark.parametrize(
    "name",
    ["fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch", "call"],
)
def test_ids_beyond_the_vocabulary_are_refused_before_the_first_step(name, wrong, rng):
    model = XLNetTextClassifier(backbone_of(), 2)
    x, y = classifier_data(rng)
    x["token_ids"][2, 3] = wrong
    calls = [model, model.backbone] if name == "call" else [getattr(model, name)]
    arguments = (x,) if "predict" in name or name == "call" else (x, y)
    silently = {"verbose": 0} if name in ("fit", "evaluate", "predict") else {}
    for call in calls:
        with pytest.raises(ValueError, match=f"`token_ids`.*0 to 39.*Received: {wrong} in row 2"):
            call(*arguments, **silently)


@pytest.mark.parametrize("key", ["cls_index", "start_positions"])
@pytest.mark.parametrize("wrong", [-1, 5])
def test_positions_of_answers_beyond_the_sequence_are_refused(key, wrong, rng):
    model = XLNetQuestionAnswering(backbone_of())
    x = {"token_ids": rng.integers(9, 40, (3, 5)), key: np.array([1, 4, wrong])}
    with pytest.raises(ValueError, match=f"`{key}` must be from 0 to 4.*{wrong} in row 2"):
        model(x)


def test_validation_data_is_checked_too(rng):
    x, y = classifier_data(rng)
    wrong = {"token_ids": x["token_ids"] + 40}
    with pytest.raises(ValueError, match="`token_ids`"):
        XLNetTextClassifier(backbone_of(), 2).fit(x, y, validation_data=(wrong, y), verbose=0)


@pytest.mark.parametrize("name", ["fit", "evaluate", "train_on_batch", "test_on_batch"])
@pytest.mark.parametrize("wrong", [-1, 40])
def test_labels_of_language_models_beyond_the_vocabulary_are_refused(name, wrong, rng):
    x, y = lm_data(rng)
    y[1, 2] = wrong
    with pytest.raises(ValueError, match=f"`y` must be from 0 to 39.*{wrong} in row 1"):
        getattr(XLNetPermutationLM(backbone_of()), name)(x, y)


@pytest.mark.parametrize("wrong", [-2, 6])
def test_target_positions_beyond_the_sequence_are_refused(wrong, rng):
    x, _ = lm_data(rng)
    x["target_positions"][1, 0] = wrong
    with pytest.raises(ValueError, match=f"`target_positions`.*-1 to 5.*{wrong} in row 1"):
        XLNetPermutationLM(backbone_of()).predict(x, verbose=0)


@pytest.mark.parametrize("wrong", [-1, -2, 6, 9])
@pytest.mark.parametrize("objective", ["permutation", "denoising"])
def test_in_a_call_they_read_no_other_row(wrong, objective, rng):
    model = XLNetPermutationLM(backbone_of(), objective=objective)
    x, _ = lm_data(rng)
    x["target_positions"][1, 0] = wrong
    call = tf.function(lambda x: model(x)["logits"])  # Values of a graph are not checked.
    before = np.asarray(call(x))
    for row in (0, 2, 3):
        x["permutation_mask"][row] = ~x["permutation_mask"][row]
        x["token_ids"][row] = rng.integers(9, 40, 6)
    np.testing.assert_array_equal(np.asarray(call(x))[1], before[1])


def test_padded_targets_weigh_nothing(rng):
    model = XLNetPermutationLM(backbone_of(dropout=0.0, attention_dropout=0.0))
    model.compile(run_eagerly=True)
    x, y = lm_data(rng)
    padded = model.evaluate(x, y, verbose=0)
    np.testing.assert_allclose(
        padded, model.evaluate(x, np.where(x["target_positions"] < 0, 9, y), verbose=0)
    )
    short = {**x, "target_positions": x["target_positions"][:, :2]}
    np.testing.assert_allclose(padded, model.evaluate(short, y[:, :2], verbose=0), rtol=1e-5)
    weights = rng.random((4, 3))
    np.testing.assert_allclose(
        model.evaluate(x, y, sample_weight=weights, verbose=0),
        model.evaluate(short, y[:, :2], sample_weight=weights[:, :2], verbose=0),
        rtol=1e-5,
    )


# === Dtypes ===


def test_float16_is_refused_in_training_with_the_policy_that_works(rng):
    x, y = classifier_data(rng)
    model = XLNetTextClassifier(backbone_of(dtype="float16"), 2)
    assert np.isfinite(model.predict(x, verbose=0)).all()
    with pytest.raises(ValueError, match="dtype='mixed_float16'"):
        model.fit(x, y, verbose=0)
    mixed = XLNetTextClassifier(backbone_of(dtype="mixed_float16"), 2)
    mixed.compile(run_eagerly=True)
    assert np.isfinite(mixed.fit(x, y, verbose=0, epochs=2).history["loss"]).all()


def test_bfloat16_weights_are_trained_with_a_warning(rng):
    x, y = classifier_data(rng)
    model = XLNetTextClassifier(backbone_of(dtype="bfloat16"), 2)
    model.compile(keras.optimizers.SGD(1e-4), run_eagerly=True)
    before = np.float32(model.backbone.trainable_variables[0])
    with pytest.warns(UserWarning, match="Use `dtype='mixed_bfloat16'`"):
        model.fit(x, y, verbose=0)
    # This is what it warns of.
    np.testing.assert_array_equal(np.float32(model.backbone.trainable_variables[0]), before)


def test_the_first_fit_warns_of_nothing(rng, caplog):
    x, y = classifier_data(rng)
    model = XLNetTextClassifier(XLNetBackbone(40, 1, 2, 16, 24), 2)
    model.compile(keras.optimizers.SGD())
    with caplog.at_level("WARNING", logger="tensorflow"):
        model.fit(x, y, verbose=0)
    assert "dtype of the watched tensor" not in caplog.text


# === LoRA ===


@pytest.mark.parametrize("gradient_checkpointing", [False, True])
def test_lora_trains_its_matrices_and_the_head_alone(gradient_checkpointing, rng):
    x, y = classifier_data(rng)
    # With XLNet's initializer, the gradients of so small a model vanish beside Adam's epsilon.
    backbone = backbone_of(
        gradient_checkpointing=gradient_checkpointing,
        kernel_initializer=keras.initializers.RandomNormal(stddev=0.4),
    )
    model = XLNetTextClassifier(backbone, 2)
    before = model(x)
    model.enable_lora(rank=3)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=not gradient_checkpointing)
    np.testing.assert_allclose(model(x), before, atol=1e-5)
    assert len(backbone.trainable_variables) == 2 * 2 * 2
    values = {v.path: np.array(v) for v in model.weights}
    model.fit(x, y, epochs=2, verbose=0)
    changed = {v.path for v in model.weights if not np.array_equal(v, values[v.path])}
    assert changed == {v.path for v in model.trainable_variables}


def test_lora_of_feed_forward_networks(rng):
    x, _ = classifier_data(rng)
    model = XLNetTextClassifier(backbone_of(), 2)
    before = model(x)
    model.enable_lora(rank=2, projections=("feed_forward",))
    backbone = model.backbone
    layers = ("intermediate", "output")
    assert {v.path.removeprefix(f"{backbone.name}/") for v in backbone.trainable_variables} == {
        f"block_{i}/feed_forward/{layer}/lora_kernel_{m}"
        for i in range(len(backbone.blocks))
        for layer in layers
        for m in "ab"
    }
    np.testing.assert_allclose(model(x), before, atol=1e-5)
    for block in backbone.blocks:
        dense = block.feed_forward.output_dense
        dense.lora_kernel_b.assign(rng.normal(size=dense.lora_kernel_b.shape))
    assert np.abs(model(x) - before).max() > 1e-4


def test_what_was_compiled_before_lora_computes_with_it(rng):
    x, y = classifier_data(rng)
    model = XLNetTextClassifier(backbone_of(kernel_initializer="glorot_normal"), 2)
    before = model.predict(x, verbose=0)
    loss = model.evaluate(x, y, verbose=0)
    model.enable_lora(rank=2)
    for weight in model.backbone.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))
    assert np.abs(model.predict(x, verbose=0) - before).max() > 1e-3
    np.testing.assert_allclose(model.predict(x, verbose=0), model(x), atol=1e-5)
    assert model.evaluate(x, y, verbose=0) != loss


def test_lora_of_other_projections():
    backbone = backbone_of()
    backbone.enable_lora(rank=2, projections=("position", "output"))
    assert {v.path.split("/")[-2] for v in backbone.trainable_variables} == {"position", "output"}
    with pytest.raises(ValueError, match="`projections` must be a list of some of"):
        backbone.enable_lora(rank=2, projections=("queries",))


# === Copies ===


@pytest.mark.parametrize("name", MODELS)
def test_clones_have_the_class_and_other_weights(name):
    model = MODELS[name](memory_length=3) if name == "permutation_lm" else MODELS[name]()
    clone = model.clone()
    assert type(clone) is type(model)
    assert clone.get_config() == model.get_config()
    assert not {id(v) for v in clone.variables} & {id(v) for v in model.variables}
    assert [v.shape for v in clone.weights] == [v.shape for v in model.weights]


def test_a_clone_is_compiled_as_the_model_was(rng):
    model = XLNetTextClassifier(backbone_of(), 2)
    model.compile(keras.optimizers.SGD(0.25), metrics=["sparse_top_k_categorical_accuracy"])
    clone = model.clone()
    assert isinstance(clone.optimizer, keras.optimizers.SGD)
    assert float(clone.optimizer.learning_rate) == 0.25
    logs = clone.evaluate(*classifier_data(rng), verbose=0, return_dict=True)
    assert "sparse_top_k_categorical_accuracy" in logs


# === The same weights with other arguments ===


def stateful_lm(**kwargs):
    return models.TransformerXLLanguageModel(
        40, 2, 2, 16, 24, memory_length=4, stateful=True, batch_size=2, **kwargs
    )


def test_with_arguments_keeps_the_weights_and_forgets_the_memory(rng):
    model = stateful_lm(dropout=0.3)
    model.compile(run_eagerly=True)
    tokens = rng.integers(0, 40, (4, 6))
    model.fit({"token_ids": tokens}, tokens, batch_size=2, shuffle=False, verbose=0)
    copy = model.with_arguments(stateful=False, batch_size=None)
    assert copy.dropout == 0.3
    model.reset_state()
    expected = model.predict({"token_ids": tokens[:2]}, batch_size=2, verbose=0)["log_probs"]
    found = copy({"token_ids": tokens[:2]})["log_probs"]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_with_arguments_reaches_a_stateful_permutation_model(rng):
    model = XLNetPermutationLM(backbone_of(memory_length=4), stateful=True, batch_size=2)
    model.compile(run_eagerly=True)
    inputs, labels = lm_data(rng)
    model.fit(inputs, labels, batch_size=2, shuffle=False, verbose=0)
    copy = model.with_arguments(stateful=False, batch_size=None)
    backbone = {weight.path: np.array(weight) for weight in model.backbone.weights}
    for weight in copy.backbone.weights:
        np.testing.assert_array_equal(weight, backbone[weight.path])


def test_with_arguments_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"must have the same weights.*\(40,\), expected: \(50,\)"):
        stateful_lm().with_arguments(vocabulary_size=50)


@pytest.mark.parametrize("is_trained", [False, True])
def test_loading_warns_of_nothing(tmp_path, recwarn, is_trained):
    model = XLNetTextClassifier(backbone_of(), 2)
    model.compile(run_eagerly=True)
    if is_trained:
        x, y = classifier_data(np.random.default_rng(0))
        model.fit(x, y, verbose=0)
    model.save(tmp_path / "model.keras")
    recwarn.clear()
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert not [w for w in recwarn if "optimizer" in str(w.message)]
    assert loaded.optimizer.built == is_trained
    assert int(loaded.optimizer.iterations) == int(is_trained)


@pytest.mark.parametrize("name", ["tokenizer", "preprocessor"])
def test_a_layer_of_strings_set_later_does_not_keep_xla_from_compiling(name, golden_dir):
    tokenizer = XLNetTokenizer(golden_dir / "spiece.model")
    backbone = XLNetBackbone(tokenizer.vocabulary_size(), *SIZES[1:])
    if name == "tokenizer":
        model = XLNetPermutationLM(backbone)
        model.tokenizer = tokenizer
    else:
        model = XLNetTextClassifier(backbone, 2)
        model.preprocessor = XLNetTextClassifierPreprocessor(tokenizer, 16)
    # Keras replaces `True` by `False` if a layer does not support it.
    model.compile("sgd", "mse", jit_compile=True)
    assert model.jit_compile


# === Copies by Keras ===


@pytest.mark.parametrize("name", ["text_classifier", "attention_pooling", "question_answering"])
def test_clone_model_of_keras_computes_the_same(name, rng):
    model = MODELS[name]()
    model.enable_lora(2, lora_alpha=7)
    for weight in model.weights:
        if weight.name.startswith("lora_"):
            weight.assign(rng.normal(size=weight.shape))
    x = {"token_ids": rng.integers(9, 40, (3, 6))}
    x = {key: np.asarray(x.get(key, model._default(key, x))) for key in model.input}
    expected = model(x)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    for found, array in zip(*map(keras.tree.flatten, (clone(x), expected)), strict=True):
        np.testing.assert_allclose(found, array, rtol=0, atol=1e-6)
    assert clone.optimizer.get_config() == model.optimizer.get_config()


@pytest.mark.parametrize("optimizer", ["auto", keras.optimizers.Adam])
def test_copies_have_the_state_of_the_optimizer(optimizer, rng):
    model = XLNetTextClassifier(backbone_of(), 2)
    model.compile(optimizer if isinstance(optimizer, str) else optimizer(0.01, epsilon=0.125))
    x, y = classifier_data(rng)
    assert not copy.deepcopy(model).optimizer.built
    model.fit(x, y, verbose=0)
    model.backbone.trainable = False  # The optimizer has states of weights that are frozen now.
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.optimizer.get_config() == model.optimizer.get_config()
        states = zip(other.optimizer.variables, model.optimizer.variables, strict=True)
        for found, expected in states:
            # The schedule of the last `fit` ended with it.
            if expected.name != "span_of_schedule":
                np.testing.assert_array_equal(found, expected)
    assert keras.models.clone_model(model).optimizer.get_config() == model.optimizer.get_config()
    entry = keras.saving.serialize_keras_object(model)
    assert keras.saving.deserialize_keras_object(entry).optimizer.built

"""The permutation language model: no leaks, memory in `fit`, ablations, saving, bad input."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.layers import PermutationMaskGenerator
from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetTextClassifier

VOCABULARY, BATCH, LENGTH, K = 60, 4, 12, 4


def backbone_of(**kwargs):
    sizes = {
        "vocabulary_size": VOCABULARY,
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 16,
        "intermediate_dim": 24,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.3, seed=1),
    }
    return XLNetBackbone(**{**sizes, **kwargs})


def model_of(backbone=None, seed=0, **kwargs):
    model = XLNetPermutationLM(backbone or backbone_of(), **kwargs)
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.3, size=variable.shape) + ("gamma" in variable.path))
    return model


def batch_of(seed=0, batch_size=BATCH, num_predictions=K, **kwargs):
    """Inputs, labels and weights of random tokens; every row has as many targets."""
    rng = np.random.default_rng(seed)
    token_ids = rng.integers(9, VOCABULARY, (batch_size, LENGTH)).astype("int32")
    order = rng.permuted(np.tile(np.arange(LENGTH), (batch_size, 1)), axis=1)
    generator = PermutationMaskGenerator(num_predictions, **kwargs)
    features = generator.generate(token_ids, order < K, draws=rng)
    labels, weights = features.pop("labels"), features.pop("sample_weight")
    features["permutation_mask"] = features["permutation_mask"].astype("int8")
    segment_ids = np.tile(np.arange(LENGTH) // 5, (batch_size, 1)).astype("int32")
    return {"token_ids": token_ids, "segment_ids": segment_ids, **features}, labels, weights


def logits_of(model, inputs, **kwargs):
    return np.asarray(model(inputs, **kwargs)["logits"])


def dataset_of(batches):
    return tf.data.Dataset.from_tensor_slices(
        keras.tree.map_structure(lambda *x: np.stack(x), *batches)
    )


@pytest.fixture(scope="module")
def model():
    return model_of()


# === What a target may know ===


@pytest.mark.parametrize("objective", ["permutation", "denoising"])
def test_no_target_depends_on_itself_and_all_on_their_context(objective):
    model = model_of(objective=objective)
    is_permutation = objective == "permutation"
    inputs, _, _ = batch_of()
    before = logits_of(model, inputs)
    for k in range(K):
        changed = {**inputs, "token_ids": inputs["token_ids"].copy()}
        rows, columns = np.arange(BATCH), inputs["target_positions"][:, k]
        changed["token_ids"][rows, columns] = 7
        after = logits_of(model, changed)
        np.testing.assert_array_equal(after[:, k], before[:, k])
        sees = inputs["permutation_mask"][
            rows[:, None], inputs["target_positions"], columns[:, None]
        ]
        moved = np.abs(after - before).max(axis=2) > 1e-6
        # Denoising hides all targets from each other, a factorization order only the later ones.
        np.testing.assert_array_equal(moved, sees > 0 if is_permutation else np.zeros_like(moved))
    ordinary = np.array(
        [np.setdiff1d(np.arange(LENGTH), row)[0] for row in inputs["target_positions"]]
    )
    changed = {**inputs, "token_ids": inputs["token_ids"].copy()}
    changed["token_ids"][np.arange(BATCH), ordinary] = 7
    assert np.all(np.abs(logits_of(model, changed) - before).max(axis=2) > 1e-6)


def test_predicted_rows_are_rows_of_the_form_of_full_length(model):
    full = model_of(model.backbone, partial_prediction=False)
    full.set_weights(model.get_weights())
    inputs, _, _ = batch_of()
    everywhere, labels, weights = batch_of(num_predictions=None)
    np.testing.assert_array_equal(everywhere["token_ids"], inputs["token_ids"])
    rows = np.arange(BATCH)[:, None], inputs["target_positions"]
    np.testing.assert_allclose(
        logits_of(full, everywhere)[rows], logits_of(model, inputs), rtol=0, atol=1e-5
    )
    assert weights.shape == labels.shape == (BATCH, LENGTH)


def test_a_batch_is_its_rows(model):
    inputs, _, _ = batch_of()
    together = logits_of(model, inputs)
    for row in range(BATCH):
        alone = logits_of(model, {key: value[row : row + 1] for key, value in inputs.items()})
        np.testing.assert_allclose(together[row], alone[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing(model, side):
    inputs, _, _ = batch_of()
    before = logits_of(model, inputs)
    widths = (3, 0) if side == "left" else (0, 3)

    def pad(x, axes, value=0):
        return np.pad(
            x, [widths if a in axes else (0, 0) for a in range(x.ndim)], constant_values=value
        )

    padded = {
        "token_ids": pad(inputs["token_ids"], (1,), 5),
        "segment_ids": pad(inputs["segment_ids"], (1,), 4),
        "permutation_mask": pad(inputs["permutation_mask"], (1, 2), 1),
        "padding_mask": pad(np.ones((BATCH, LENGTH), "bool"), (1,)),
        "target_positions": inputs["target_positions"] + widths[0],
    }
    np.testing.assert_allclose(logits_of(model, padded), before, rtol=0, atol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_graph_and_xla_equal_eager(model, jit_compile):
    inputs, _, _ = batch_of()
    compiled = tf.function(model.__call__, jit_compile=jit_compile)
    actual = compiled(keras.tree.map_structure(tf.constant, inputs))["logits"]
    np.testing.assert_allclose(actual, logits_of(model, inputs), rtol=0, atol=1e-5)


# === Weights ===


def test_every_weight_of_the_backbone_is_shared():
    backbone = backbone_of()
    model = XLNetPermutationLM(backbone)
    own = {v.path for v in model.trainable_variables} - {
        v.path for v in backbone.trainable_variables
    }
    assert own == {"mask_embedding/embedding", "logits/bias"}
    assert len(model.weights) == len({id(v) for v in model.weights})
    tokens = {"token_ids": batch_of()[0]["token_ids"]}
    before = np.asarray(backbone(tokens)["sequence_output"])
    inputs, labels, weights = batch_of()
    model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    model.fit(inputs, labels, sample_weight=weights, verbose=0)
    after = np.asarray(backbone(tokens)["sequence_output"])
    assert np.abs(after - before).max() > 1e-5


def test_the_loss_is_the_mean_over_the_targets(model):
    inputs, labels, weights = batch_of()
    weights = weights.copy()
    weights[0, 1:] = weights[2, 0] = 0
    logits = logits_of(model, inputs).astype("float64")
    log_sums = np.log(np.exp(logits).sum(axis=-1))
    losses = log_sums - np.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    model.compile(run_eagerly=True)
    loss, accuracy = model.evaluate(inputs, labels, sample_weight=weights, verbose=0)
    assert loss == pytest.approx(np.average(losses, weights=weights), abs=1e-5)
    right = logits.argmax(axis=-1) == labels
    assert accuracy == pytest.approx(np.average(right, weights=weights), abs=1e-6)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_trains_and_gives_float32_logits(policy):
    model = model_of(
        backbone_of(dtype=policy, memory_length=4, num_layers=2),
        stateful=True,
        batch_size=BATCH,
    )
    inputs, labels, weights = batch_of()
    assert model(inputs)["logits"].dtype == tf.float32
    assert model.mask_embedding.embedding.dtype == "float32"
    model.compile(run_eagerly=True)
    history = model.fit(
        inputs, labels, sample_weight=weights, batch_size=BATCH, epochs=2, verbose=0
    ).history
    assert np.all(np.isfinite(history["loss"]))


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"stateful": True, "batch_size": 2},
        {"objective": "denoising"},
        {"partial_prediction": False},
    ],
    ids=["explicit", "stateful", "denoising", "full_length"],
)
def test_saved_and_loaded_exactly(tmp_path, kwargs):
    backbone = backbone_of(memory_length=3, remember_segment_ids=True, num_layers=2)
    model = model_of(backbone, **kwargs)
    partial = kwargs.get("partial_prediction", True)
    inputs, _, _ = batch_of(batch_size=2, num_predictions=K if partial else None)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(tmp_path / "preset")
    expected = logits_of(model, inputs)
    for copy in (
        keras.saving.load_model(tmp_path / "model.keras"),
        XLNetPermutationLM.from_preset(tmp_path / "preset"),
    ):
        assert copy.get_config() == model.get_config()
        np.testing.assert_array_equal(logits_of(copy, inputs), expected)


def test_the_pretrained_backbone_is_a_preset_of_its_own(tmp_path, model):
    model.backbone.save_to_preset(tmp_path)
    copy = XLNetBackbone.from_preset(tmp_path)
    assert not [v.path for v in copy.variables if "mask" in v.path or "logits" in v.path]
    tokens = {"token_ids": batch_of()[0]["token_ids"]}
    np.testing.assert_array_equal(
        copy(tokens)["sequence_output"], model.backbone(tokens)["sequence_output"]
    )


def test_what_was_pretrained_in_both_directions_is_fine_tuned_in_one(tmp_path):
    sizes = {"num_layers": 1, "reuse_length": 4}
    both = model_of(backbone_of(bidirectional_data=True, memory_length=4, **sizes)).backbone
    both.save_to_preset(tmp_path)
    with pytest.raises(ValueError, match="from_preset.directory, bidirectional_data=False"):
        XLNetTextClassifier(XLNetBackbone.from_preset(tmp_path), num_classes=2)
    one = XLNetBackbone.from_preset(
        tmp_path, bidirectional_data=False, memory_length=None, reuse_length=None
    )
    XLNetTextClassifier(one, num_classes=2)
    tokens = batch_of()[0]["token_ids"]
    expected = np.asarray(both({"token_ids": np.concatenate([tokens, tokens])})["sequence_output"])
    actual = np.asarray(one({"token_ids": tokens})["sequence_output"])
    np.testing.assert_allclose(actual, expected[:BATCH], rtol=0, atol=1e-5)
    assert np.abs(actual - expected[BATCH:]).max() > 1e-3
    with pytest.raises(ValueError, match=r"no arguments \['layers'\]"):
        XLNetBackbone.from_preset(tmp_path, layers=3)


# === Memory ===


def stateful(batch_size=BATCH, **kwargs):
    backbone = backbone_of(memory_length=8, reuse_length=6, num_layers=2)
    return model_of(backbone, stateful=True, batch_size=batch_size, **kwargs)


def training_states(model):
    return [np.asarray(m.training_state.value) for m in model.memories]


def assert_states(model, expected):
    for actual, e in zip(training_states(model), expected, strict=True):
        np.testing.assert_allclose(actual, e, rtol=0, atol=5e-6)


@pytest.mark.parametrize("attend_to_empty_memory", [False, True])
def test_memory_in_fit_equals_memory_that_is_handed_on(attend_to_empty_memory):
    model = stateful(attend_to_empty_memory=attend_to_empty_memory)
    explicit = model_of(model.backbone)
    optimizer = keras.optimizers.SGD(0.1)
    batches = [batch_of(seed) for seed in range(3)]
    start = [np.asarray(v) for v in model.trainable_variables]
    memory = np.zeros((BATCH, 2, 8, 16), "float32")
    memory_mask = np.full((BATCH, 8), attend_to_empty_memory)
    for inputs, labels, weights in batches:
        with tf.GradientTape() as tape:
            outputs = explicit({**inputs, "memory": memory, "memory_mask": memory_mask})
            loss = explicit.compute_loss(None, labels, {"logits": outputs["logits"]}, weights)
        variables = explicit.trainable_variables
        optimizer.apply(tape.gradient(loss, [v.value for v in variables]), variables)
        memory, memory_mask = outputs["memory"], outputs["memory_mask"]
        if attend_to_empty_memory:
            memory_mask = np.ones((BATCH, 8), "bool")
    expected = [np.asarray(v) for v in explicit.trainable_variables]
    for variable, value in zip(model.trainable_variables, start, strict=True):
        variable.assign(value)
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(dataset_of(batches), shuffle=False, verbose=0)
    by_path = dict(zip((v.path for v in explicit.trainable_variables), expected, strict=True))
    for variable in model.trainable_variables:
        np.testing.assert_allclose(variable, by_path[variable.path], rtol=0, atol=1e-5)
    assert_states(
        model, [*np.moveaxis(memory, 1, 0), *([] if attend_to_empty_memory else [memory_mask])]
    )


def test_evaluation_has_a_memory_of_its_own_that_starts_empty():
    model, batches = stateful(), [batch_of(seed) for seed in range(3)]
    model.compile(run_eagerly=True)
    model.fit(dataset_of(batches), shuffle=False, verbose=0)
    before = training_states(model)
    assert all(np.any(state) for state in before)
    first, again = (model.evaluate(dataset_of(batches), verbose=0) for _ in range(2))
    assert first == again
    predicted = model.predict(dataset_of(batches), verbose=0)["logits"]
    assert_states(model, before)
    # Within one run it is carried on: the second batch depends on the first.
    other = model.predict(dataset_of([batch_of(9), *batches[1:]]), verbose=0)["logits"]
    assert np.abs(other[BATCH : 2 * BATCH] - predicted[BATCH : 2 * BATCH]).max() > 1e-4


def test_rows_that_begin_a_new_text_forget():
    model, (inputs, _, _) = stateful(), batch_of()
    fresh = logits_of(model, inputs)
    remembering = logits_of(model, inputs)
    assert np.abs(fresh - remembering).max() > 1e-4
    reset = np.array([True, False, True, False])
    some = logits_of(model, {**inputs, "reset_memory": reset})
    np.testing.assert_allclose(some[reset], fresh[reset], rtol=0, atol=1e-6)
    assert np.abs(some[~reset] - fresh[~reset]).max() > 1e-4
    model.reset_state()
    np.testing.assert_array_equal(logits_of(model, inputs), fresh)


def test_a_partial_batch_is_refused():
    model, (inputs, labels, weights) = stateful(), batch_of(batch_size=6)
    model.compile(keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="has 4 rows.*a batch of 6 rows"):
        model(inputs)
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels, weights)).batch(BATCH)
    with pytest.raises(tf.errors.InvalidArgumentError, match="stateful_memory_needs_full_batches"):
        model.fit(dataset, verbose=0)


def test_explicit_memory_goes_through_fit():
    # Memory is an output too, which has no label and no metric.
    explicit = model_of(backbone_of(memory_length=4, num_layers=1))
    explicit.compile(run_eagerly=True)
    inputs, labels, weights = batch_of()
    history = explicit.fit(inputs, labels, sample_weight=weights, verbose=0).history
    assert set(history) == {"loss", "logits_accuracy"}


def test_explicit_memory_is_served(tmp_path):
    model = model_of(backbone_of(memory_length=4, num_layers=1))
    inputs, _, _ = batch_of()
    rng = np.random.default_rng(0)
    inputs |= {
        "padding_mask": np.ones((BATCH, LENGTH), "bool"),
        "permutation_mask": inputs["permutation_mask"].astype("bool"),
        "memory": rng.normal(size=(BATCH, 1, 4, 16)).astype("float32"),
        "memory_mask": rng.random((BATCH, 4)) < 0.5,
    }
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "exported")
    served = loaded.serve(keras.tree.map_structure(tf.constant, inputs))
    for key, expected in model(inputs).items():
        np.testing.assert_allclose(
            tf.cast(served[key], "float32"), tf.cast(expected, "float32"), rtol=0, atol=1e-5
        )


# === Bad input ===


@pytest.mark.parametrize(
    "backbone, arguments, message",
    [
        ({"attention_type": "uni"}, {}, "attention_type='uni'"),
        ({}, {"stateful": True, "batch_size": 2}, "needs a `memory_length`"),
        ({"memory_length": 4}, {"stateful": True}, "needs a `batch_size`.*batch_size=None"),
        ({}, {"batch_size": 0}, "`batch_size` must be a positive integer"),
        ({"memory_length": 4}, {"attend_to_empty_memory": True}, "needs `stateful=True`"),
    ],
)
def test_bad_arguments(backbone, arguments, message):
    with pytest.raises(ValueError, match=message):
        XLNetPermutationLM(backbone_of(num_layers=1, **backbone), **arguments)


def test_missing_and_unknown_inputs_are_told(model):
    inputs, _, _ = batch_of()
    for key in ("token_ids", "permutation_mask", "target_positions"):
        with pytest.raises(ValueError, match=f"must be a dict with.*`{key}`"):
            model({k: v for k, v in inputs.items() if k != key})
    with pytest.raises(ValueError, match=r"does not take: \['memory'\]"):
        model({**inputs, "memory": np.zeros((BATCH, 2, 2, 16))})
    explicit = XLNetPermutationLM(backbone_of(num_layers=1, memory_length=2))
    with pytest.raises(ValueError, match=r"does not take: \['reset_memory'\]"):
        explicit({**inputs, "reset_memory": np.zeros(BATCH, "bool")})


def test_the_data_of_memory_fit_a_model_without(model):
    inputs, _, _ = batch_of()
    with_reset = {**inputs, "reset_memory": np.ones(BATCH, "bool")}
    np.testing.assert_array_equal(logits_of(model, with_reset), logits_of(model, inputs))

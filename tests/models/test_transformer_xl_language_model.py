"""The language model of Transformer-XL: what a token may know, memory, training, saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.evaluation import Perplexity
from keras_xlnet.models import TransformerXLLanguageModel

VOCABULARY, BATCH, LENGTH, MEMORY = 60, 4, 12, 8
CLUSTERS = {"cutoffs": (10, 30), "div_val": 2, "tie_projections": [False, True, True]}


def model_of(seed=0, **kwargs):
    """A model whose weights matter."""
    sizes = {
        "vocabulary_size": VOCABULARY,
        "num_layers": 3,
        "num_heads": 2,
        "hidden_dim": 16,
        "intermediate_dim": 24,
        "dropout": 0.0,
        "memory_length": MEMORY,
    }
    model = TransformerXLLanguageModel(**{**sizes, **kwargs})
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.3, size=variable.shape) + ("gamma" in variable.path))
    return model


def tokens_of(length=LENGTH, batch_size=BATCH, seed=3):
    return np.random.default_rng(seed).integers(0, VOCABULARY, (batch_size, length), dtype="int32")


def log_probs_of(model, token_ids, **inputs):
    return np.asarray(model({"token_ids": token_ids, **inputs})["log_probs"])


def stream_of(num_segments, seed=5):
    """Segments that continue each other, and the tokens that follow theirs, batch after batch."""
    text = tokens_of(num_segments * LENGTH + 1, seed=seed)
    starts = range(0, num_segments * LENGTH, LENGTH)
    inputs, labels = ([text[:, i + shift :][:, :LENGTH] for i in starts] for shift in (0, 1))
    return np.concatenate(inputs), np.concatenate(labels)


@pytest.fixture(scope="module")
def model():
    return model_of()


VARIANTS = pytest.mark.parametrize(
    "variant",
    [
        {},
        {"normalize_first": True, "clamp_length": 4},
        {"tie_attention_biases": True, "embedding_dim": 10},
        CLUSTERS,
        {"cutoffs": (10, 30), "embedding_dim": 10, "tie_embeddings": False},
    ],
    ids=["plain", "normalize_first", "tied_biases", "clusters", "one_table"],
)


# === What a token may know ===


@VARIANTS
def test_a_token_knows_itself_and_those_before(variant):
    model = model_of(**variant)
    token_ids = tokens_of()
    before = log_probs_of(model, token_ids)
    np.testing.assert_allclose(np.exp(before).sum(-1), 1, atol=1e-5)
    for position in (0, 5, 11):
        changed = token_ids.copy()
        changed[:, position] = (changed[:, position] + 7) % VOCABULARY
        moved = np.abs(log_probs_of(model, changed) - before).max(axis=(0, 2)) > 1e-6
        np.testing.assert_array_equal(moved, np.arange(LENGTH) >= position)


@VARIANTS
def test_one_long_segment_is_two_short_ones_with_memory(variant):
    model = model_of(memory_length=LENGTH, **variant)
    token_ids = tokens_of()
    together = log_probs_of(model, token_ids)
    for cut in (1, 5, 11):
        first = model({"token_ids": token_ids[:, :cut]})
        np.testing.assert_allclose(first["log_probs"], together[:, :cut], rtol=0, atol=2e-5)
        memory = {key: first[key] for key in ("memory", "memory_mask")}
        second = log_probs_of(model, token_ids[:, cut:], **memory)
        np.testing.assert_allclose(second, together[:, cut:], rtol=0, atol=2e-5)


def test_every_token_attends_to_equally_many(model):
    same = model_of(same_length=4)
    long = model_of(memory_length=None, same_length=4)
    token_ids = tokens_of()
    # With three layers, three tokens before each of four are seen through the others: 3 * 3 + 1.
    changed = token_ids.copy()
    changed[:, 0] = (changed[:, 0] + 7) % VOCABULARY
    difference = np.abs(log_probs_of(long, changed) - log_probs_of(long, token_ids))
    np.testing.assert_array_equal(difference.max(axis=(0, 2)) > 1e-6, np.arange(LENGTH) < 10)
    np.testing.assert_allclose(
        log_probs_of(same, token_ids), log_probs_of(long, token_ids), rtol=0, atol=1e-5
    )


def test_a_batch_is_its_rows_and_padding_changes_nothing(model):
    token_ids = tokens_of()
    together = log_probs_of(model, token_ids)
    for row in range(BATCH):
        alone = log_probs_of(model, token_ids[row : row + 1])
        np.testing.assert_allclose(alone[0], together[row], rtol=0, atol=1e-5)
    padded = np.pad(token_ids, ((0, 0), (0, 3)), constant_values=1)
    mask = np.arange(LENGTH + 3)[None] < np.full((BATCH, 1), LENGTH)
    found = log_probs_of(model, padded, padding_mask=mask)
    np.testing.assert_allclose(found[:, :LENGTH], together, rtol=0, atol=1e-5)


@pytest.mark.parametrize("variant, jit_compile", [({}, False), (CLUSTERS, True)])
def test_graph_and_xla_equal_eager(variant, jit_compile):
    model = model_of(**variant)
    first = model({"token_ids": tokens_of()})
    inputs = {"token_ids": tokens_of(seed=4), "memory": first["memory"]}
    compiled = tf.function(model.__call__, jit_compile=jit_compile)
    actual = compiled(keras.tree.map_structure(tf.convert_to_tensor, inputs))["log_probs"]
    np.testing.assert_allclose(actual, model(inputs)["log_probs"], rtol=0, atol=2e-5)


def test_empty_memory_is_not_attended_to_unless_asked():
    without, attended = model_of(memory_length=None), model_of(attend_to_empty_memory=True)
    empty = model_of()
    token_ids = tokens_of()
    np.testing.assert_allclose(
        log_probs_of(empty, token_ids), log_probs_of(without, token_ids), rtol=0, atol=1e-5
    )
    zeros = {"memory": np.zeros((BATCH, 3, MEMORY, 16), "float32")}
    np.testing.assert_array_equal(
        log_probs_of(attended, token_ids), log_probs_of(empty, token_ids, **zeros)
    )
    outputs = attended({"token_ids": token_ids[:, :3]})
    assert outputs["memory"].shape == zeros["memory"].shape
    assert np.all(outputs["memory_mask"])


# === Training ===


@VARIANTS
def test_the_loss_is_that_of_the_log_probabilities(variant):
    model = model_of(**variant)
    model.compile(run_eagerly=True)
    token_ids, labels = stream_of(1)
    weights = np.random.default_rng(0).random(labels.shape).astype("float32")
    log_probs = np.take_along_axis(log_probs_of(model, token_ids), labels[..., None], 2)[..., 0]
    for given, expected in (
        ({}, -log_probs.mean()),
        ({"sample_weight": weights}, -(log_probs * weights).sum() / weights.sum()),
    ):
        found = model.evaluate({"token_ids": token_ids}, labels, verbose=0, **given)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    with_loss = model_of(**variant)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with_loss.compile("adam", {"log_probs": loss}, weighted_metrics={"log_probs": [Perplexity()]})
    found = with_loss.evaluate({"token_ids": token_ids}, labels, verbose=0, return_dict=True)
    np.testing.assert_allclose(found["loss"], -log_probs.mean(), rtol=1e-5)
    np.testing.assert_allclose(found["log_probs_perplexity"], np.exp(-log_probs.mean()), rtol=1e-5)


@pytest.mark.parametrize("variant", [{}, CLUSTERS], ids=["plain", "clusters"])
def test_fit_with_memory_learns_what_only_memory_knows(variant):
    # The second half of each document repeats the first: to know it takes memory.
    rng = np.random.default_rng(0)
    halves = rng.integers(0, VOCABULARY, (BATCH, 4))
    text = np.tile(halves, (1, 16))
    starts = range(0, 60, 4)
    inputs = np.concatenate([text[:, i : i + 4] for i in starts])
    labels = np.concatenate([text[:, i + 1 : i + 5] for i in starts])
    model = model_of(num_layers=1, stateful=True, batch_size=BATCH, **variant)
    model.compile(keras.optimizers.Adam(1e-2))
    data = ({"token_ids": inputs}, labels)
    before = model.evaluate(*data, batch_size=BATCH, verbose=0)
    model.fit(*data, batch_size=BATCH, epochs=6, shuffle=False, verbose=0)
    after = model.evaluate(*data, batch_size=BATCH, verbose=0)
    assert after < 0.5 < before, (before, after)


def test_stateful_memory_is_memory_in_and_out(model):
    stateful = model_of(stateful=True, batch_size=BATCH)
    token_ids, _ = stream_of(3)
    found = stateful.predict({"token_ids": token_ids}, batch_size=BATCH, verbose=0)["log_probs"]
    memory = {}
    for start in range(0, 3 * BATCH, BATCH):
        outputs = model({"token_ids": token_ids[start : start + BATCH], **memory})
        memory = {key: outputs[key] for key in ("memory", "memory_mask")}
        rows = found[start : start + BATCH]
        np.testing.assert_allclose(rows, outputs["log_probs"], rtol=0, atol=2e-5)
    again = stateful.predict({"token_ids": token_ids}, batch_size=BATCH, verbose=0)["log_probs"]
    np.testing.assert_array_equal(again, found)
    reset = {"token_ids": token_ids, "reset_memory": np.ones(3 * BATCH, "bool")}
    fresh = stateful.predict(reset, batch_size=BATCH, verbose=0)["log_probs"]
    expected = log_probs_of(model, token_ids)
    np.testing.assert_allclose(fresh, expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_trains(policy):
    model = model_of(num_layers=1, dtype=policy, **CLUSTERS)
    model.compile(keras.optimizers.SGD(0.01))
    token_ids, labels = stream_of(2)
    history = model.fit({"token_ids": token_ids}, labels, epochs=2, verbose=0)
    assert np.all(np.isfinite(history.history["loss"]))
    assert model({"token_ids": tokens_of()})["log_probs"].dtype == "float32"


# === Saving ===


@VARIANTS
def test_saved_and_loaded(variant, tmp_path):
    model = model_of(**variant)
    token_ids = tokens_of()
    expected = log_probs_of(model, token_ids)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(log_probs_of(loaded, token_ids), expected)
    model.save_to_preset(tmp_path / "preset")
    loaded = TransformerXLLanguageModel.from_preset(tmp_path / "preset", memory_length=5)
    assert loaded.memory_length == 5 and loaded.get_config()["name"] == model.name
    loaded = TransformerXLLanguageModel.from_preset(tmp_path / "preset")
    np.testing.assert_array_equal(log_probs_of(loaded, token_ids), expected)
    assert loaded.get_config() == model.get_config()


def test_the_last_batch_of_arrays_may_be_smaller():
    stateful = model_of(stateful=True, batch_size=BATCH)
    token_ids, labels = stream_of(3)
    rows = 3 * BATCH - 1
    every = stateful.predict({"token_ids": token_ids}, verbose=0)["log_probs"]
    found = stateful.predict({"token_ids": token_ids[:rows]}, verbose=0)["log_probs"]
    np.testing.assert_array_equal(found, every[:rows])
    losses = -np.take_along_axis(found, labels[:rows, :, np.newaxis], -1)
    expected = losses.mean()
    loss = stateful.evaluate({"token_ids": token_ids[:rows]}, labels[:rows], verbose=0)
    assert np.ravel(loss)[0] == pytest.approx(expected, rel=1e-5)
    weights = np.ones(labels.shape)
    weights[rows - 1] = 0
    expected = losses[:-1].mean()
    loss = stateful.evaluate(
        {"token_ids": token_ids[:rows]}, labels[:rows], sample_weight=weights[:rows], verbose=0
    )
    assert np.ravel(loss)[0] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match=f"the one of the stateful model, {BATCH}"):
        stateful.predict({"token_ids": token_ids}, batch_size=BATCH + 1, verbose=0)


def test_a_partial_batch_of_a_dataset_is_refused():
    stateful = model_of(num_layers=1, stateful=True, batch_size=BATCH)
    stateful.compile(metrics={"log_probs": [Perplexity()]})
    token_ids = tokens_of(batch_size=BATCH + 2)
    dataset = tf.data.Dataset.from_tensor_slices(({"token_ids": token_ids}, token_ids))
    with pytest.raises(tf.errors.InvalidArgumentError, match="stateful_memory_needs_full_batches"):
        stateful.evaluate(dataset.batch(BATCH), verbose=0)


def test_a_stateful_model_is_loaded_for_another_batch_size(tmp_path):
    model = model_of(stateful=True, batch_size=BATCH)
    with pytest.raises(ValueError, match="`stateful=False`"):
        model.score(tokens_of())
    model.save_to_preset(tmp_path)
    loaded = TransformerXLLanguageModel.from_preset(tmp_path, stateful=False, batch_size=None)
    np.testing.assert_allclose(
        log_probs_of(loaded, tokens_of()), log_probs_of(model_of(), tokens_of()), atol=1e-6
    )


# === Bad input ===


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be a positive integer"),
        ({"hidden_dim": 15}, "`hidden_dim` must be a multiple of `num_heads`"),
        ({"memory_length": None, "same_length": True}, "needs a `memory_length`"),
        ({"same_length": -1}, "`same_length` must be a positive integer"),
        ({"stateful": True}, "needs a `batch_size`"),
        ({"memory_length": 0, "stateful": True, "batch_size": 2}, "needs a `memory_length`"),
        ({"memory_length": 0, "attend_to_empty_memory": True}, "needs a `memory_length`"),
        ({"cutoffs": (30, 10)}, "`cutoffs` must be increasing"),
        ({"cutoffs": (10, 60)}, "`cutoffs` must be increasing"),
        ({"cutoffs": (10, 30), "div_val": 5}, "a width of at least 1"),
        ({"tie_projections": [True, False]}, "one for each of the 1 clusters"),
        ({"num_layer": 2}, "num_layer"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model_of(**arguments)


def test_bad_inputs(model):
    with pytest.raises(ValueError, match="`token_ids` must be from 0 to 59"):
        model.predict({"token_ids": np.full((1, 3), 60)}, verbose=0)
    with pytest.raises(ValueError, match="does not take: \\['segment_ids'\\]"):
        model({"token_ids": tokens_of(), "segment_ids": tokens_of()})
    stateful = model_of(stateful=True, batch_size=BATCH)
    token_ids, labels = stream_of(1)
    with pytest.raises(ValueError, match="a batch of 3 rows"):
        stateful.train_on_batch({"token_ids": token_ids[:3]}, labels[:3])

"""The permutation language model equals the original: losses, memories, gradients, training."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_xlnet.checkpoints import load_original
from keras_xlnet.checkpoints.original import ORIGINAL
from keras_xlnet.checkpoints.tasks import match_model
from keras_xlnet.checkpoints.weight_mapping import values_to_save
from keras_xlnet.training import AdamWeightDecay, WarmupPolynomialDecay

ATOL = 1e-5
WITH_MEMORY = {"memory_length": 12, "reuse_length": 16}


def model_of(golden_dir, checkpoint="tiny_ckpt", **kwargs):
    return load_original(
        golden_dir / checkpoint, "permutation_lm", dropout=0.0, attention_dropout=0.0, **kwargs
    )


def inputs_of(arrays, prefix):
    inputs = {
        "token_ids": arrays[f"{prefix}input_k"],
        "segment_ids": arrays[f"{prefix}seg_id"],
        "permutation_mask": arrays[f"{prefix}perm_mask"] == 0,
    }
    if f"{prefix}target_mapping" in arrays:
        positions = arrays[f"{prefix}target_mapping"].argmax(axis=-1)
        return {**inputs, "target_positions": positions.astype("int32")}
    return {**inputs, "target_mask": arrays[f"{prefix}input_q"] == 1}


def query_output(model, logits):
    """What the tied softmax was given."""
    inverse = np.linalg.pinv(ops.convert_to_numpy(model.backbone.token_embedding.embeddings))
    bias = ops.convert_to_numpy(model.logit_bias.bias)
    return (ops.convert_to_numpy(logits) - bias) @ inverse.T


def assert_equal(model, outputs, arrays, prefix):
    """Logits, query stream and token losses of the rows that count, loss, memory."""
    used = arrays[f"{prefix}target_mask"] == 1
    losses = keras.losses.sparse_categorical_crossentropy(
        arrays[f"{prefix}target"], outputs["logits"], from_logits=True
    )
    losses = ops.convert_to_numpy(losses)
    pairs = [
        (losses.mean(where=used), arrays[f"{prefix}loss"]),
        (query_output(model, outputs["logits"])[used], arrays[f"{prefix}output_g"], used),
    ]
    if f"{prefix}token_loss" in arrays:
        pairs.append((losses[used], arrays[f"{prefix}token_loss"], used))
    if f"{prefix}logits" in arrays:
        pairs.append(
            (ops.convert_to_numpy(outputs["logits"])[used], arrays[f"{prefix}logits"], used)
        )
    if f"{prefix}new_mems" in arrays:
        memory = np.moveaxis(arrays[f"{prefix}new_mems"], 2, 0)
        pairs.append((outputs["memory"], memory))
    for actual, expected, *rows in pairs:
        expected = np.swapaxes(expected, 0, 1)[rows[0]] if rows else expected
        np.testing.assert_allclose(actual, expected, rtol=0, atol=ATOL)


@pytest.mark.parametrize("case, clamp_length", [("np", None), ("tpu_clamp", 5)])
def test_two_batches_with_memory(golden, golden_dir, case, clamp_length):
    arrays = golden("pretrain.npz")
    model = model_of(golden_dir, clamp_length=clamp_length, bidirectional_data=True, **WITH_MEMORY)
    memory = np.zeros((4, 3, 12, 32), "float32")
    for batch in range(2):
        prefix = f"{case}_batch{batch}_"
        outputs = model({**inputs_of(arrays, prefix), "memory": memory})
        memory = outputs["memory"]
        assert_equal(model, outputs, arrays, prefix)


def test_rows_that_may_see_nothing(golden, golden_dir):
    arrays, prefix = golden("pretrain.npz"), "blind_batch0_"
    model = model_of(golden_dir)
    assert_equal(model, model(inputs_of(arrays, prefix)), arrays, prefix)


def test_full_length(golden, golden_dir):
    # Every row, not only the predicted ones: the others start from the word.
    arrays, prefix = dict(golden("pretrain.npz")), "full_batch0_"
    model = model_of(golden_dir, partial_prediction=False)
    outputs = model(inputs_of(arrays, prefix))
    assert_equal(model, outputs, arrays, prefix)
    everywhere = query_output(model, outputs["logits"])
    expected = np.swapaxes(arrays[f"{prefix}output_g"], 0, 1)
    np.testing.assert_allclose(everywhere, expected, rtol=0, atol=ATOL)


def test_tied_biases(golden, golden_dir):
    model = model_of(golden_dir, "tied_ckpt", bidirectional_data=True)
    arrays = golden("tied.npz")
    assert_equal(model, model(inputs_of(arrays, "")), arrays, "")


def by_original_name(model, values):
    """Gradients or values of the model's variables, stacked under the names of the original."""
    values = dict(zip((v.path for v in model.trainable_variables), values, strict=True))
    return values_to_save(
        dataclasses.replace(match, weight=tf.convert_to_tensor(values[match.path]))
        for match in match_model(model, ORIGINAL)
    )


@pytest.mark.parametrize("case", ["np", "full"])
def test_gradients_of_every_variable(golden, golden_dir, case):
    arrays = golden("pretrain.npz")
    if case == "np":
        model = model_of(golden_dir, bidirectional_data=True, **WITH_MEMORY)
        prefix = "np_batch1_"
        memory = np.moveaxis(arrays["np_batch0_new_mems"], 2, 0)
        inputs = {**inputs_of(arrays, prefix), "memory": memory}
    else:
        model = model_of(golden_dir, partial_prediction=False)
        prefix = "full_batch0_"
        inputs = inputs_of(arrays, prefix)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(
            None,
            arrays[f"{prefix}target"],
            {"logits": model(inputs, training=True)["logits"]},
            arrays[f"{prefix}target_mask"],
        )
    np.testing.assert_allclose(loss, arrays[f"{prefix}loss"], rtol=0, atol=ATOL)
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    actual = by_original_name(model, gradients)
    names = {name.removeprefix(f"{case}_grad/") for name in arrays if f"{case}_grad/" in name}
    assert names == set(actual)
    for name in names:
        expected = arrays[f"{case}_grad/{name}"]
        np.testing.assert_allclose(actual[name], expected, rtol=0, atol=ATOL, err_msg=name)
    norm = np.sqrt(sum(np.sum(np.square(g, dtype="float64")) for g in actual.values()))
    np.testing.assert_allclose(norm, arrays[f"{case}_gnorm_dense"], rtol=1e-5)


class Losses(keras.callbacks.Callback):
    """The loss of every batch, not the one of all batches so far that Keras logs."""

    def on_train_begin(self, logs=None):
        self.losses = []

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])


@pytest.mark.parametrize("case", ["adamwd_poly", "adam_cos"])
def test_six_steps_of_fit_equal_six_steps_of_the_original(golden, golden_dir, case):
    """Stateful memory, schedule, clipping and optimizer, in `fit`, on three batches twice."""
    arrays, data = golden("train.npz"), golden("data.npz")
    settings = golden("train.json")["cases"][case]
    model = model_of(
        golden_dir,
        bidirectional_data=True,
        stateful=True,
        batch_size=4,
        attend_to_empty_memory=True,
        **WITH_MEMORY,
    )
    rate, steps = settings["learning_rate"], settings["train_steps"]
    common = {"epsilon": settings["adam_epsilon"], "global_clipnorm": settings["clip"]}
    if case == "adamwd_poly":
        optimizer = AdamWeightDecay(
            WarmupPolynomialDecay(
                rate,
                train_steps=steps,
                warmup_steps=settings["warmup_steps"],
                min_ratio=settings["min_lr_ratio"],
            ),
            weight_decay=settings["weight_decay"],
            **common,
        )
    else:
        schedule = keras.optimizers.schedules.CosineDecay(
            0.0,
            decay_steps=steps - settings["warmup_steps"],
            alpha=settings["min_lr_ratio"],
            warmup_target=rate,
            warmup_steps=settings["warmup_steps"],
        )
        optimizer = keras.optimizers.Adam(schedule, **common)
    model.compile(optimizer, weighted_metrics=[])
    batches = [
        (
            inputs_of({k: data[f"bi_feat_{k}"][step % 3] for k in INPUT_NAMES}, ""),
            data["bi_feat_target"][step % 3],
            data["bi_feat_target_mask"][step % 3],
        )
        for step in range(6)
    ]
    stacked = keras.tree.map_structure(lambda *x: np.stack(x), *batches)
    losses = Losses()
    dataset = tf.data.Dataset.from_tensor_slices(stacked)
    model.fit(dataset, shuffle=False, callbacks=[losses], verbose=0)
    np.testing.assert_allclose(losses.losses, arrays[f"{case}_loss"], rtol=0, atol=2 * ATOL)
    actual = by_original_name(model, [v.value for v in model.trainable_variables])
    names = [name for name in actual if f"{case}_var/{name}" in arrays]
    assert len(names) >= 8
    for name in names:
        expected = arrays[f"{case}_var/{name}"]
        np.testing.assert_allclose(actual[name], expected, rtol=0, atol=2 * ATOL, err_msg=name)


INPUT_NAMES = ("input_k", "seg_id", "perm_mask", "target_mapping")

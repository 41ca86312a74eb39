"""The encoder equals the original implementation: forward values, memories, gradients' inputs."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_xlnet.checkpoints import load_original

ATOL = 1e-5
VARIANTS = [
    "base", "bidata", "bidata_clamp", "clamp", "noreuse", "noreuse_grow", "reuse_grow", "mask",
    "noseg", "nomem", "uni", "uni_same_length", "uni_bidata_clamp", "uni_mask",
]  # fmt: skip


def batch_first(x):
    return np.swapaxes(x, 0, 1)


def inputs_of(arrays, prefix="", segments=True, mask=True):
    inputs = {"token_ids": batch_first(arrays[prefix + "input_ids"])}
    if segments:
        inputs["segment_ids"] = batch_first(arrays[prefix + "seg_ids"])
    if mask:
        inputs["padding_mask"] = batch_first(arrays[prefix + "input_mask"]) == 0
    return inputs


def assert_close(actual, expected):
    np.testing.assert_allclose(ops.convert_to_numpy(actual), expected, rtol=0, atol=ATOL)


@pytest.fixture(scope="module")
def backbone(golden_dir):
    return load_original(golden_dir / "tiny_ckpt")


@pytest.mark.parametrize(
    "name, kwargs",
    [("output", {}), ("output_nomask", {"mask": False}), ("output_noseg", {"segments": False})],
)
def test_encoder(backbone, golden, name, kwargs):
    arrays = golden("encoder.npz")
    output = backbone(inputs_of(arrays, **kwargs))["sequence_output"]
    assert_close(output, batch_first(arrays[name]))


def test_every_layer_input(golden, golden_dir):
    # Memory that is as long as the segment and empty before it holds the input of every layer.
    arrays = golden("encoder.npz")
    model = load_original(golden_dir / "tiny_ckpt", memory_length=14)
    memory = model(inputs_of(arrays))["memory"]
    assert_close(memory, np.moveaxis(arrays["layer_inputs"], 2, 0))


def run_content_stream(model, inputs, permutation_mask, memory=None):
    """The backbone's layers with a permutation mask, which its graph has no input for."""
    x = model.token_embedding(inputs["token_ids"])
    content_mask, _ = model.attention_mask(
        x,
        padding_mask=inputs.get("padding_mask"),
        permutation_mask=permutation_mask,
        memory=memory,
    )
    positions = model.position_encoding(x, memory=memory)
    segment_matrix = model.segment_matrix(inputs["segment_ids"], memory=memory)
    new_memory = []
    for i, block in enumerate(model.blocks):
        layer_memory = None if memory is None else memory[:, i]
        if memory is not None:
            new_memory.append(model.recurrent_memory(x, layer_memory))
        x = block(
            x,
            memory=layer_memory,
            position_encoding=positions,
            segment_matrix=segment_matrix,
            content_attention_mask=content_mask,
        )
    return x, ops.stack(new_memory, axis=1) if new_memory else None


@pytest.mark.parametrize("mask, name", [(True, "output_perm"), (False, "output_perm_nomask")])
def test_permutation_mask_of_the_content_stream(backbone, golden, mask, name):
    arrays = golden("encoder.npz")
    permutation_mask = np.moveaxis(arrays["perm_mask"], 2, 0) == 0
    output, _ = run_content_stream(backbone, inputs_of(arrays, mask=mask), permutation_mask)
    assert_close(output, batch_first(arrays[name]))


def test_permutation_mask_with_memory_and_bidirectional_data(golden, golden_dir):
    arrays = golden("encoder_mems.npz")
    settings = golden("encoder_mems.json")["variants"]["perm_bidata"]
    model = load_original(
        golden_dir / "tiny_ckpt",
        bidirectional_data=True,
        memory_length=settings["mem_len"],
        reuse_length=settings["reuse_len"],
    )
    memory = np.zeros((4, 3, settings["mem_len"], 32), "float32")
    for step in range(3):
        inputs = inputs_of(arrays, f"seg{step}_", mask=False)
        permutation_mask = np.moveaxis(arrays[f"seg{step}_perm_mask"], 2, 0) == 0
        output, memory = run_content_stream(model, inputs, permutation_mask, memory)
    assert_close(output, batch_first(arrays["perm_bidata_seg2_output"]))
    assert_close(memory, np.moveaxis(arrays["perm_bidata_seg2_mems"], 2, 0))


@pytest.mark.parametrize("variant", VARIANTS)
def test_memory_over_three_segments(golden, golden_dir, variant):
    arrays = golden("encoder_mems.npz")
    settings = golden("encoder_mems.json")["variants"][variant]
    memory_length = settings["mem_len"]
    model = load_original(
        golden_dir / "tiny_ckpt",
        attention_type=settings["attn_type"],
        bidirectional_data=settings["bi_data"],
        clamp_length=settings["clamp_len"] if settings["clamp_len"] > 0 else None,
        memory_length=memory_length,
        reuse_length=settings["reuse_len"] if memory_length else None,
        same_length=settings["same_length"],
    )
    memory = None
    if settings["start"] == "zeros":
        memory = np.zeros((4, 3, memory_length, 32), "float32")
    compared = 0
    for step in range(3):
        inputs = inputs_of(
            arrays, f"seg{step}_", segments=settings["use_seg"], mask=settings["use_mask"]
        )
        if memory is not None:
            inputs["memory"] = memory
        outputs = model(inputs)
        memory = outputs.get("memory")
        name = f"{variant}_seg{step}"
        if f"{name}_output" in arrays:
            assert_close(outputs["sequence_output"], batch_first(arrays[f"{name}_output"]))
            compared += 1
        if f"{name}_mems" in arrays:
            assert_close(memory, np.moveaxis(arrays[f"{name}_mems"], 2, 0))
    assert compared in (1, 3)


def test_tied_biases_and_heads_narrower_than_the_model(golden, golden_dir):
    arrays = golden("tied.npz")
    model = load_original(golden_dir / "tied_ckpt")
    assert model.tie_attention_biases and model.num_heads * model.head_dim != model.hidden_dim
    output = model(
        {
            "token_ids": batch_first(arrays["enc_input_ids"]),
            "segment_ids": batch_first(arrays["enc_seg_ids"]),
            "padding_mask": batch_first(arrays["enc_input_mask"]) == 0,
        }
    )["sequence_output"]
    assert_close(output, batch_first(arrays["enc_output"]))


def test_gradients_flow_as_in_the_original(golden, golden_dir, golden_checkpoint):
    # heads.json keeps the norm of every gradient of a classifier's loss.
    tf = pytest.importorskip("tensorflow")
    arrays, norms = golden("heads.npz"), golden("heads.json")["cases"]["cls"]["grad_l2_by_variable"]
    model = load_original(golden_dir / "tiny_ckpt")
    head = golden_checkpoint("heads_ckpt")
    summary = (
        head("model/sequnece_summary/summary/kernel"),
        head("model/sequnece_summary/summary/bias"),
    )
    logit = (
        head("model/classification_tiny/logit/kernel"),
        head("model/classification_tiny/logit/bias"),
    )
    inputs = {
        "token_ids": arrays["cls_input_ids"],
        "segment_ids": arrays["cls_segment_ids"],
        "padding_mask": arrays["cls_input_mask"] == 0,
    }
    with tf.GradientTape() as tape:
        pooled = model(inputs, training=False)["sequence_output"][:, -1]
        logits = ops.tanh(pooled @ summary[0] + summary[1]) @ logit[0] + logit[1]
        loss = ops.mean(
            keras.losses.sparse_categorical_crossentropy(
                arrays["cls_label_ids"], logits, from_logits=True
            )
        )
    assert_close(logits, arrays["cls_logits"])
    variables = {
        "token_embedding/embeddings": "word_embedding/lookup_table",
        **{
            f"block_{i}/attention/{ours}/kernel": f"layer_{i}/rel_attn/{original}/kernel"
            for i in range(3)
            for ours, original in zip(
                ("query", "key", "value", "position", "output"), "qkvro", strict=True
            )
        },
        **{
            f"block_{i}/feed_forward/{ours}/{kind}": f"layer_{i}/ff/{original}/{kind}"
            for i in range(3)
            for ours, original in (("intermediate", "layer_1"), ("output", "layer_2"))
            for kind in ("kernel", "bias")
        },
    }
    by_path = {v.path: v for v in model.trainable_variables}
    gradients = tape.gradient(loss, [by_path[path].value for path in variables])
    for (path, original), gradient in zip(variables.items(), gradients, strict=True):
        norm = float(tf.norm(tf.convert_to_tensor(gradient)))
        expected = norms[f"model/transformer/{original}"]
        assert norm == pytest.approx(expected, rel=1e-4, abs=1e-6), path

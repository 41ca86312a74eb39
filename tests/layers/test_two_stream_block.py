"""Both streams: equal to the original, and no more than the masks allow."""

import numpy as np
import pytest
from keras import ops

from keras_xlnet import layers
from keras_xlnet.checkpoints import load_original

ATOL = 1e-5


def run_streams(model, features, query_start, memory=None, target_positions=None):
    """Both streams through a backbone's blocks; returns (query stream, new memory)."""
    inputs = features["input_k"].astype("int32")
    x = model.token_embedding(inputs)
    content_mask, query_mask = model.attention_mask(
        x, permutation_mask=features["perm_mask"] == 0, memory=memory
    )
    positions = model.position_encoding(x, memory=memory)
    biases = model.attention_biases(positions) if model.tie_attention_biases else None
    segment_matrix = model.segment_matrix(features["seg_id"].astype("int32"), memory=memory)
    query, new_memory = query_start(x), []
    for i, block in enumerate(model.blocks):
        layer_memory = None if memory is None else memory[:, i]
        if memory is not None:
            new_memory.append(model.recurrent_memory(x, layer_memory))
        x, query = block(
            x,
            query,
            memory=layer_memory,
            position_encoding=positions,
            segment_matrix=segment_matrix,
            content_attention_mask=content_mask,
            query_attention_mask=query_mask,
            target_positions=target_positions,
            attention_biases=biases,
        )
    return query, ops.stack(new_memory, axis=1) if new_memory else None


def features_of(arrays, prefix):
    names = ("input_k", "input_q", "perm_mask", "seg_id", "target_mapping", "target_mask")
    return {n: arrays[prefix + n] for n in names if prefix + n in arrays}


def assert_used_rows_equal(query, output_g, target_mask):
    used = target_mask == 1
    actual = ops.convert_to_numpy(query)[used]
    np.testing.assert_allclose(actual, np.swapaxes(output_g, 0, 1)[used], rtol=0, atol=ATOL)


@pytest.mark.parametrize(
    "case, batches, clamp_length, bidirectional",
    [("np", 2, None, True), ("tpu_clamp", 2, 5, True), ("blind", 1, None, False)],
)
def test_predicted_rows_equal_the_original(
    golden, golden_dir, golden_checkpoint, case, batches, clamp_length, bidirectional
):
    arrays = golden("pretrain.npz")
    with_memory = case != "blind"
    model = load_original(
        golden_dir / "tiny_ckpt",
        memory_length=12 if with_memory else None,
        reuse_length=16 if with_memory else None,
        clamp_length=clamp_length,
        bidirectional_data=bidirectional,
    )
    mask_embedding = golden_checkpoint("tiny_ckpt")("model/transformer/mask_emb/mask_emb")
    memory = np.zeros((4, 3, 12, 32), "float32") if with_memory else None
    for batch in range(batches):
        features = features_of(arrays, f"{case}_batch{batch}_")
        target_positions = np.argmax(features["target_mapping"], axis=-1)
        query, memory = run_streams(
            model,
            features,
            lambda x: np.tile(mask_embedding, (4, 6, 1)),
            memory,
            target_positions,
        )
        prefix = f"{case}_batch{batch}_"
        assert_used_rows_equal(query, arrays[prefix + "output_g"], features["target_mask"])
        if with_memory:
            expected = np.moveaxis(arrays[prefix + "new_mems"], 2, 0)
            np.testing.assert_allclose(memory, expected, rtol=0, atol=ATOL)


def test_full_length_query_stream_equals_the_original(golden, golden_dir, golden_checkpoint):
    arrays = golden("pretrain.npz")
    model = load_original(golden_dir / "tiny_ckpt")
    mask_embedding = golden_checkpoint("tiny_ckpt")("model/transformer/mask_emb/mask_emb")
    features = features_of(arrays, "full_batch0_")
    is_target = features["input_q"][..., None]
    query, _ = run_streams(
        model, features, lambda x: is_target * mask_embedding + (1 - is_target) * np.asarray(x)
    )
    # Every row, not only the predicted ones: the others start from the word.
    np.testing.assert_allclose(
        query, np.swapaxes(arrays["full_batch0_output_g"], 0, 1), rtol=0, atol=ATOL
    )


def test_tied_biases_equal_the_original(golden, golden_dir, golden_checkpoint):
    arrays = golden("tied.npz")
    model = load_original(golden_dir / "tied_ckpt", bidirectional_data=True)
    mask_embedding = golden_checkpoint("tied_ckpt")("model/transformer/mask_emb/mask_emb")
    features = features_of(arrays, "")
    query, _ = run_streams(
        model,
        features,
        lambda x: np.tile(mask_embedding, (4, 3, 1)),
        target_positions=np.argmax(features["target_mapping"], axis=-1),
    )
    assert_used_rows_equal(query, arrays["output_g"], features["target_mask"])


@pytest.fixture(scope="module")
def parts():
    """A block, and inputs with random distinct rows: content 7 rows, memory 3."""
    rng = np.random.default_rng(3)
    block = layers.TwoStreamBlock(2, 5, 24, kernel_initializer="glorot_normal")
    inputs = {
        "content_stream": rng.normal(size=(4, 7, 16)).astype("float32"),
        "memory": rng.normal(size=(4, 3, 16)).astype("float32"),
        "segment_matrix": rng.random((4, 7, 10)) < 0.4,
        "content_attention_mask": rng.random((4, 7, 10)) < 0.7,
        "query_attention_mask": rng.random((4, 7, 10)) < 0.6,
    }
    query = rng.normal(size=(4, 7, 16)).astype("float32")
    encoding = layers.RelativePositionEncoding(16)
    inputs["position_encoding"] = encoding(inputs["content_stream"], inputs["memory"])
    block(**inputs)
    return block, inputs, query


@pytest.mark.parametrize("attention_type", ["bi", "uni"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_predicted_rows_are_the_rows_of_the_full_stream(parts, attention_type, bidirectional):
    block, inputs, query = parts
    positions = layers.RelativePositionEncoding(
        16, attention_type=attention_type, bidirectional_data=bidirectional
    )(inputs["content_stream"], inputs["memory"])
    inputs = {**inputs, "position_encoding": positions}
    if attention_type == "uni":
        causal, _ = layers.AttentionMask("uni")(inputs["content_stream"], memory=inputs["memory"])
        inputs["content_attention_mask"] = causal
        inputs["query_attention_mask"] = np.asarray(causal) & inputs["query_attention_mask"]
        inputs["query_attention_mask"][..., 0] = True  # a blind row sees what "uni" has no key for
    content, full = block(query_stream=query, **inputs)
    target_positions = np.array([[6, 0, 3], [1, 2, 5], [4, 4, 0], [2, 6, 1]])
    rows = np.arange(4)[:, None], target_positions
    content_k, some = block(query_stream=query[rows], target_positions=target_positions, **inputs)
    np.testing.assert_allclose(some, np.asarray(full)[rows], atol=2e-6)
    np.testing.assert_array_equal(content_k, content)
    picked = {**inputs, "query_attention_mask": np.asarray(inputs["query_attention_mask"])[rows]}
    _, same = block(query_stream=query[rows], target_positions=target_positions, **picked)
    np.testing.assert_array_equal(same, some)


def test_query_rows_do_not_see_each_other(parts):
    block, inputs, query = parts
    _, before = block(query_stream=query, **inputs)
    changed = query.copy()
    changed[:, 2] += 1.0
    content, after = block(query_stream=changed, **inputs)
    untouched = [i for i in range(7) if i != 2]
    np.testing.assert_array_equal(np.asarray(before)[:, untouched], np.asarray(after)[:, untouched])
    assert np.abs(np.asarray(before)[:, 2] - np.asarray(after)[:, 2]).min() > 0
    np.testing.assert_array_equal(content, block(**inputs))


@pytest.mark.parametrize("stream", ["content", "query"])
def test_masked_rows_have_no_effect(parts, stream):
    block, inputs, query = parts
    inputs = dict(inputs)
    for name in ("content_attention_mask", "query_attention_mask"):
        inputs[name] = inputs[name].copy()
        inputs[name][:, :, 3 + 4] = False  # content row 4 comes after 3 rows of memory
    outputs = block(query_stream=query, **inputs)
    inputs["content_stream"] = inputs["content_stream"].copy()
    inputs["content_stream"][:, 4] += 5.0
    changed = block(query_stream=query, **inputs)
    k = ("content", "query").index(stream)
    same = np.abs(np.asarray(outputs[k]) - np.asarray(changed[k])).max(axis=(0, 2)) == 0
    expected = [i != 4 for i in range(7)] if stream == "content" else [True] * 7
    assert same.tolist() == expected


def test_dropout_acts_in_training_only_and_follows_its_seed(parts):
    _, inputs, _ = parts

    def outputs(seed):
        block = layers.TwoStreamBlock(
            2, 5, 24, dropout=0.3, attention_dropout=0.3, kernel_initializer="ones", seed=seed
        )
        return [np.asarray(block(**inputs, training=training)) for training in (True, False)]

    (first, calm), (second, calm_too), (other, _) = outputs(5), outputs(5), outputs(6)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(calm, calm_too)
    assert np.abs(first - other).max() > 1e-3
    assert np.abs(first - calm).max() > 1e-3


def test_dropout_sites_of_one_block_are_independent():
    block = layers.TwoStreamBlock(2, 4, 8, dropout=0.1, attention_dropout=0.1, seed=1)
    feed_forward = block.feed_forward
    dropouts = [
        block.attention.dropout_layer,
        block.attention_dropout_layer,
        feed_forward.intermediate_dropout,
        feed_forward.output_dropout,
    ]
    assert len({layer.seed for layer in dropouts}) == 4

"""The masks that Keras attaches to tensors: what `Embedding(mask_zero=True)` calls padding."""

import warnings

import keras
import numpy as np
import pytest
from keras import ops

from keras_xlnet import layers

IDS = np.array([[5, 17, 8, 0, 0, 0], [6, 9, 3, 11, 0, 0], [7, 2, 4, 8, 12, 5]])
LENGTHS = [3, 4, 6]
DIM = 8


def weights(layer, seed=0):
    rng = np.random.default_rng(seed)
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(scale=0.4, size=weight.shape))
    return layer


def two_streams(x, positions):
    return layers.TwoStreamBlock(2, 4, 16)(x, position_encoding=positions)


def transformer_xl(x, positions):
    x = layers.TransformerXLBlock(2, 4, 16)(x, position_encoding=positions)
    return layers.TransformerXLBlock(2, 4, 16, normalize_first=True)(x, position_encoding=positions)


def attention(x, positions):
    attended = layers.RelativeMultiHeadAttention(2, 4)(x, x, positions)
    x = layers.AddAndNorm()(x, attended)
    return layers.FeedForward(16)(x)


BLOCKS = {"two_streams": two_streams, "transformer_xl": transformer_xl, "attention": attention}
POOLINGS = {
    **{mode: lambda mode=mode: layers.SequencePooling(mode) for mode in ("last", "first", "mean")},
    "attention": lambda: layers.SequencePooling("attention", num_heads=2, head_dim=4),
    "summary": lambda: layers.SequenceSummary("mean"),
}


def model_of(block, pool):
    token_ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, DIM, mask_zero=True)(token_ids)
    positions = layers.RelativePositionEncoding(DIM)(x)
    return weights(keras.Model(token_ids, pool(block(x, positions))))


def assert_padding_changes_nothing(model, ids=IDS):
    padded = model.predict_on_batch(ids)
    for row, length in enumerate(LENGTHS):
        alone = model.predict_on_batch(ids[row : row + 1, :length])
        np.testing.assert_allclose(padded[row], alone[0], rtol=0, atol=2e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_is_not_pooled(pooling):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Of masks that are lost.
        model = model_of(lambda x, positions: layers.FeedForward(16)(x), POOLINGS[pooling]())
    assert_padding_changes_nothing(model)


@pytest.mark.parametrize("block", BLOCKS)
def test_padding_is_not_attended_to(block, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = model_of(BLOCKS[block], layers.SequencePooling("mean"))
    assert_padding_changes_nothing(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict_on_batch(IDS), model.predict_on_batch(IDS))


def test_padding_has_no_loss():
    token_ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, DIM, mask_zero=True)(token_ids)
    x = two_streams(x, layers.RelativePositionEncoding(DIM)(x))
    model = weights(keras.Model(token_ids, layers.LogitBias()(keras.layers.Dense(20)(x))))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, run_eagerly=True)
    padded = model.evaluate(IDS[:1], IDS[:1], verbose=0)
    assert padded == pytest.approx(model.evaluate(IDS[:1, :3], IDS[:1, :3], verbose=0), rel=1e-5)


@pytest.fixture
def streams(rng):
    return {
        "content_stream": rng.normal(size=(3, 6, DIM)).astype("float32"),
        "query_stream": rng.normal(size=(3, 2, DIM)).astype("float32"),
        "memory": rng.normal(size=(3, 2, DIM)).astype("float32"),
        "position_encoding": rng.normal(size=(1, 14, DIM)).astype("float32"),
        "target_positions": np.array([[0, 2], [1, 3], [5, 0]]),
    }


@pytest.mark.parametrize("has_memory", [True, False])
@pytest.mark.parametrize("has_masks", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_both_streams_and_all_of_memory(streams, rng, has_memory, has_masks, training):
    block = layers.TwoStreamBlock(2, 4, 16, gradient_checkpointing=True)
    if not has_memory:
        del streams["memory"]
        streams["position_encoding"] = streams["position_encoding"][:, 2:]
    is_real = IDS != 0
    of_context = np.concatenate([np.ones((3, 2), bool), is_real], axis=1)[
        :, -8 if has_memory else -6 :
    ]
    masks = {}
    if has_masks:
        masks = {
            f"{stream}_attention_mask": rng.random((3, 6, of_context.shape[1])) < 0.7
            for stream in ("content", "query")
        }
    weights(block if block(**streams) else block)
    found = block(**streams, **masks, content_stream_mask=is_real, training=training)
    explicit = {
        f"{stream}_attention_mask": masks.get(f"{stream}_attention_mask", True)
        & np.broadcast_to(of_context[:, None], (3, 6, of_context.shape[1]))
        for stream in ("content", "query")
    }
    expected = block(**streams, **explicit, training=training)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(one), ops.convert_to_numpy(other), rtol=0, atol=1e-6
        )

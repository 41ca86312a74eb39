"""Chunks and checkpointing change no number. Prints the worst differences as a line of JSON.

KERAS_BACKEND=jax PYTHONPATH=. python tests/layers/long_sequences.py
"""

import json

import numpy as np
from keras import ops

from keras_xlnet import layers
from tests.backends.per_backend import UnsupportedError, gradients, run_with_xla

B, T, M, H, K = 2, 7, 3, 8, 5
# What differs, of: type, clamp, bidirectional data, rows (T or K), chunk size, segments, mask.
CASES = {
    "bi": ("bi", None, False, T, 3, True, True),
    "divides": ("bi", None, False, T, 1, True, True),
    "uni": ("uni", None, False, T, 3, True, True),
    "clamp": ("bi", 2, False, T, 4, False, True),
    "bidirectional": ("bi", None, True, T, 2, True, False),
    "predictions": ("bi", None, False, K, 2, True, True),
    "uni_predictions": ("uni", 3, True, K, 3, False, True),
}


def attention_case(name):
    """A function from a chunk size to a layer, the same weights each time, and its inputs."""
    kind, clamp, bidirectional, rows, chunk_size, has_segments, has_mask = CASES[name]
    rng = np.random.default_rng(len(name))
    content, memory, query = (rng.normal(size=(B, n, H)).astype("float32") for n in (T, M, rows))
    context = np.concatenate([memory, content], axis=1)
    encode = layers.RelativePositionEncoding(H, kind, clamp, bidirectional_data=bidirectional)
    positions = ops.convert_to_numpy(encode(content, memory))
    targets = rng.integers(0, T, (B, rows)).astype("int32")
    keywords = {}
    if rows == K:
        keywords |= {"target_positions": targets, "content_length": T}
    if has_segments:
        keywords["segment_matrix"] = rng.random((B, rows, T + M)) < 0.5
    row = targets if rows == K else np.tile(np.arange(T), (B, 1))
    mask = rng.random((B, rows, T + M)) < 0.7
    if kind == "uni":
        mask &= np.arange(T + M) <= row[:, :, None] + M
    if has_mask:
        keywords["attention_mask"] = mask

    def make(chunk_size):
        layer = layers.RelativeMultiHeadAttention(2, 4, attention_chunk_size=chunk_size)
        shape = (B, rows, T + M) if has_segments else None
        layer.build(query.shape, context.shape, positions.shape, shape)
        fill(layer)
        return layer

    return make, chunk_size, (query, context, positions), keywords


def fill(layer):
    rng = np.random.default_rng(5)
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(scale=0.4, size=weight.shape))


def sine(outputs):
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    return sum(ops.sum(ops.sin(ops.cast(x, "float32"))) for x in outputs)


def chunks():
    """Worst difference of loss and gradients of chunked from those of plain attention."""
    worst = {}
    for name in ("uni", "bidirectional", "predictions"):
        make, chunk_size, arguments, keywords = attention_case(name)
        found = [
            gradients(make(size), sine, *arguments, training=True, **keywords)
            for size in (None, chunk_size)
        ]
        worst[f"chunks/{name}"] = worst_of(*found)
        if name == "predictions":
            try:
                actual = run_with_xla(make(chunk_size), *arguments, **keywords)
            except UnsupportedError:
                continue
            expected = make(None)(*arguments, **keywords)
            worst[f"xla/{name}"] = float(ops.max(ops.abs(actual - expected)))
    return worst


def checkpointing():
    """Worst difference of loss and gradients of checkpointed blocks with dropout."""
    _, _, (query, context, positions), keywords = attention_case("predictions")
    rng = np.random.default_rng(2)
    inputs = {
        "content_stream": context[:, M:],
        "query_stream": query,
        "memory": context[:, :M],
        "position_encoding": positions,
        "segment_matrix": rng.random((B, T, T + M)) < 0.5,
        "content_attention_mask": rng.random((B, T, T + M)) < 0.7,
        "query_attention_mask": rng.random((B, T, T + M)) < 0.7,
        "target_positions": keywords["target_positions"],
    }
    worst = {}
    # JAX compiles each gradient anew, so no more than what differs.
    for dtype, chunk_size in (("float32", None), ("mixed_bfloat16", 3)):
        found = []
        for checkpointing in (False, True):
            block = layers.TwoStreamBlock(
                2,
                4,
                12,
                dropout=0.2,
                attention_dropout=0.3,
                seed=3,
                attention_chunk_size=chunk_size,
                gradient_checkpointing=checkpointing,
                dtype=dtype,
            )
            block(**{key: v for key, v in inputs.items() if key != "query_stream"})
            fill(block)
            found.append(gradients(block, sine, training=True, **inputs))
        worst[f"{dtype}/{chunk_size}"] = worst_of(*found)
    return worst


def worst_of(one, other):
    losses = abs(float(one[0]) - float(other[0]))
    pairs = zip(one[1].values(), other[1].values(), strict=True)
    return max(losses, *(float(np.abs(a - b).max()) for a, b in pairs))


if __name__ == "__main__":
    print(json.dumps({**chunks(), **checkpointing()}))

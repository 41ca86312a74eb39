"""Floating point operations of XLNet, by part.

Only matrix products count, a multiplication and an addition as two. Position keys are projected
once for a batch, for all distances. The last layer of a permutation language model has no content
stream, only its keys and values. A test counts the products in the program of a train step.
"""

import dataclasses

# Each product of the forward pass needs two in the backward pass, one per factor. The
# position table is constant, so its projection needs one.
TRAINED, CONSTANT_INPUT = 3, 2
# `RelativeMultiHeadAttention` computes sequences above 256 tokens in blocks of 128 rows.
BLOCK_SIZE = 128


@dataclasses.dataclass(frozen=True)
class Shapes:
    """The shapes of a model and of its batches; `XLNetBackbone` names them.

    `num_predictions` is the number of query rows. With `bidirectional_data` the position table is
    projected twice, forward and backward.
    """

    num_layers: int
    num_heads: int
    hidden_dim: int
    intermediate_dim: int
    vocabulary_size: int
    head_dim: int = 64
    sequence_length: int = 512
    memory_length: int = 384
    num_predictions: int = 85
    batch_size: int = 256
    bidirectional_data: bool = True

    @property
    def heads_dim(self):
        return self.num_heads * self.head_dim

    @property
    def context_length(self):
        return self.memory_length + self.sequence_length

    @property
    def distances(self):
        return self.sequence_length + self.context_length


def matmul_flop(m, k, n):
    """Returns the operations of a product of `(m, k)` and `(k, n)`."""
    return 2 * m * k * n


def encoder_flop(shapes):
    """Returns the operations of a forward pass of the content stream."""
    keys, positions = _keys_flop(shapes)
    content = _stream_flop(shapes, shapes.sequence_length, shapes.distances)
    return shapes.num_layers * (keys * shapes.context_length + positions + sum(content.values()))


def forward_flop(shapes):
    """Returns the operations of the forward pass of pretraining, a dict by the name of the part."""
    layers, rows, targets = shapes.num_layers, shapes.sequence_length, shapes.num_predictions
    is_in_blocks = rows > 2 * BLOCK_SIZE
    distances = shapes.context_length + BLOCK_SIZE if is_in_blocks else shapes.distances
    content = _stream_flop(shapes, rows, distances)
    query = _stream_flop(shapes, targets, shapes.distances)
    keys, positions = _keys_flop(shapes)
    softmax = matmul_flop(shapes.batch_size * targets, shapes.hidden_dim, shapes.vocabulary_size)
    return {
        "keys and values of the row": layers * rows * keys,
        "keys and values of the memory": layers * shapes.memory_length * keys,
        "position keys": layers * positions,
        **{f"content stream: {part}": (layers - 1) * flop for part, flop in content.items()},
        **{f"query stream: {part}": layers * flop for part, flop in query.items()},
        "softmax over the vocabulary": softmax,
    }


def training_flop(shapes):
    """Returns the operations of one pretraining step: forward, and backward for all weights.

    Args:
        shapes: `Shapes`.

    Returns:
        Dict of ints by the name of the part.

    Example:

    >>> small = Shapes(4, 4, 256, 1024, 8000, sequence_length=128, memory_length=96,
    ...     num_predictions=21, batch_size=32)
    >>> print(f"{sum(training_flop(small).values()):.3g}")
    1.09e+11
    """
    return {
        part: flop * (CONSTANT_INPUT if part == "position keys" else TRAINED)
        for part, flop in forward_flop(shapes).items()
    }


def _keys_flop(shapes):
    """Returns the operations for keys and values of a token of each row, and for position keys."""
    keys_and_values = 2 * matmul_flop(shapes.batch_size, shapes.hidden_dim, shapes.heads_dim)
    positions = matmul_flop(shapes.distances, shapes.hidden_dim, shapes.heads_dim)
    return keys_and_values, positions * (2 if shapes.bidirectional_data else 1)


def _stream_flop(shapes, rows, distances):
    """Returns the operations for the rows of one stream in one layer, forward."""
    batch, hidden, heads = shapes.batch_size, shapes.hidden_dim, shapes.heads_dim
    segments = 1
    return {
        "queries and outputs": 2 * matmul_flop(batch * rows, hidden, heads),
        "scores and weighted values": 2 * batch * matmul_flop(rows, heads, shapes.context_length),
        "relative positions and segments": batch * matmul_flop(rows, heads, distances + segments),
        "feed-forward": 2 * matmul_flop(batch * rows, hidden, shapes.intermediate_dim),
    }

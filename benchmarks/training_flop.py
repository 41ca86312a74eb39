"""Floating point operations of one pretraining step, by part.

Only matrix products count, a multiplication and an addition as two. `training_flop_by_xla.py`
counts the same step by the compiler, which adds the elementwise operations.
"""

import dataclasses

from benchmarks.comparison.flop import matmul_flop

# A product of the forward pass has two in the backward pass: one for each of its factors. The
# position table is a constant, so its projection has one.
TRAINED, CONSTANT_INPUT = 3, 2
# `RelativeMultiHeadAttention` computes longer sequences than 256 tokens in blocks of 128 rows.
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


def training_flop(shapes):
    """Returns the operations of one step: forward, and backward for all weights.

    The last layer has no content stream, only its keys and values.

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
    batch, layers = shapes.batch_size, shapes.num_layers
    rows, targets, context = shapes.sequence_length, shapes.num_predictions, shapes.context_length
    hidden, heads = shapes.hidden_dim, shapes.heads_dim
    distances = rows + context
    is_in_blocks = rows > 2 * BLOCK_SIZE
    keys_and_values = 2 * batch * matmul_flop(1, hidden, heads)
    directions = 2 if shapes.bidirectional_data else 1
    softmax = matmul_flop(batch * targets, hidden, shapes.vocabulary_size)
    content = _stream_flop(shapes, rows, context + BLOCK_SIZE if is_in_blocks else distances)
    query = _stream_flop(shapes, targets, distances)
    return {
        "keys and values of the row": TRAINED * layers * rows * keys_and_values,
        "keys and values of the memory": TRAINED * layers * shapes.memory_length * keys_and_values,
        "position keys": CONSTANT_INPUT
        * layers
        * directions
        * matmul_flop(distances, hidden, heads),
        **{f"content stream: {k}": TRAINED * (layers - 1) * v for k, v in content.items()},
        **{f"query stream: {k}": TRAINED * layers * v for k, v in query.items()},
        "softmax over the vocabulary": TRAINED * softmax,
    }


def _stream_flop(shapes, rows, distances):
    """Of the rows of one stream in the forward pass of one layer."""
    batch, hidden, heads = shapes.batch_size, shapes.hidden_dim, shapes.heads_dim
    segments = 1
    return {
        "queries and outputs": 2 * matmul_flop(batch * rows, hidden, heads),
        "scores and weighted values": 2 * batch * matmul_flop(rows, heads, shapes.context_length),
        "relative positions and segments": batch * matmul_flop(rows, heads, distances + segments),
        "feed-forward": 2 * matmul_flop(batch * rows, hidden, shapes.intermediate_dim),
    }

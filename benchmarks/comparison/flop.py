"""Floating point operations that a forward pass needs, done without waste.

Only matrix products count, a multiplication and an addition as two. Position keys are projected
once for a batch, for all `2 length + memory` distances; the top layer of a permutation language
model has no content stream, only its keys and values.
"""


def matmul_flop(m, k, n):
    """Of a product of `(m, k)` and `(k, n)`."""
    return 2 * m * k * n


def encoder_flop(workload):
    """Of all layers of an encoder."""
    rows, keys = workload.length, workload.length
    return workload.num_layers * (
        _keys_flop(workload, keys)
        + _position_keys_flop(workload, rows + keys)
        + _stream_flop(workload, rows, keys, rows + keys)
    )


def pretraining_flop(workload, vocabulary_size):
    """Of two streams with one query row a prediction, and of the softmax over the vocabulary."""
    rows, targets = workload.length, workload.num_predictions
    keys = rows + workload.memory_length
    projections = _keys_flop(workload, keys) + _position_keys_flop(workload, rows + keys)
    content = _stream_flop(workload, rows, keys, rows + keys)
    query = _stream_flop(workload, targets, keys, rows + keys)
    return (
        workload.num_layers * (projections + query)
        + (workload.num_layers - 1) * content
        + matmul_flop(workload.batch_size * targets, workload.dim, vocabulary_size)
    )


def _keys_flop(workload, keys):
    return 2 * matmul_flop(workload.batch_size * keys, workload.dim, workload.dim)


def _position_keys_flop(workload, distances):
    return matmul_flop(distances, workload.dim, workload.dim)


def _stream_flop(workload, rows, keys, distances):
    """Of queries, scores, values, output and feed-forward of the rows of one stream."""
    batch, dim = workload.batch_size, workload.dim
    query_and_output = 2 * matmul_flop(batch * rows, dim, dim)
    feed_forward = 2 * matmul_flop(batch * rows, dim, workload.intermediate_dim)
    segments = 2
    scores_and_values = batch * matmul_flop(rows, dim, 2 * keys + distances + segments)
    return query_and_output + feed_forward + scores_and_values

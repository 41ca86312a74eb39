"""Exact search for the vectors v that are most similar to a query q, all of length 1.

    cos(q, v_i) = q . v_i

All products are computed, in blocks. Vectors are NumPy arrays: a device may be too small for them.

Source: Reimers and Gurevych 2019, "Sentence-BERT", section 1, for search by cosine.
"""

from collections.abc import Callable

import numpy as np

# Rows of the collection, and queries, whose cosines are in memory at the same time: 64 MB.
_BLOCK, _QUERIES = 65_536, 256


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors `(..., dim)` scaled to length 1. A vector of zeros does not change.

    Raises:
        ValueError: If a number is NaN or infinite. The message names the row.
    """
    wrong = ~np.isfinite(vectors)
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(
            f"Vectors must be finite numbers. Received in row {row}: {vectors[wrong][0]}"
        )
    # The squares of very large or small numbers are infinite or 0.
    largest = np.abs(vectors).max(axis=-1, keepdims=True)
    vectors = vectors / np.where(largest > 0, largest, 1.0)
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)


def most_similar(
    queries: np.ndarray,
    vectors: np.ndarray,
    top_k: int,
    as_floats: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Finds for each query the vectors with the largest products.

    Args:
        queries: Float array `(queries, dim)`.
        vectors: Float array `(rows, dim)`, or codes of vectors.
        top_k: Int, how many vectors are found.
        as_floats: Function from rows of codes to vectors.

    Returns:
        Int array `(queries, k)`, rows of `vectors`, and their products, the largest one first.
        Equal products are in the order of their rows. `k` is `min(top_k, rows)`.
    """
    parts = [
        _most_similar(queries[start : start + _QUERIES], vectors, top_k, as_floats)
        for start in range(0, len(queries), _QUERIES)
    ]
    rows, scores = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(scores)


def _most_similar(queries, vectors, top_k, as_floats):
    rows = np.zeros((len(queries), 0), "int64")
    scores = np.zeros((len(queries), 0), "float32")
    for start in range(0, len(vectors), _BLOCK):
        block = as_floats(vectors[start : start + _BLOCK])
        found = queries @ block.T
        index = np.broadcast_to(np.arange(start, start + len(block)), found.shape)
        rows, scores = _first(
            np.concatenate([rows, index], axis=1), np.concatenate([scores, found], axis=1), top_k
        )
    return rows, scores


def _first(rows, scores, top_k):
    """The `top_k` largest scores of each query, in order, and their rows."""
    if scores.shape[1] > top_k:
        # All scores that equal the last one are kept: otherwise chance would decide between them.
        last = np.partition(scores, -top_k, axis=1)[:, -top_k, np.newaxis]
        width = int((scores >= last).sum(axis=1).max())
        kept = np.argsort(scores < last, axis=1, kind="stable")[:, :width]
        rows, scores = (np.take_along_axis(x, kept, axis=1) for x in (rows, scores))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)

"""Token embeddings from co-occurrence counts, as initial weights for pretraining.

A Transformer spends its first thousands of steps on learning which tokens are similar. Counts of
co-occurring tokens show this after minutes.
"""

import keras
import numpy as np
from sklearn.utils.extmath import randomized_svd

LARGEST_VOCABULARY = 20_000  # Counts of all pairs are kept in memory: 1.6 GB.
CHUNK = 4_000_000


def initialize_embeddings(variable, records, deviation=0.06):
    """Assigns co-occurrence embeddings. Tokens that do not occur in the records keep their weights.

    Args:
        variable: The embeddings of a model.
        records: `TokenRecords`.
        deviation: Float, the standard deviation of the assigned weights.
    """
    weights = keras.ops.convert_to_numpy(variable)
    vectors = deviation * cooccurrence_embeddings(records, weights.shape[1])
    occurs = np.linalg.norm(vectors, axis=1, keepdims=True) > 1e-4 * deviation
    variable.assign(np.where(occurs, vectors, weights))


def cooccurrence_embeddings(records, dim, num_tokens=40_000_000, window=5, smoothing=0.75):
    """Factorizes the positive pointwise mutual information of tokens within a window.

    Pairs count less the farther apart they are, from 1 for neighbors to 1 / window. Tokens that
    do not occur get zeros.

    Args:
        records: `TokenRecords`.
        dim: Int, width of the embeddings.
        num_tokens: Int, the minimum number of tokens to count (in whole shards).
        window: Int, the largest distance of a pair.
        smoothing: Float, exponent of the counts of the second token of a pair.

    Returns:
        Float32 array `(records.vocabulary_size, dim)`, with a standard deviation of 1.

    Raises:
        ValueError: If the vocabulary is too large to count all pairs, or smaller than `dim`.

    Source: Levy and Goldberg 2014, "Neural word embedding as implicit matrix factorization"; Levy,
    Goldberg and Dagan 2015 for the smoothing.
    """
    size = records.vocabulary_size
    if not dim < size <= LARGEST_VOCABULARY:
        raise ValueError(
            f"the vocabulary must have more than {dim} and at most {LARGEST_VOCABULARY} pieces to "
            f"count pairs of tokens. Received: {size}"
        )
    counts = count_pairs(records, num_tokens, window)
    counts += counts.T
    totals = counts.sum(axis=1)
    context = totals**smoothing / (totals**smoothing).sum()
    # Pairs that occur never, or less often than by chance, have the information 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(counts / (totals[:, None] * context))
    information = np.maximum(np.nan_to_num(information, neginf=0.0), 0.0)
    left, values, _ = randomized_svd(information, dim, n_iter=3, random_state=0)
    embeddings = left * np.sqrt(values)
    return (embeddings / embeddings.std()).astype("float32")


def count_pairs(records, num_tokens, window):
    """Returns weighted counts `(size, size)` of a token and one that follows it."""
    size = records.vocabulary_size
    counts, num_read = np.zeros(size * size, "float32"), 0
    for index in range(len(records.shards)):
        tokens = np.asarray(records.read(index).tokens, "int64")
        for start in range(0, len(tokens), CHUNK):
            chunk = tokens[start : start + CHUNK]
            for distance in range(1, window + 1):
                pairs = chunk[:-distance] * size + chunk[distance:]
                found = np.bincount(pairs, minlength=size * size).astype("float32")
                counts += found * np.float32((window + 1 - distance) / window)
        num_read += len(tokens)
        if num_read >= num_tokens:
            break
    return counts.reshape(size, size)

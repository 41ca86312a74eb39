"""Relative attention written as slowly and obviously as possible, in float64 loops."""

import numpy as np


def relative_attention(
    weights, query, context, distance_vector, query_positions, memory_length, segments=None,
    mask=None,
):  # fmt: skip
    """One example: query (T, H), context (S, H) -> (T, H).

    `distance_vector(distance, row)` gives the sinusoid; `query_positions[t]` is the place in the
    content of query row t; `segments[t, s]` is True for different segments.
    """
    w = {name: np.asarray(value, "float64") for name, value in weights.items()}
    num_heads, head_dim = w["content_bias"].shape
    output = np.zeros((len(query), query.shape[-1]))
    for t, row in enumerate(query.astype("float64")):
        for n in range(num_heads):
            q = row @ w["query"][:, n]
            scores = []
            for s, key_row in enumerate(context.astype("float64")):
                distance = memory_length + query_positions[t] - s
                position_key = distance_vector(distance) @ w["position"][:, n]
                score = (q + w["content_bias"][n]) @ (key_row @ w["key"][:, n])
                score += (q + w["position_bias"][n]) @ position_key
                if segments is not None:
                    embedding = w["segment_embeddings"][int(segments[t, s]), n]
                    score += (q + w["segment_bias"][n]) @ embedding
                scores.append(score / np.sqrt(head_dim))
            scores = np.array(scores)
            if mask is not None:
                scores = np.where(mask[t], scores, -1e30)
            probabilities = np.exp(scores - scores.max())
            probabilities /= probabilities.sum()
            values = np.stack([v @ w["value"][:, n] for v in context.astype("float64")])
            output[t] += probabilities @ values @ w["output"][n]
    return output


def sinusoid(hidden_dim, clamp_length=None, backward=False):
    """A function from a distance to its (hidden_dim,) vector."""

    def vector(distance):
        distance = -distance if backward else distance
        if clamp_length is not None:
            distance = min(max(distance, -clamp_length), clamp_length)
        angles = [distance / 10000 ** (k / hidden_dim) for k in range(0, hidden_dim, 2)]
        return np.array([np.sin(a) for a in angles] + [np.cos(a) for a in angles])

    return vector

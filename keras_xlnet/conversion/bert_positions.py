"""Converts the effect of BERT's absolute positions to XLNet's relative positions.

To the score of token `i` for token `j`, XLNet adds a function of the distance `i - j`, and another
number if they are in different segments. In each layer and head, these are fitted to the mean
difference between BERT's scores with and without positions, over many texts,

    f(d)  = mean of s[i, j] - s'[i, j] over i - j = d
    g     = the same for j = <cls>, where f is subtracted: <cls> is in a segment of its own

Adding a constant to a row does not change its softmax, so the mean of each row is subtracted first.
XLNet has `f` as a sum of sinusoids, `f(d) = v · W R(d)`. So `W R(d)` is fitted to `f` by least
squares.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from keras_xlnet.conversion.bert_encoder import BertEncoder

# The functions are constant from this distance on, where BERT's positions have no more effect.
_FARTHEST = 24
# The fitted sinusoids have to follow the functions up to this distance. Near distances count more.
_FITTED = 96
_WEIGHT_OF_NEAR = 3.0
_RIDGE = 1e-2
# A smaller function is rounding.
_SMALLEST = 1e-9


@dataclasses.dataclass(frozen=True)
class PositionBiases:
    """The relative terms of all layers of an XLNet.

    Args:
        weights: Array `(layers, hidden_dim, heads)`: `R(d) @ weights` is the score of distance
            `d`, before XLNet divides it by `sqrt(head_dim)`.
        of_cls: Array `(layers, heads)`: the score between tokens of different segments.
        residuals: Tuple of floats, for each layer the difference between the sinusoids and the
            measured function of the distance: root mean square, relative to the function's.
    """

    weights: np.ndarray
    of_cls: np.ndarray
    residuals: tuple[float, ...]


def fit_positions(
    encoder: BertEncoder, texts: Sequence[np.ndarray], cls_id: int, sep_id: int
) -> tuple[PositionBiases, list[np.ndarray]]:
    """Fits the relative terms of all layers, one layer after the other.

    Args:
        encoder: A `BertEncoder`.
        texts: Int arrays `(length,)`, the ids of the tokens of texts, without `[CLS]` and `[SEP]`.
        cls_id, sep_id: Ints, the ids of `[CLS]` and `[SEP]`.

    Returns:
        A tuple of `PositionBiases`, and of a list of the states `(length + 2, hidden_dim)` of
        BERT's last layer.
    """
    absolute = [_bert_states(encoder, text, cls_id, sep_id) for text in texts]
    relative = [_xlnet_states(encoder, text, cls_id, sep_id) for text in texts]
    weights, of_cls, residuals = [], [], []
    for layer in range(encoder.num_layers):
        absolute, missing, relative_scores = _advance(encoder, layer, absolute, relative)
        function = _mean_by_distance(missing)
        fitted = _fit_sinusoids(function, encoder.hidden_dim)
        weights.append(fitted)
        residuals.append(_residual(function, fitted))
        of_cls.append(_mean_of_cls(missing, fitted))
        relative = [
            encoder.apply(
                states, layer, scores + relative_scores_of(fitted, of_cls[-1], len(states))
            )
            for states, scores in zip(relative, relative_scores, strict=True)
        ]
    return PositionBiases(np.array(weights), np.array(of_cls), tuple(residuals)), absolute


def _bert_states(encoder, text, cls_id, sep_id):
    """The input of BERT, in its order: `[CLS]`, text, `[SEP]`."""
    token_ids = np.concatenate([[cls_id], text, [sep_id]])
    return encoder.embed(token_ids, np.arange(len(token_ids)))


def _xlnet_states(encoder, text, cls_id, sep_id):
    """The input without positions, in the order of an XLNet: text, `<sep>`, `<cls>`."""
    cls = encoder.embed(np.array([cls_id]), np.array([0]))
    return np.concatenate([encoder.embed(np.append(text, sep_id)), cls])


def _advance(encoder, layer, absolute, relative):
    """BERT's next states, the effect of positions on the scores, and the scores without them."""
    next_absolute, missing, relative_scores = [], [], []
    for full, states in zip(absolute, relative, strict=True):
        scores, other = encoder.scores(full, layer), encoder.scores(states, layer)
        next_absolute.append(encoder.apply(full, layer, scores))
        # In the order of an XLNet.
        lacking = np.roll(scores, -1, axis=(1, 2)) - other
        missing.append(lacking - lacking.mean(axis=-1, keepdims=True))
        relative_scores.append(other)
    return next_absolute, missing, relative_scores


def _distances(length):
    place = np.arange(length)
    return place[:, np.newaxis] - place


def _mean_by_distance(missing):
    """The mean for distances from -_FARTHEST to _FARTHEST, `(distances, heads)`."""
    size = 2 * _FARTHEST + 1
    total, count = np.zeros((len(missing[0]), size)), np.zeros(size)
    for scores in missing:
        length = scores.shape[-1] - 1  # Without <cls>.
        column = (np.clip(_distances(length), -_FARTHEST, _FARTHEST) + _FARTHEST).ravel()
        count += np.bincount(column, minlength=size)
        for head, values in enumerate(scores[:, :length, :length]):
            total[head] += np.bincount(column, values.ravel(), size)
    return (total / np.maximum(count, 1)).T


def _mean_of_cls(missing, fitted):
    """The mean effect of positions on the scores for <cls>, minus the function of distance."""
    total, count = 0.0, 0
    for scores in missing:
        length = scores.shape[-1] - 1
        by_distance = sinusoids(np.arange(-length, 0), len(fitted)) @ fitted
        total += (scores[:, :length, length] - by_distance.T).sum(axis=1)
        count += length
    return total / count


def _fit_sinusoids(function, hidden_dim):
    """The weights `(hidden_dim, heads)` of the sinusoids that follow a function of the distance."""
    distances = np.arange(-_FITTED, _FITTED + 1)
    targets = function[np.clip(distances, -_FARTHEST, _FARTHEST) + _FARTHEST]
    weight = np.where(np.abs(distances) <= _FARTHEST, _WEIGHT_OF_NEAR, 1.0)[:, np.newaxis]
    rows = weight * sinusoids(distances, hidden_dim)
    gram = rows.T @ rows + _RIDGE * np.eye(hidden_dim)
    return np.linalg.solve(gram, rows.T @ (weight * targets))


def _residual(function, fitted):
    """The relative difference between sinusoids and function, up to a constant."""
    found = sinusoids(np.arange(-_FARTHEST, _FARTHEST + 1), len(fitted)) @ fitted
    difference = found - function
    sizes = [np.sqrt(((x - x.mean(axis=0)) ** 2).mean()) for x in (difference, function)]
    return float(sizes[0] / sizes[1]) if sizes[1] > _SMALLEST else 0.0


def relative_scores_of(fitted: np.ndarray, of_cls: np.ndarray, length: int) -> np.ndarray:
    """Returns the contribution of XLNet's relative terms to the scores, `(heads, length, length)`.

    Args:
        fitted: Array `(hidden_dim, heads)`.
        of_cls: Array `(heads,)`.
        length: Int, the number of tokens. The last one is `<cls>`.
    """
    table = sinusoids(np.arange(1 - length, length), len(fitted)) @ fitted
    scores = table[_distances(length) + length - 1].transpose(2, 0, 1)
    is_cls = np.arange(length) == length - 1
    different = is_cls[:, np.newaxis] != is_cls
    return scores + of_cls[:, np.newaxis, np.newaxis] * different


def sinusoids(distances: np.ndarray, hidden_dim: int) -> np.ndarray:
    """Returns the rows of the position table, as `RelativePositionEncoding` has them, in float64.

    Args:
        distances: Int array `(number,)`.
        hidden_dim: Even int.
    """
    frequencies = 1 / 10000 ** (np.arange(0, hidden_dim, 2) / hidden_dim)
    angles = distances[:, np.newaxis] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)

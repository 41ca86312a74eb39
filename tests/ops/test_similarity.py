"""Similarity of two texts: a loop over tokens, and what must not change it."""

import numpy as np
import pytest
from keras import ops

from keras_xlnet.ops import pair_similarity


def loop(sequence, token_weights, first_mask, second_mask):
    """The formula for one row, token by token."""
    sides = [np.flatnonzero(mask) for mask in (first_mask, second_mask)]
    weights = []
    for side in sides:
        exponentials = {i: np.exp(token_weights[i]) for i in side}
        weights.append({i: e / sum(exponentials.values()) for i, e in exponentials.items()})

    def cosine(x, y):
        return x @ y / np.sqrt((x @ x + 1e-6) * (y @ y + 1e-6))

    coverages = [
        sum(
            weights[k][i] * max(cosine(sequence[i], sequence[j]) for j in sides[1 - k])
            for i in sides[k]
        )
        for k in (0, 1)
    ]
    means = [sum(weights[k][i] * sequence[i] for i in sides[k]) for k in (0, 1)]
    return np.array([*coverages, min(coverages), cosine(*means)])


@pytest.fixture
def pair(rng):
    sequence = rng.normal(size=(3, 9, 6)).astype("float32")
    segments = rng.permuted(np.tile([0, 0, 0, 0, 1, 1, 1, 2, 2], (3, 1)), axis=1)
    return sequence, rng.normal(size=(3, 9)).astype("float32"), segments == 0, segments == 1


def compare(*arrays):
    return [np.asarray(x) for x in pair_similarity(*map(ops.convert_to_tensor, arrays))]


def test_equals_a_loop_over_the_tokens(pair):
    found, *_ = compare(*pair)
    expected = np.stack([loop(*row) for row in zip(*pair, strict=True)])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_changed_sides_change_the_coverages_only(pair):
    sequence, weights, first, second = pair
    found, one, other = compare(sequence, weights, first, second)
    changed, *means = compare(sequence, weights, second, first)
    np.testing.assert_allclose(changed, found[:, [1, 0, 2, 3]], atol=1e-6)
    np.testing.assert_allclose(means, [other, one], atol=1e-6)


def test_what_is_in_neither_text_changes_nothing(pair, rng):
    sequence, weights, first, second = pair
    other = sequence.copy()
    other[~(first | second)] = rng.normal(size=6) * 50
    for a, b in zip(compare(*pair), compare(other, weights, first, second), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_equal_texts_are_covered_whole(rng):
    text = rng.normal(size=(1, 4, 6)).astype("float32")
    masks = [np.repeat([[True, False]], 4, axis=1), np.repeat([[False, True]], 4, axis=1)]
    sequence = np.concatenate([text, text[:, ::-1]], axis=1)
    weights = np.zeros((1, 8), "float32")
    found, *_ = compare(sequence, weights, *masks)
    np.testing.assert_allclose(found, 1, atol=1e-5)


def test_a_text_without_tokens_gives_finite_numbers(pair):
    sequence, weights, first, _ = pair
    found, _, mean = compare(sequence, weights, first, np.zeros_like(first))
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(mean, 0)

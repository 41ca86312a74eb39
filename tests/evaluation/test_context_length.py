"""The relative effective context length, against the definition written out."""

import math

import numpy as np
import pytest

from keras_xlnet.evaluation import effective_context_lengths

LENGTHS = (8, 16, 24, 32)


def slow(losses, r, threshold):
    """Appendix C of the paper, token by token."""
    models, num_tokens = list(losses), len(next(iter(losses.values()))[LENGTHS[0]])

    def f(model, c, longer):
        baseline = [min(losses[m][c][t] for m in models) for t in range(num_tokens)]
        hardest = sorted(range(num_tokens), key=lambda t: -baseline[t])
        hardest = hardest[: max(1, round(r * num_tokens))]
        return sum(min(baseline[t], losses[model][longer][t]) for t in hardest) / len(hardest)

    found = {}
    for model in models:
        c = LENGTHS[0]
        while c < LENGTHS[-1]:
            before, after = math.exp(f(model, c, c)), math.exp(f(model, c, c + 8))
            if (before - after) / before < threshold:
                break
            c += 8
        found[model] = c
    return found


@pytest.mark.parametrize("r", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_definition(r, seed):
    rng = np.random.default_rng(seed)
    losses = {}
    for model in ("a", "b", "c"):
        start, gains = rng.gamma(2, 2, 40), rng.random(3) * 0.3
        by_length = {}
        for length, gain in zip(LENGTHS, [0, *np.cumsum(gains)], strict=True):
            by_length[length] = start - gain * rng.random(40)
        losses[model] = by_length
    found = effective_context_lengths(losses, r=r, threshold=0.03)
    assert found == slow(losses, r, 0.03)
    assert set(found.values()) <= set(LENGTHS)


def test_a_better_model_of_the_group_raises_the_bar():
    tokens = np.linspace(3, 5, 50)
    slow_learner = {c: tokens - 0.02 * i for i, c in enumerate(LENGTHS)}
    assert effective_context_lengths({"one": slow_learner})["one"] == 32
    better = {c: tokens - 2 for c in LENGTHS}
    found = effective_context_lengths({"one": slow_learner, "better": better})
    assert found == {"one": 8, "better": 8}


@pytest.mark.parametrize(
    "losses, arguments, message",
    [
        ({}, {}, "at least one model"),
        ({"a": {1: [1.0]}, "b": {2: [1.0]}}, {}, "the same context lengths"),
        ({"a": {}}, {}, "the same context lengths"),
        ({"a": {1: [1.0], 2: [1.0, 2.0]}}, {}, "the same tokens"),
        ({"a": {1: []}}, {}, "the same tokens"),
        ({"a": {1: [1.0]}}, {"r": 0}, "`r` must be above 0"),
        ({"a": {1: [1.0]}}, {"r": 1.5}, "`r` must be a number, from 0 to 1"),
    ],
)
def test_bad_arguments(losses, arguments, message):
    with pytest.raises(ValueError, match=message):
        effective_context_lengths(losses, **arguments)

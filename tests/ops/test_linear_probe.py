"""The linear models on frozen features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from keras_xlnet.ops.linear_probe import fit_linear


def penalized_loss(flat, features, targets, kind, weights, l2):
    """The formula of the module, on the standardized features."""
    kernel, bias = (
        flat[: -targets.shape[1]].reshape(features.shape[1], -1),
        flat[-targets.shape[1] :],
    )
    logits = features @ kernel + bias
    if kind == "softmax":
        shifted = logits - logits.max(axis=1, keepdims=True)
        losses = -(targets * (shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))).sum(1)
    elif kind == "sigmoid":
        losses = (np.logaddexp(0, logits) - targets * logits).sum(1)
    else:
        losses = ((logits - targets) ** 2).sum(1) / 2
    return np.average(losses, weights=weights) + l2 / 2 * (kernel**2).sum()


def problem(kind, rng, rows=30, dim=4, units=3):
    features = rng.normal(size=(rows, dim)) * 3 + 5
    logits = features @ rng.normal(size=(dim, units)) + rng.normal(size=(rows, units))
    if kind == "softmax":
        return features, np.eye(units)[logits.argmax(axis=1)]
    return features, (logits > logits.mean(axis=0)).astype(float) if kind == "sigmoid" else logits


@pytest.mark.parametrize("l2", [1e-4, 0.05, 0.3])
@pytest.mark.parametrize("kind", ["softmax", "sigmoid", "linear"])
def test_finds_what_a_general_minimizer_finds(kind, l2, rng):
    features, targets = problem(kind, rng)
    weights = rng.uniform(0.2, 3.0, len(features))
    kernel, bias = fit_linear(features, targets, kind, weights, l2)
    mean = np.average(features, axis=0, weights=weights)
    scale = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=weights).mean())
    x = (features - mean) / scale
    start = np.zeros((features.shape[1] + 1) * targets.shape[1])
    found = minimize(penalized_loss, start, (x, targets, kind, weights, l2), tol=1e-10).x
    expected = x @ found[: -targets.shape[1]].reshape(kernel.shape) + found[-targets.shape[1] :]
    logits = features @ kernel + bias
    if kind == "softmax":  # The same number can be added to all logits of a row.
        logits, expected = (z - z.mean(axis=1, keepdims=True) for z in (logits, expected))
    np.testing.assert_allclose(logits, expected, atol=2e-3)


@settings(max_examples=20)
@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100), seed=st.integers(0, 99))
def test_units_of_the_features_do_not_matter(scale, shift, seed):
    features, targets = problem("softmax", np.random.default_rng(seed))
    kernel, bias = fit_linear(features, targets, "softmax")
    moved = (features + shift) * scale
    other, other_bias = fit_linear(moved, targets, "softmax")
    np.testing.assert_allclose(moved @ other + other_bias, features @ kernel + bias, atol=1e-4)


def test_rows_of_weight_0_do_not_count(rng):
    features, targets = problem("softmax", rng)
    weights = np.r_[np.ones(20), np.zeros(10)]
    targets[20:] = targets[20:][:, ::-1]
    found = fit_linear(features, targets, "softmax", weights)
    for a, b in zip(found, fit_linear(features[:20], targets[:20], "softmax"), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 1e-5])
def test_equal_features_give_the_shares_of_the_classes(noise, rng):
    targets = np.eye(2)[[0, 0, 0, 1]]
    features = 1 + noise * rng.normal(size=(4, 3))
    kernel, bias = fit_linear(features, targets, "softmax")
    np.testing.assert_allclose(kernel, 0, atol=max(1e-6, 10 * noise))
    np.testing.assert_allclose(np.exp(bias[0] - bias[1]), 3, rtol=1e-3)


def test_steps_that_do_not_suffice_are_said(rng):
    features, targets = problem("softmax", rng)
    with pytest.warns(UserWarning, match="not found in 5000 steps"):
        fit_linear(features, targets, "softmax", l2=1e-9)

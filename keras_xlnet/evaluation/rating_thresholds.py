"""Thresholds between ratings, which make ratings of predicted numbers."""

from typing import Any

import numpy as np


def fit_rating_thresholds(values: Any, ratings: Any) -> np.ndarray:
    """Returns the thresholds between ratings that have the best quadratic weighted kappa.

    A regressor learns the mean of uncertain ratings, so the numbers that it predicts are closer
    together than the ratings. Thresholds that are learned from them are better than rounding. Fit
    them to predictions for texts that the model was neither trained on nor is tested on.

    With `p` the number of thresholds that a value reaches and `r` the rating, above the lowest one,

        kappa = 1 - sum (r - p)^2 / (sum r^2 + sum p^2 - 2 sum r sum p / n).

    Both sums are sums over thresholds, so for a given ratio of the two the best place of each
    threshold can be found by itself. The best ratio follows by Dinkelbach's method, exactly.

    Args:
        values: Predictions `(texts,)` or `(texts, 1)`.
        ratings: The ratings of the texts, whole numbers.

    Returns:
        Float array in ascending order, with a threshold below each rating but the lowest one; minus
        or plus infinity if a rating is best left out. `ratings.min() + np.digitize(values,
        thresholds)` are the ratings of other values.

    Raises:
        ValueError: If the numbers of values and ratings differ, one is not finite, a rating is not
            a whole number, or all ratings are the same.

    Example:

    >>> values = [2.6, 2.9, 3.1, 3.2, 3.6, 3.9]
    >>> thresholds = keras_xlnet.evaluation.fit_rating_thresholds(values, [1, 2, 3, 3, 4, 5])
    >>> (1 + np.digitize(values, thresholds)).tolist()
    [1, 2, 3, 3, 4, 5]

    Source: Cohen 1968, "Weighted kappa"; Dinkelbach 1967, "On nonlinear fractional programming".
    """
    values, ratings = (np.asarray(x, "float64").reshape(-1) for x in (values, ratings))
    if len(values) != len(ratings) or not np.isfinite([values, ratings]).all():
        raise ValueError(
            "`values` and `ratings` must be finite numbers, equally many. Received: "
            f"{len(values)} values, {len(ratings)} ratings"
        )
    if (ratings != np.floor(ratings)).any() or len(np.unique(ratings)) < 2:
        raise ValueError(
            "`ratings` must be whole numbers, at least two different ones. Received: "
            f"{np.unique(ratings)[:10].tolist()}"
        )
    order = np.argsort(values)
    values, ratings = values[order], ratings[order] - ratings.min()
    steps = 2 * np.arange(1, int(ratings.max()) + 1)[:, None] - 1  # p^2 is the sum of the first p.
    # A threshold is between two different values, or outside of all of them.
    cuts = np.flatnonzero(np.diff(values, prepend=-np.inf, append=np.inf))
    above = len(values) - cuts
    ratings_above = ratings.sum() - np.append(0, np.cumsum(ratings))[cuts]
    errors = steps * above - 2 * ratings_above
    by_chance = (steps - 2 * ratings.mean()) * above
    squares, ratio, best = (ratings**2).sum(), np.inf, np.zeros((len(steps), 1), int)
    new_ratio = 1.0  # If all values get the same rating.
    while new_ratio < ratio:
        ratio = new_ratio
        best = (errors - ratio * by_chance).argmin(axis=1)[:, None]
        error, chance = (
            squares + np.take_along_axis(x, best, axis=1).sum() for x in (errors, by_chance)
        )
        new_ratio = error / chance if chance > 0 else ratio
    padded = np.concatenate([[-np.inf], values, [np.inf]])
    places = cuts[best[:, 0]]
    return (padded[places] + padded[places + 1]) / 2

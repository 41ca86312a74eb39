"""The loss by the place in a segment."""

import numpy as np
import pytest

from keras_xlnet.evaluation import losses_by_place


def test_mean_of_each_column_of_whole_segments():
    log_probs = np.random.default_rng(0).normal(size=12).astype("float32")
    expected = -log_probs.reshape(3, 4).mean(axis=0)
    np.testing.assert_allclose(losses_by_place(log_probs, 4), expected, rtol=1e-6)


def test_an_incomplete_segment_counts_where_it_has_tokens():
    assert losses_by_place(-np.array([1.0, 2.0, 3.0, 5.0]), 3).tolist() == [3.0, 2.0, 3.0]


def test_the_places_of_a_segment_weigh_the_same_as_its_tokens():
    log_probs = np.random.default_rng(1).normal(size=40)
    assert losses_by_place(log_probs, 8).mean() == pytest.approx(-log_probs.mean())


@pytest.mark.parametrize(
    "log_probs, length, message",
    [
        (np.zeros(3), 4, "at least `segment_length=4` numbers"),
        (np.zeros((2, 4)), 4, "one row"),
        (np.zeros(3), 0, "`segment_length`"),
    ],
)
def test_errors(log_probs, length, message):
    with pytest.raises(ValueError, match=message):
        losses_by_place(log_probs, length)

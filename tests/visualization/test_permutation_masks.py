import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from keras_xlnet.visualization import plot_permutation_mask

MASK = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], "bool")


def image(axes):
    return np.asarray(axes.images[0].get_array())


def test_plots_both_streams():
    content, query = plot_permutation_mask(MASK, np.array([0, 1]), ["a", "b", "c"])
    np.testing.assert_array_equal(image(content), [[2, 1, 1], [0, 2, 1], [0, 0, 2]])
    np.testing.assert_array_equal(image(query), [[0, 1, 1], [0, 0, 1]])
    labels = [label.get_text() for label in query.get_yticklabels()]
    assert labels == ["a", "b"]
    colors = [label.get_color() for label in content.get_xticklabels()]
    assert colors[0] == colors[1] != colors[2]


@pytest.mark.parametrize(
    "mask, targets, tokens, message",
    [
        (MASK[None], [0], None, r"must have shape \(length, length\).*\(1, 3, 3\)"),
        (MASK, [[0]], None, r"must have shape \(num_predictions,\)"),
        (MASK, [0], ["a"], "must be 3 strings. Received: 1"),
    ],
)
def test_wrong_shapes(mask, targets, tokens, message):
    with pytest.raises(ValueError, match=message):
        plot_permutation_mask(mask, np.array(targets), tokens)

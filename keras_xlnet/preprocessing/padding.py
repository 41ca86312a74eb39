"""Which positions of a padded batch are needed."""

import numpy as np

from keras_xlnet.preprocessing.token_lists import rounded


def needed_positions(padding_mask: np.ndarray) -> slice:
    """Returns the positions of the longest text, rounded up so that there are few shapes.

    Args:
        padding_mask: Bool array `(..., length)`, `True` for real tokens. All texts are padded on
            the same side.
    """
    width = padding_mask.shape[-1]
    longest = max(int(padding_mask.sum(axis=-1).max()), 1)
    length = min(rounded(longest), width)
    # A text without padding is not cut on either side.
    is_left = padding_mask[..., -1].any()
    return slice(width - length, width) if is_left else slice(0, length)

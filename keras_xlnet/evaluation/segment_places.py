"""The loss of a language model by the position of a token in its segment."""

import numpy as np

from keras_xlnet.arguments import check_positive_int


def losses_by_place(log_probs: np.ndarray, segment_length: int) -> np.ndarray:
    """Computes the mean loss at each position of the segments in which a text was read.

    Without memory, the first tokens of a segment are predicted from few tokens and have a larger
    loss (context fragmentation). With memory, the loss depends little on the position.

    Args:
        log_probs: Float array `(num_tokens,)`, in nats, as returned by `corpus_log_probs`. The
            first one is at the start of a segment.
        segment_length: Int, the length of the segments.

    Returns:
        Float64 array `(segment_length,)`, in nats. Position `i` is predicted from `i + 1` tokens of
        its segment. The last segment may be incomplete: the mean of a position is over the segments
        that contain it.

    Raises:
        ValueError: If an argument is not as above, or there is no complete segment.

    Example:

    >>> log_probs = np.array([-3.0, -1.0, -2.0, -1.5, -2.5])
    >>> keras_xlnet.evaluation.losses_by_place(log_probs, segment_length=2)
    array([2.5 , 1.25])

    Source: Dai et al. 2019 (Transformer-XL), section 3.1.
    """
    check_positive_int("segment_length", segment_length)
    losses = -np.asarray(log_probs, "float64")
    if losses.ndim != 1 or len(losses) < segment_length:
        raise ValueError(
            f"`log_probs` must be one row of at least `segment_length={segment_length}` numbers. "
            f"Received: shape {losses.shape}"
        )
    places = np.arange(len(losses)) % segment_length
    return np.bincount(places, losses) / np.bincount(places)

"""Splits texts into pieces at random, so that a model sees other pieces in every epoch."""

from __future__ import annotations

import numbers

from keras_xlnet.compat.lazy_modules import tensorflow_text, tf


def sample_pieces(proto: bytes, texts: tf.Tensor, alpha: float) -> tf.RaggedTensor:
    """Returns ids of splits that are drawn with a probability in proportion to P(split)^alpha.

    Args:
        proto: Bytes of a SentencePiece unigram model.
        texts: String tensor `(batch,)`, cleaned.
        alpha: Float above 0. The smaller, the more even the probabilities of the splits.

    Returns:
        An int32 `tf.RaggedTensor` `(batch, None)`.

    Raises:
        ValueError: If `alpha` is not as above.

    Source: Kudo 2018, "Subword Regularization", section 3.2, over all splits (`nbest_size=-1`).
    """
    is_number = isinstance(alpha, numbers.Real) and not isinstance(alpha, bool)
    if not is_number or not alpha > 0:
        raise ValueError(
            f"`sampling_alpha` must be a number above 0. Received: sampling_alpha={alpha!r}"
        )
    # Made in each call: `keras.utils.set_random_seed` deletes the resource of one that is kept.
    pieces = tensorflow_text.SentencepieceTokenizer(proto, nbest_size=-1, alpha=float(alpha))
    return pieces.tokenize(texts)

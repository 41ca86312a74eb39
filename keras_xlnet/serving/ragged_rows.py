"""Ragged rows of tokens or characters in a TensorFlow graph."""

import tensorflow as tf

from keras_xlnet.tokenizers.normalization import valid_utf8


def padded_right(token_ids: tf.RaggedTensor) -> dict[str, tf.Tensor]:
    """Returns `token_ids` and `padding_mask` of rows of tokens, with padding on the right."""
    lengths, width = _lengths(token_ids)
    padded = token_ids.to_tensor(shape=tf.stack([-1, width]))
    return {"token_ids": padded, "padding_mask": tf.sequence_mask(lengths, width)}


def padded_left(token_ids: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns rows of tokens with padding on the left, and the amount of padding per row."""
    lengths, width = _lengths(token_ids)
    num_padding = width - lengths
    place = tf.range(width) - num_padding[:, tf.newaxis]
    padded = token_ids.to_tensor(shape=tf.stack([-1, width]))
    found = tf.gather(padded, tf.maximum(place, 0), batch_dims=1)
    return tf.where(place >= 0, found, 0), num_padding


def with_batch_size(outputs: dict[str, tf.Tensor], batch_size: int | None) -> dict[str, tf.Tensor]:
    """Restores the static batch size of outputs, which ragged ops lose."""
    return {
        name: tf.ensure_shape(value, (batch_size, *value.shape[1:]))
        for name, value in outputs.items()
    }


def decode_characters(texts: tf.Tensor) -> tf.RaggedTensor:
    """Returns the code points of texts, int32 `(batch, None)`. Invalid bytes are U+FFFD."""
    codes = tf.strings.unicode_decode(valid_utf8(texts), "UTF-8")
    return codes.with_row_splits_dtype(tf.int64)


def parts_of_texts(
    codes: tf.RaggedTensor, row: tf.Tensor, start: tf.Tensor, end: tf.Tensor
) -> tf.Tensor:
    """Returns parts of texts, strings `(parts,)`, without copying the text for each part.

    Args:
        codes: What `decode_characters` returns.
        row: Int64 `(parts,)`, the text of each part.
        start, end: Int64 `(parts,)`, its first character and the one after its last.
    """
    begin = tf.gather(codes.row_starts(), row)
    place = tf.ragged.range(begin + start, begin + end)
    return tf.strings.unicode_encode(
        place.with_values(tf.gather(codes.values, place.values)), "UTF-8"
    )


def _lengths(token_ids):
    """The length of each row, and the longest: at least 1, so that rows without tokens are read."""
    lengths = tf.cast(token_ids.row_lengths(), tf.int32)
    return lengths, tf.reduce_max(tf.concat([lengths, [1]], axis=0))

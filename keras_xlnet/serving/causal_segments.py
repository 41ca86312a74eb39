"""A causal language model that reads segments in a TensorFlow graph."""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_xlnet.models import TransformerXLLanguageModel


class SegmentMemory(NamedTuple):
    """The memory of the previous segments.

    Args:
        content: `(batch, num_layers, rows, hidden_dim)`, the newest rows that entered each layer.
            The last row belongs to the last token that was read.
        mask: `(batch, rows)` bool, `True` for rows that may be attended to.
        last_token: `(batch,)` int32, the token that is read next. -1 for none.
    """

    content: tf.Tensor
    mask: tf.Tensor
    last_token: tf.Tensor


class CausalReader:
    """Computes log-probabilities of tokens, segment by segment.

    The last token of a segment is read with the next segment, whose first token it predicts:
    all tokens of a text are predicted, however it is divided. Rows of different lengths have no
    gaps in memory, so no padding lies between two tokens.

    Args:
        model: A `TransformerXLLanguageModel` that is not stateful. Its `reuse_length` is not used:
            segments do not overlap.
        start_token_id: Int, a token before each text. `None`: the first token is given.
        segment_length: Int. Longer segments are divided if the model has memory.
    """

    def __init__(
        self,
        model: TransformerXLLanguageModel,
        start_token_id: int | None = None,
        segment_length: int = 512,
    ) -> None:
        self.model = model
        self.start_token_id = -1 if start_token_id is None else start_token_id
        self.segment_length = segment_length

    @property
    def num_empty_rows(self) -> int:
        """Int, the number of rows of an empty memory."""
        model = self.model
        return (model.memory_length or 0) if model.attend_to_empty_memory else 0

    def empty_memory(self, batch_size: Any) -> SegmentMemory:
        """Returns the empty memory."""
        model, rows = self.model, self.num_empty_rows
        shape = (batch_size, model.num_layers, rows, model.hidden_dim)
        return SegmentMemory(
            tf.zeros(shape, model.compute_dtype),
            tf.ones((batch_size, rows), tf.bool),
            tf.fill((batch_size,), self.start_token_id),
        )

    def score(
        self, token_ids: tf.Tensor, padding_mask: tf.Tensor, memory: SegmentMemory
    ) -> tuple[tf.Tensor, tf.Tensor, SegmentMemory]:
        """Predicts the tokens of segments.

        Args:
            token_ids: `(batch, length)` int32, padded on the right.
            padding_mask: `(batch, length)` bool, `True` for real tokens.
            memory: The `SegmentMemory` of the previous segments.

        Returns:
            The log-probabilities of the tokens, `(batch, length)`, 0 for padding and for a first
            token that is given; which of them are scored, bool; and the memory for the next
            segments.
        """
        has_last = (memory.last_token >= 0)[:, tf.newaxis]
        follows = tf.concat([memory.last_token[:, tf.newaxis], token_ids], axis=1)
        sequence = tf.where(has_last, follows, tf.pad(token_ids, [(0, 0), (0, 1)]))
        lengths = tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1)
        num_read = lengths - 1 + tf.cast(has_last[:, 0], tf.int32)
        log_probs, memory = self._read(sequence[:, :-1], sequence[:, 1:], num_read, memory)
        given = tf.zeros_like(log_probs[:, :1])
        shifted = tf.concat([given, log_probs[:, :-1]], axis=1)
        is_scored = padding_mask & (has_last | (tf.range(tf.shape(token_ids)[1]) > 0))
        log_probs = tf.where(is_scored, tf.where(has_last, log_probs, shifted), 0.0)
        last = tf.gather(token_ids, tf.maximum(lengths - 1, 0), batch_dims=1)
        last = tf.where(lengths > 0, last, memory.last_token)
        return log_probs, is_scored, memory._replace(last_token=last)

    def _read(self, inputs, labels, num_read, memory):
        """The log-probabilities of labels `(batch, length)`, and the memory after `num_read`."""
        length = tf.shape(inputs)[1]
        step = tf.minimum(length, self.segment_length) if self.model.memory_length else length
        count = (length + step - 1) // step
        padding = [(0, 0), (0, count * step - length)]
        inputs, labels = tf.pad(inputs, padding), tf.pad(labels, padding)
        found = tf.TensorArray(tf.float32, count, infer_shape=False, element_shape=(None, None))

        def body(i, found, content, mask):
            part = slice(i * step, (i + 1) * step)
            log_probs, content, mask = self._read_segment(
                inputs[:, part], labels[:, part], num_read - i * step, content, mask
            )
            # `concat` joins along the first axis.
            return i + 1, found.write(i, tf.transpose(log_probs)), content, mask

        model, batch_size = self.model, inputs.shape[0]
        _, found, content, mask = tf.while_loop(
            lambda i, *_: i < count,
            body,
            (0, found, memory.content, memory.mask),
            shape_invariants=(
                tf.TensorShape(()),
                tf.TensorShape(None),
                tf.TensorShape((batch_size, model.num_layers, None, model.hidden_dim)),
                tf.TensorShape((batch_size, None)),
            ),
            parallel_iterations=1,
        )
        log_probs = tf.transpose(found.concat())[:, :length]
        return log_probs, SegmentMemory(content, mask, memory.last_token)

    def _read_segment(self, inputs, labels, num_read, content, mask):
        model = self.model
        length = tf.shape(inputs)[1]
        num_read = tf.clip_by_value(num_read, 0, length)[:, tf.newaxis]
        is_token = tf.range(length) < num_read
        arguments = {}
        if model.memory_length:
            arguments = {"read_memory": lambda layer, _: content[:, layer], "memory_mask": mask}
        hidden, layer_inputs = model.encode(
            model.token_embedding(inputs), padding_mask=is_token, **arguments
        )
        log_probs = model.label_log_probs(hidden, labels)
        if model.memory_length:
            rows = tf.concat([content, tf.stack(layer_inputs, axis=1)], axis=2)
            content, mask = self._newest(
                rows, tf.concat([mask, is_token], axis=1), length - num_read
            )
        return log_probs, content, mask

    def _newest(self, content, mask, num_padding):
        """The newest real rows. The last `num_padding` `(batch, 1)` rows are padding."""
        total = tf.shape(mask)[1]
        kept = tf.minimum(self.model.memory_length, total)
        index = total - num_padding - kept + tf.range(kept)
        is_token = index >= 0
        index = tf.maximum(index, 0)
        mask = tf.gather(mask, index, batch_dims=1) & is_token
        return tf.gather(content, index, axis=2, batch_dims=1), mask

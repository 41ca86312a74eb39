"""The memory of a model as strings, which a client keeps from one request to the next."""

import tensorflow as tf

from keras_xlnet.preset_files.adapter_weights import sha256_of_weights
from keras_xlnet.preset_files.weights import model_weights
from keras_xlnet.serving.causal_segments import CausalReader, SegmentMemory

# The version of the format below. Strings of other versions are refused.
_VERSION = 1
_NUM_DIGITS = 10
_MESSAGE = (
    "`memory` must be empty, or `memory_bytes` that this version of this model returned. Received "
    "a string that does not begin with the version and the checksum of the model"
)


class MemoryStrings:
    """Converts memory to strings and back, in a TensorFlow graph.

    A string has the version of its format and a checksum of the weights of the model, then the last
    token, then the rows of memory that may be attended to.

    Args:
        reader: The reader of a model with memory.
    """

    def __init__(self, reader: CausalReader) -> None:
        model = reader.model
        checksum = sha256_of_weights(model_weights(model))
        self._header = f"keras_xlnet memory {_VERSION} {checksum[:16]}\n"
        self._num_rows = model.memory_length
        self._row_spec = SegmentMemory(
            tf.TensorSpec(
                (model.num_layers, self._num_rows, model.hidden_dim), model.compute_dtype
            ),
            tf.TensorSpec((self._num_rows,), tf.bool),
            tf.TensorSpec((), tf.int32),
        )
        # An empty string stands for the empty memory.
        (self._empty,) = self.encode(reader.empty_memory(1)).numpy()

    def encode(self, memory: SegmentMemory) -> tf.Tensor:
        """Returns a string for each row, `(batch,)`."""
        return tf.map_fn(self._encode_row, memory, fn_output_signature=tf.TensorSpec((), tf.string))

    def decode(self, strings: tf.Tensor) -> SegmentMemory:
        """Returns the memory of strings `(batch,)`, with `memory_length` rows.

        Raises:
            tf.errors.InvalidArgumentError: If a string is not one of this model.
        """
        strings = tf.where(strings == "", self._empty, strings)
        is_ours = tf.strings.substr(strings, 0, len(self._header)) == self._header
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(is_ours), [_MESSAGE])]):
            values = _from(strings, len(self._header))
        return tf.map_fn(self._decode_row, values, fn_output_signature=self._row_spec)

    def _encode_row(self, memory):
        content = tf.boolean_mask(memory.content, memory.mask, axis=1)
        # -1 stands for no token.
        last_token = tf.strings.as_string(memory.last_token + 1, width=_NUM_DIGITS, fill="0")
        return tf.strings.join([self._header, last_token, tf.io.serialize_tensor(content)])

    def _decode_row(self, value):
        last_token = tf.strings.to_number(tf.strings.substr(value, 0, _NUM_DIGITS), tf.int32) - 1
        num_layers, _, hidden_dim = self._row_spec.content.shape
        content = tf.ensure_shape(
            tf.io.parse_tensor(_from(value, _NUM_DIGITS), self._row_spec.content.dtype),
            (num_layers, None, hidden_dim),
        )
        missing = self._num_rows - tf.shape(content)[1]
        content = tf.pad(content, [(0, 0), (missing, 0), (0, 0)])
        is_real = tf.range(self._num_rows) >= missing
        return SegmentMemory(
            tf.ensure_shape(content, self._row_spec.content.shape), is_real, last_token
        )


def _from(strings, place):
    """The bytes of strings from a position on."""
    return tf.strings.substr(strings, place, tf.int32.max)

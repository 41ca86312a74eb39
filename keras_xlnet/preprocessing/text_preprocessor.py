"""Packs a text or a pair of texts into the inputs of an XLNet task model."""

from __future__ import annotations

import types
from typing import Any

import keras

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.encoded import Encoded, check_length_of_pairs, encode_texts
from keras_xlnet.preprocessing.labels import Classes, check_number_of_rows
from keras_xlnet.preprocessing.packing import as_rows, pack_texts
from keras_xlnet.preprocessing.preprocessor import Preprocessor
from keras_xlnet.tokenizers.string_inputs import as_strings, check_string_dtype
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer
from keras_xlnet.types import Shape


class XLNetTextPreprocessor(Preprocessor):
    """Base class of the preprocessors of texts and pairs: tokenizing, truncating and packing.

    Args, call arguments and outputs: see `XLNetTextClassifierPreprocessor`.
    """

    takes_datasets = True

    def __init__(
        self,
        tokenizer: XLNetTokenizer,
        sequence_length: int = 512,
        padding_side: str = "left",
        padding_token_id: int = 0,
        truncation: str = "end",
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, sequence_length, padding_side, padding_token_id, **kwargs)
        if truncation not in ("end", "middle"):
            raise ValueError(
                f"`truncation` must be 'end' or 'middle'. Received: truncation={truncation!r}"
            )
        self.truncation = truncation
        # Functions by the number of texts, made at the first use. TensorFlow saves no such dict.
        self._compiled = types.SimpleNamespace(by_number={})

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "truncation": self.truncation}

    def call(self, inputs: Any, sampling_alpha: float | None = None) -> dict[str, tf.Tensor]:
        with tf.device("CPU:0"):
            text, pair = self._text_and_pair(inputs)
            text = _as_batch(text, "text")
            ids_a = self.tokenizer(_flat(text), sampling_alpha=sampling_alpha)
            if pair is None:
                outputs = self._pack_compiled(ids_a)
            else:
                pair = _as_batch(pair, "pair")
                _check_same_batch(text, pair)
                ids_b = self.tokenizer(_flat(pair), sampling_alpha=sampling_alpha)
                outputs = self._pack_compiled(ids_a, ids_b)
            if text.shape.rank == 0:
                return {name: value[0] for name, value in outputs.items()}
            for value in outputs.values():
                value.set_shape((text.shape[0], self.sequence_length))
            return outputs

    @classmethod
    def accepts(cls, other: type) -> bool:
        # The preprocessors of texts have the same arguments.
        return issubclass(other, XLNetTextPreprocessor)

    def encode(self, x: Any, shorten: bool = True) -> Encoded:
        """Converts texts, or pairs of texts, to arrays on the host, without TensorFlow.

        Args:
            x: List, array, column of a table or string tensor of texts. Pairs are a tuple of two
                of these, a list of rows `(text, pair)`, or a dict with the keys `text` and `pair`.
            shorten: Bool, whether the arrays are as long as the longest row needs, or
                `sequence_length`.

        Returns:
            `Encoded`, whose `features` are the features of the call as NumPy arrays.

        Raises:
            ValueError: If something is not a string, or the numbers of texts and pairs differ. The
                message names the row.
        """
        return encode_texts(x, self.tokenizer, self.layout, shorten)

    def encode_labels(self, y: Any, encoded: Encoded, classes: Classes | None = None) -> Any:
        y = self.check_labels(y, encoded.features, classes)
        check_number_of_rows(y, encoded.num_given)
        return y

    def compute_output_shape(self, input_shape: Any) -> dict[str, Shape]:
        inputs = keras.tree.map_shape_structure(
            lambda shape: keras.KerasTensor(shape, dtype="string"), input_shape
        )
        return {name: x.shape for name, x in self.compute_output_spec(inputs).items()}

    def compute_output_spec(
        self, inputs: Any, sampling_alpha: float | None = None
    ) -> dict[str, keras.KerasTensor]:
        text, pair = self._text_and_pair(inputs)
        for name, value in (("text", text), ("pair", pair)):
            if value is not None:
                check_string_dtype(value, name)
                _check_shape(value, name)
        shape = (*text.shape[:1], self.sequence_length)
        return {
            "token_ids": keras.KerasTensor(shape, dtype="int32"),
            "segment_ids": keras.KerasTensor(shape, dtype="int32"),
            "padding_mask": keras.KerasTensor(shape, dtype="bool"),
        }

    def _text_and_pair(self, inputs):
        text, pair = _split_inputs(inputs)
        if pair is not None:
            check_length_of_pairs(self.sequence_length)
        return text, pair

    def _pack_compiled(self, *ids):
        # Compiled as the tokenizer is, and for the same reasons.
        functions = self._compiled.by_number
        if len(ids) not in functions:
            spec = tf.RaggedTensorSpec([None, None], tf.int32, row_splits_dtype=tf.int64)
            functions[len(ids)] = tf.function(
                self._pack_texts, autograph=False, input_signature=[spec] * len(ids)
            )
        return functions[len(ids)](*ids)

    def _pack_texts(self, ids_a, ids_b=None):
        second = None if ids_b is None else as_rows(ids_b)
        return pack_texts(as_rows(ids_a), second, self.layout, tf)[0]


def _split_inputs(inputs):
    if isinstance(inputs, dict):
        if not {"text"} <= inputs.keys() <= {"text", "pair"}:
            raise ValueError(
                '`inputs` must be a dict with the key "text" and optionally "pair". '
                f"Received the keys: {sorted(inputs)}"
            )
        return inputs["text"], inputs.get("pair")
    if isinstance(inputs, tuple):
        if len(inputs) != 2:
            raise ValueError(
                f"`inputs` must be a tuple of two for a pair. Received: a tuple of {len(inputs)}"
            )
        return inputs
    # Keras converts a tuple of symbolic inputs to a list when it saves a model. A list of two
    # tensors with a batch dimension can only be a pair.
    if isinstance(inputs, list) and len(inputs) == 2 and all(map(_is_batch, inputs)):
        return tuple(inputs)
    return inputs, None


def _is_batch(value):
    return len(getattr(value, "shape", ())) > 0


def _as_batch(texts, name):
    """Returns the texts as a tensor of shape `()` or `(batch,)`."""
    texts = as_strings(texts, name)
    _check_shape(texts, name)
    if texts.shape.rank < 2:
        return texts
    return tf.reshape(tf.ensure_shape(texts, (None, 1)), [-1])


def _flat(texts):
    return tf.reshape(texts, [-1])


def _check_shape(texts, name):
    shape = tuple(texts.shape)
    if len(shape) > 2 or (len(shape) == 2 and shape[1] not in (1, None)):
        raise ValueError(f"`{name}` must have shape (), (batch,) or (batch, 1). Received: {shape}")


def _check_same_batch(text, pair):
    if not text.shape.is_compatible_with(pair.shape):
        raise ValueError(
            "`text` and `pair` must have the same number of texts. Received: shapes "
            f"{text.shape} and {pair.shape}"
        )

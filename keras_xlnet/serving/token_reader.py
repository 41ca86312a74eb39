"""The part of a SavedModel that reads tokens."""

from collections.abc import Callable, Collection
from typing import Any

import keras
import tensorflow as tf

from keras_xlnet.serving.like_length import read_in_batches, read_in_batches_of_like_length
from keras_xlnet.serving.signature import Signature

# Modes that divide a text by its length.
_DIVIDED = ("windows", "memory")


class TokenReader:
    """Runs a task model on tokens in a TensorFlow graph, which is traced once for all signatures.

    Rows are read without most of their padding: see `read_in_batches_of_like_length`. Where the
    model can, several texts share a row. With a `batch_size` all shapes are static, for
    accelerators that compile a graph for its shapes.

    Args:
        model: A task model with a preprocessor.
        batch_size: Int, the exact number of rows of a request. `None` for any number.
        finish: Function of the outputs of the model and its features. It returns a dict of tensors
            with a row for each row of the features, whose other axes do not depend on the length,
            except those `of_tokens`.
        of_tokens: Names of outputs `(rows, length, ...)`.
        inputs: Optional function of the features to more inputs of the model.
        packs: Whether texts may share rows. Rounding then differs between equal texts.
    """

    def __init__(
        self,
        model: keras.Model,
        batch_size: int | None,
        finish: Callable[[Any, dict[str, tf.Tensor]], dict[str, tf.Tensor]],
        of_tokens: Collection[str] = (),
        inputs: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]] | None = None,
        packs: bool = True,
    ) -> None:
        self._preprocessor = model.preprocessor
        self.batch_size = batch_size
        self.is_static = batch_size is not None or model.long_document in _DIVIDED
        length = self._preprocessor.sequence_length if self.is_static else None
        # The features of a model whose rows have several texts have rank 3.
        shape = (batch_size, *[None] * (len(model.input["token_ids"].shape) - 2), length)
        # Places in rows, such as `cls_index`, follow from the masks.
        names = [name for name, value in model.input.items() if len(value.shape) > 1]
        specs = {name: tf.TensorSpec(shape, _dtype(name), name) for name in names}
        self.inputs = [*specs.values()]
        packs = packs and model.can_pack_texts and not self.is_static
        of_rows = [specs]
        if packs:
            specs = {**specs, "packing": tf.TensorSpec((None, None), tf.int32, "packing")}

        @tf.function(input_signature=[specs], autograph=False)
        def read(features):
            more = {} if inputs is None else inputs(features)
            return finish(model({**features, **more}, training=False), features)

        def read_rows(features):
            side = self._preprocessor.padding_side
            return read_in_batches_of_like_length(read, features, side, of_tokens, packs)

        self._read = read
        self._read_rows = tf.function(read_rows, input_signature=of_rows, autograph=False)

    def __call__(self, **features: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the outputs for features of any length."""
        # Ragged ops in a preprocessor lose the static shape.
        features = {x.name: tf.ensure_shape(features[x.name], x.shape) for x in self.inputs}
        return self._read(features) if self.is_static else self._read_rows(features)

    def read_windows(self, **features: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the outputs for any number of rows, even if the batch size is static."""
        if self.batch_size is None:
            return self(**features)
        features = {x.name: features[x.name] for x in self.inputs}
        return read_in_batches(self._read, features, self.batch_size)

    @property
    def signature(self) -> Signature:
        """The `Signature` that takes tokens."""
        return Signature(self, self.inputs)


def _dtype(name):
    return tf.bool if name.endswith("mask") else tf.int32

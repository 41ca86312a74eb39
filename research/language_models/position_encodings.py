"""The position encodings that ablation.py compares with those of Transformer-XL."""

import keras
from keras import ops

from keras_xlnet.layers import RelativePositionEncoding
from keras_xlnet.models import TransformerXLLanguageModel


@keras.saving.register_keras_serializable("ablation")
class LearnedRelativePositions(RelativePositionEncoding):
    """A learned vector for each distance, as of Shaw et al. 2018, in place of a sinusoid.

    Distances that are longer than `max_distance` have the vector of `max_distance`.
    """

    max_distance = 64

    def build(self, content_shape, memory_shape=None):
        super().build(content_shape, memory_shape)
        self.table = self.add_weight(
            (self.max_distance + 1, self.hidden_dim),
            keras.initializers.RandomNormal(0, 0.02),
            name="table",
        )

    def call(self, content, memory=None):
        length = 0 if memory is None else ops.shape(memory)[-2]
        distances = self._distances(ops.shape(content)[1], length)
        rows = ops.cast(ops.clip(distances, 0, self.max_distance), "int32")
        return ops.take(self.table, rows, axis=0)


@keras.saving.register_keras_serializable("ablation")
class NoRelativePositions(RelativePositionEncoding):
    """Zeros: the score depends on the content alone."""

    def call(self, content, memory=None):
        return ops.zeros_like(super().call(content, memory=memory))


class AddAbsolutePositions(RelativePositionEncoding):
    """Adds the sinusoid of its position in the segment to each token, as Vaswani et al. 2017."""

    def call(self, content, memory=None):
        # The distances of one segment, from its length to 0.
        return content + ops.flip(super().call(content), axis=1)[:, :-1]

    def compute_output_shape(self, content_shape, memory_shape=None):
        return content_shape


@keras.saving.register_keras_serializable("ablation")
class ShawLanguageModel(TransformerXLLanguageModel):
    """Transformer-XL with learned relative positions."""

    position_encoding_class = LearnedRelativePositions


@keras.saving.register_keras_serializable("ablation")
class AbsoluteLanguageModel(TransformerXLLanguageModel):
    """Transformer-XL with absolute positions: those of memory are the same as of the segment."""

    position_encoding_class = NoRelativePositions

    def encode(self, content, **arguments):
        """Runs the blocks on embedded tokens with their positions in the segment."""
        add_positions = AddAbsolutePositions(content.shape[-1], "uni", dtype="float32")
        return TransformerXLLanguageModel.encode(self, add_positions(content), **arguments)


ENCODINGS = {
    "relative": TransformerXLLanguageModel,
    "Shaw": ShawLanguageModel,
    "absolute": AbsoluteLanguageModel,
}

"""Call arguments of a wrong shape are named, with the shape that was expected."""

import keras
import numpy as np
import pytest

from keras_xlnet import layers
from keras_xlnet.arguments import check_shape

CONTENT = np.random.default_rng(2).normal(size=(2, 5, 8)).astype("float32")
MEMORY = CONTENT[:, :3]
POSITIONS = layers.RelativePositionEncoding(8)(CONTENT)


def two_streams(content=CONTENT, **arguments):
    arguments = {"position_encoding": POSITIONS, **arguments}
    return layers.TwoStreamBlock(2, 4, 16)(content, **arguments)


def transformer_xl(content=CONTENT, **arguments):
    arguments = {"position_encoding": POSITIONS, **arguments}
    return layers.TransformerXLBlock(2, 4, 16)(content, **arguments)


def attention(query=CONTENT, context=CONTENT, **arguments):
    arguments = {"position_encoding": POSITIONS, **arguments}
    return layers.RelativeMultiHeadAttention(2, 4)(query, context, **arguments)


PADDING = np.ones((2, 5), bool)  # The mask of padding, where one of attention is expected.
SQUARE = np.ones((2, 5, 4), bool)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: two_streams(memory=MEMORY),  # The positions are those without memory.
            r"`position_encoding` must have shape \(1 or 2, 13 or 9, any\). Received: .*10",
        ),
        (lambda: two_streams(CONTENT[0]), "expected ndim=3, found ndim=2"),
        (lambda: transformer_xl(CONTENT[0]), "expected ndim=3, found ndim=2"),
        (lambda: attention(CONTENT[0]), "expected ndim=3, found ndim=2"),
        (lambda: layers.SequencePooling("mean")(CONTENT[0]), "expected ndim=3, found ndim=2"),
        (lambda: layers.SequenceSummary()(CONTENT[0]), "expected ndim=3, found ndim=2"),
        (
            lambda: two_streams(content_attention_mask=PADDING),
            r"`content_attention_mask` must have shape \(2 or 1, 5 or 1, 5\). Received: .*\(2, 5\)",
        ),
        (lambda: transformer_xl(attention_mask=PADDING), r"`attention_mask` must .* \(2, 5\)"),
        (lambda: attention(attention_mask=SQUARE), r"`attention_mask` must .* \(2, 5, 4\)"),
        (lambda: attention(segment_matrix=SQUARE), r"`segment_matrix` must .* \(2, 5, 4\)"),
        (
            lambda: attention(target_positions=np.zeros((2, 4), "int32"), content_length=5),
            r"`target_positions` must have shape \(2 or 1, 5\). Received: .*\(2, 4\)",
        ),
        (lambda: two_streams(memory=MEMORY[:1]), r"`memory` must have shape \(2, any, 8\)"),
        (lambda: transformer_xl(memory=MEMORY[..., :4]), r"`memory` must have shape \(2, any, 8\)"),
    ],
)
def test_an_argument_of_a_wrong_shape_is_named(call, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


def test_sizes_that_are_not_known_fit():
    tensor = keras.KerasTensor((None, None, 7))
    check_shape("x", tensor, 2, (3, 1), 7)
    check_shape("x", tensor, None, None, None)
    check_shape("x", None, 2)
    with pytest.raises(ValueError, match=r"`x` must have shape \(any, 3 or 1, 8\)"):
        check_shape("x", tensor, None, (3, 1), 8)


def test_one_row_of_a_mask_serves_all():
    whole = attention(attention_mask=np.ones((2, 5, 5), bool))
    assert np.shape(whole) == np.shape(attention(attention_mask=np.ones((1, 1, 5), bool)))

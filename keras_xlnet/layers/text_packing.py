from typing import Any

import keras
from keras import ops

from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class PackTexts(ConfiguredLayer):
    """Places several texts in one row, so that few places of a batch are padding.

    XLNet knows no positions, only distances. Tokens that see no other text have the outputs that
    they have in a row of their own, wherever the text stands.

    Call arguments:
        token_ids, segment_ids, padding_mask: Tensors `(texts, length)`.
        packing: Int tensor `(rows, row_length)`: which token stands at each place, counted over
            `(texts, length)`; -1 for none. The tokens of a text stand in their order, one after the
            other, in one row.

    Returns:
        A dict of these three `(rows, row_length)`, and `text_ids`: the text of each place, -1 for
        none, as `AttentionMask` takes it.

    Example:

    >>> token_ids, segment_ids = np.array([[0, 5, 6], [7, 8, 9]]), np.zeros((2, 3))
    >>> packing = np.array([[1, 2, 3, 4, 5, -1]])
    >>> rows = keras_xlnet.layers.PackTexts()(token_ids, segment_ids, token_ids > 0, packing)
    >>> print(*(keras.ops.convert_to_numpy(rows[key]) for key in ("token_ids", "text_ids")))
    [[5 6 7 8 9 0]] [[ 0  0  1  1  1 -1]]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True  # Without weights.

    def call(
        self, token_ids: Tensor, segment_ids: Tensor, padding_mask: Tensor, packing: Tensor
    ) -> dict[str, Tensor]:
        inputs = _of_tokens(token_ids, segment_ids, padding_mask)
        is_token = packing >= 0
        places = ops.maximum(packing, 0)
        rows = {key: ops.take(ops.reshape(x, (-1,)), places) for key, x in inputs.items()}
        rows = {key: ops.where(is_token, x, ops.zeros_like(x)) for key, x in rows.items()}
        return {**rows, "text_ids": packing // ops.shape(token_ids)[1]}

    def compute_output_spec(
        self, token_ids: Tensor, segment_ids: Tensor, padding_mask: Tensor, packing: Tensor
    ) -> dict[str, keras.KerasTensor]:
        inputs = _of_tokens(token_ids, segment_ids, padding_mask)
        specs = {key: keras.KerasTensor(packing.shape, x.dtype) for key, x in inputs.items()}
        return {**specs, "text_ids": keras.KerasTensor(packing.shape, packing.dtype)}


def _of_tokens(token_ids, segment_ids, padding_mask):
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}


@register
class UnpackTexts(ConfiguredLayer):
    """Takes the values of texts out of the rows in which `PackTexts` placed them.

    Call arguments:
        rows: Tensor `(rows, row_length, ...)`.
        packing: As in `PackTexts`.
        token_ids: Tensor `(texts, length)`. Only its shape is used.

    Returns:
        Tensor `(texts, length, ...)`, 0 where no place has the token.

    Example:

    >>> packing, token_ids = np.array([[1, 2, 3, 4, 5, -1]]), np.zeros((2, 3))
    >>> rows = np.array([[1.5, 2.5, 3.5, 4.5, 5.5, 9.0]])
    >>> values = keras_xlnet.layers.UnpackTexts()(rows, packing, token_ids)
    >>> print(keras.ops.convert_to_numpy(values))
    [[0.  1.5 2.5]
     [3.5 4.5 5.5]]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.built = True  # Without weights.

    def call(self, rows: Tensor, packing: Tensor, token_ids: Tensor) -> Tensor:
        texts, length = ops.shape(token_ids)[:2]
        packing = ops.reshape(packing, (-1, 1))
        # The place of each token, counted from 1. The places without a token come first.
        num_places = ops.shape(packing)[0]
        places = ops.arange(1, num_places + 1, dtype="int32")
        places = ops.where(packing[:, 0] >= 0, places, 0)
        places = ops.scatter(packing + 1, places, (texts * length + 1,))[1:]
        places = ops.reshape(places, (texts, length))
        flat = ops.reshape(rows, (-1, *rows.shape[2:]))
        # Keras builds models with arbitrary values, in which a token may have several places.
        found = ops.take(flat, ops.clip(places - 1, 0, num_places - 1), axis=0)
        is_token = ops.reshape(places > 0, (texts, length, *[1] * (len(rows.shape) - 2)))
        return ops.where(is_token, found, ops.zeros_like(found))

    def compute_output_spec(
        self, rows: Tensor, packing: Tensor, token_ids: Tensor
    ) -> keras.KerasTensor:
        return keras.KerasTensor((*token_ids.shape[:2], *rows.shape[2:]), dtype=rows.dtype)

"""Converts a BERT encoder to an XLNet, and measures the difference.

    cosine = mean over texts of cos(mean of BERT's last states, mean of the XLNet's)

`bert_weights.py` and `bert_positions.py` derive the weights.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import keras
import numpy as np

from keras_xlnet.conversion.bert_encoder import BertEncoder
from keras_xlnet.conversion.bert_positions import fit_positions
from keras_xlnet.conversion.bert_weights import find_shift, xlnet_weights
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.preprocessing.packing import SEGMENT_PADDING, Layout, as_rows, pack_texts
from keras_xlnet.preset_files.weights import assign_in_blocks, model_weights
from keras_xlnet.tokenizers import XLNetTokenizer

_BATCH_SIZE = 32


@dataclasses.dataclass(frozen=True)
class BertConversion:
    """A BERT as an XLNet, with measures of the difference.

    Args:
        backbone: The `XLNetBackbone`.
        tokenizer: The `XLNetTokenizer` for it, or `None` if it has none.
        position_residuals: Tuple of floats, for each layer the difference between XLNet's sinusoids
            and the function of the distance that stands for BERT's positions: root mean square,
            relative to the function's.
        shift_lengths: Tuple of floats, for each layer the length of the vector added to its input.
        cosine: Float, the cosine between BERT's and the XLNet's mean states of the last layer,
            averaged over the sample texts.
        tokens_that_differ: Float, the fraction of BERT's tokens in the sample texts that the
            tokenizer splits differently. `None` if no texts were given.
        num_texts: Int, the number of sample texts.
    """

    backbone: XLNetBackbone
    tokenizer: XLNetTokenizer | None
    position_residuals: tuple[float, ...]
    shift_lengths: tuple[float, ...]
    cosine: float
    tokens_that_differ: float | None
    num_texts: int

    def __str__(self) -> str:
        """Returns the report, a table with a row for each layer and two lines."""
        lines = ["layer  length of the shift  residual of the positions"]
        rows = zip(self.shift_lengths, self.position_residuals, strict=True)
        lines += [f"{layer:5}{a:21.2f}{b:27.3f}" for layer, (a, b) in enumerate(rows)]
        are_given = self.tokens_that_differ is not None
        kind = "sample texts" if are_given else "texts of random words"
        lines.append(f"cosine to BERT, mean of {self.num_texts} {kind}: {self.cosine:.4f}")
        if are_given:
            lines.append(f"tokens that differ: {self.tokens_that_differ:.2%}")
        return "\n".join(lines)


class TokenIds(NamedTuple):
    """The ids of an XLNet that is made from a BERT.

    Args:
        theirs: Int array `(vocabulary_size,)`, BERT's id of each id of the XLNet.
        cls, sep, pad: Ints, the XLNet's ids of these special tokens.
    """

    theirs: np.ndarray
    cls: int
    sep: int
    pad: int


def convert_encoder(
    encoder: BertEncoder,
    model: XLNetBackbone,
    ids: TokenIds,
    rows: Sequence[np.ndarray],
    ridge: float,
    tokenizer: XLNetTokenizer | None = None,
    tokens_that_differ: float | None = None,
) -> BertConversion:
    """Computes the weights of an XLNet from a BERT, and assigns them.

    Args:
        encoder: The `BertEncoder`.
        model: An `XLNetBackbone` of the same sizes.
        ids: A `TokenIds`.
        rows: Int arrays, BERT's ids of the tokens of texts, without special tokens.
        ridge: As of `find_shift`.
        tokenizer, tokens_that_differ: As of `BertConversion`.
    """
    shifts = np.array([find_shift(encoder, i, ridge) for i in range(encoder.num_layers)])
    positions, states = fit_positions(encoder, rows, ids.theirs[ids.cls], ids.theirs[ids.sep])
    values = xlnet_weights(encoder, ids.theirs, ids.cls, shifts, positions)
    for path, weight in model_weights(model).items():
        assign_in_blocks(weight, values[path])
    return BertConversion(
        model,
        tokenizer,
        positions.residuals,
        tuple(float(length) for length in np.linalg.norm(shifts, axis=1)),
        _cosine(model, ids, rows, states),
        tokens_that_differ,
        len(rows),
    )


def _cosine(model, ids, rows, states):
    """Returns the mean cosine between the means of the last states of BERT and of the model."""
    # If several ids of the XLNet have one id of BERT, the first of them is used.
    ours = {index: place for place, index in reversed([*enumerate(ids.theirs.tolist())])}
    layout = Layout(max(map(len, rows)) + 2, "left", ids.pad, SEGMENT_PADDING, ids.sep, ids.cls)
    texts = [np.array([ours[index] for index in row.tolist()], "int32") for row in rows]
    cosines = []
    for start in range(0, len(rows), _BATCH_SIZE):
        batch = slice(start, start + _BATCH_SIZE)
        features, _ = pack_texts(as_rows(texts[batch]), None, layout, np)
        outputs = model(features, training=False)["sequence_output"]
        outputs = keras.ops.convert_to_numpy(outputs).astype("float64")
        for row, is_real, state in zip(
            outputs, features["padding_mask"], states[batch], strict=True
        ):
            ours_mean, theirs_mean = row[is_real].mean(axis=0), state.mean(axis=0)
            norms = np.linalg.norm(ours_mean) * np.linalg.norm(theirs_mean)
            cosines.append(ours_mean @ theirs_mean / norms)
    return float(np.mean(cosines))

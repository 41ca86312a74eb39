"""The weights of an XLNet that computes the same as a BERT, except for positions.

- Embeddings: BERT normalizes the sum of three embeddings. XLNet has no normalization there, so each
  token's row is normalized once.
- The bias of the keys adds the same number to all scores of a row. Softmax ignores it.
- Biases of the values and of the output: XLNet has none. Instead the input of each layer is
  shifted by `c`. Probabilities sum to 1, so attention adds `Wo Wv c` to each row, and the
  input of the normalization is BERT's if

      (I + Wo Wv) c = Wo bv + bo

  up to a constant, which the normalization removes. The shift is part of the embeddings, or of
  `beta` of the normalization before the layer.
- The bias of the queries is `content_bias`, which is multiplied by the keys only. The queries of
  the shifted input are `Wq c` too large: `content_bias = bq - Wq c`.
- Positions: see `bert_positions.py`. `v · W R(d)` needs one direction per head. `v` is long and `W`
  short, so that the product of `W R(d)` and the queries, which BERT does not have, is small.

Source: Dai et al. 2019 (Transformer-XL), section 3.3, for the terms of the score.
"""

import math

import numpy as np

from keras_xlnet.conversion.bert_encoder import BertEncoder
from keras_xlnet.conversion.bert_positions import PositionBiases

# The ratio of the length of the biases to the vectors they are multiplied by.
_LENGTH = 100.0
# The components of a head that hold the terms of positions and of segments.
_POSITION, _SEGMENT = 0, 1


def find_shift(encoder: BertEncoder, layer: int, ridge: float) -> np.ndarray:
    """Returns the vector that is added to the input of a layer, `(hidden_dim,)`.

    Args:
        encoder: A `BertEncoder`.
        layer: Int, index of the layer.
        ridge: Float of at least 0, the strength of the ridge regression that solves the equation
            above. Larger values make the shift shorter and the difference to BERT larger.
    """
    value, value_bias = encoder.dense(layer, "attention.self.value")
    output, output_bias = encoder.dense(layer, "attention.output.dense")
    matrix = np.eye(encoder.hidden_dim) + output @ value
    target = output @ value_bias + output_bias
    # Constants do not matter: the vectors must be equal after their means are subtracted.
    matrix, target = matrix - matrix.mean(axis=0), target - target.mean()
    if not ridge:
        return np.linalg.lstsq(matrix, target, rcond=None)[0]
    gram = matrix.T @ matrix + ridge * np.eye(encoder.hidden_dim)
    return np.linalg.solve(gram, matrix.T @ target)


def xlnet_weights(
    encoder: BertEncoder,
    token_ids: np.ndarray,
    cls_row: int,
    shifts: np.ndarray,
    positions: PositionBiases,
) -> dict[str, np.ndarray]:
    """Returns the weights of an `XLNetBackbone`, `{path: float64 array}`.

    Args:
        encoder: A `BertEncoder`.
        token_ids: Int array `(vocabulary_size,)`, BERT's id of each id of the XLNet.
        cls_row: Int, the id of `<cls>` in the XLNet, which is at position 0 in BERT.
        shifts: Array `(layers, hidden_dim)`, what `find_shift` returns.
        positions: `PositionBiases`.
    """
    embeddings = encoder.embed(token_ids)
    embeddings[cls_row] = encoder.embed(token_ids[[cls_row]], np.array([0]))[0]
    weights = {"token_embedding/embeddings": embeddings + shifts[0]}
    for layer in range(encoder.num_layers):
        is_last = layer == encoder.num_layers - 1
        next_shift = 0.0 if is_last else shifts[layer + 1]
        of_layer = {
            **_attention(encoder, layer, shifts[layer]),
            **_relative_terms(encoder, positions, layer),
            **_feed_forward(encoder, layer, next_shift),
        }
        weights |= {f"block_{layer}/{path}": value for path, value in of_layer.items()}
    return weights


def _attention(encoder, layer, shift):
    heads = encoder.num_heads, encoder.head_dim
    query, query_bias = encoder.dense(layer, "attention.self.query")
    key, _ = encoder.dense(layer, "attention.self.key")
    value, _ = encoder.dense(layer, "attention.self.value")
    output, _ = encoder.dense(layer, "attention.output.dense")
    gamma, beta = encoder.dense(layer, "attention.output.LayerNorm")
    kernels = {"query": query, "key": key, "value": value}
    return {
        **{
            f"attention/{name}/kernel": kernel.T.reshape(-1, *heads)
            for name, kernel in kernels.items()
        },
        "attention/output/kernel": output.T.reshape(*heads, -1),
        "attention/content_bias": (query_bias - query @ shift).reshape(heads),
        "attention_add_and_norm/norm/gamma": gamma,
        "attention_add_and_norm/norm/beta": beta,
    }


def _relative_terms(encoder, positions, layer):
    heads = encoder.num_heads, encoder.head_dim
    # XLNet divides all terms of the score by this root.
    long = _LENGTH * math.sqrt(encoder.head_dim)
    kernel = np.zeros((encoder.hidden_dim, *heads))
    kernel[:, :, _POSITION] = positions.weights[layer] / _LENGTH
    # One for the same segment, and one for a different segment.
    segment_embeddings = np.zeros((2, *heads))
    segment_embeddings[1, :, _SEGMENT] = positions.of_cls[layer] / _LENGTH
    position_bias, segment_bias = np.zeros(heads), np.zeros(heads)
    position_bias[:, _POSITION] = long
    segment_bias[:, _SEGMENT] = long
    return {
        "attention/position/kernel": kernel,
        "attention/position_bias": position_bias,
        "attention/segment_embeddings": segment_embeddings,
        "attention/segment_bias": segment_bias,
    }


def _feed_forward(encoder, layer, next_shift):
    inner, inner_bias = encoder.dense(layer, "intermediate.dense")
    output, output_bias = encoder.dense(layer, "output.dense")
    gamma, beta = encoder.dense(layer, "output.LayerNorm")
    return {
        "feed_forward/intermediate/kernel": inner.T,
        "feed_forward/intermediate/bias": inner_bias,
        "feed_forward/output/kernel": output.T,
        "feed_forward/output/bias": output_bias,
        "feed_forward_add_and_norm/norm/gamma": gamma,
        "feed_forward_add_and_norm/norm/beta": beta + next_shift,
    }

"""The forward pass of a BERT in float64, one text at a time, to measure its attention scores.

    s[i, j] = (Wq x[i] + bq) · (Wk x[j] + bk) / sqrt(D)
    x'      = LN(x + Wo softmax(s) (Wv x + bv) + bo)
    x''     = LN(x' + W2 gelu(W1 x' + b1) + b2)

Source: Devlin et al. 2019, "BERT"; Vaswani et al. 2017, "Attention Is All You Need".
"""

import math

import keras
import numpy as np

from keras_xlnet.layers.activations import get_activation

# Most texts reach these positions. The mean of their embeddings stands for any position.
_USUAL_POSITIONS = slice(1, 33)


class BertEncoder:
    """A BERT encoder in float64.

    Args:
        weights: Dict of float64 arrays, as `BertFiles.read` returns.
        num_heads: Int.
        epsilon: Float, of the layer normalization.
        activation: Name of the activation.

    Attributes:
        num_layers, num_heads, head_dim: Ints.
    """

    def __init__(
        self, weights: dict[str, np.ndarray], num_heads: int, epsilon: float, activation: str
    ) -> None:
        self._weights, self._epsilon = weights, epsilon
        self._activation = get_activation(activation)
        self.num_heads = num_heads
        self.hidden_dim = weights["embeddings.LayerNorm.weight"].shape[0]
        self.head_dim = self.hidden_dim // num_heads
        layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
        self.num_layers = len(layers)

    def dense(self, layer: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Returns weight `(outputs, inputs)` and bias of a dense layer, or of a normalization.

        Args:
            layer: Int, index of the layer.
            name: String, such as `"attention.self.query"`.
        """
        name = f"encoder.layer.{layer}.{name}"
        return self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]

    def embed(self, token_ids: np.ndarray, positions: np.ndarray | None = None) -> np.ndarray:
        """Returns the input of the first layer `(length, hidden_dim)`.

        Args:
            token_ids: Int array `(length,)`.
            positions: Int array `(length,)`. `None` for the mean of the usual positions.
        """
        table = self._weights["embeddings.position_embeddings.weight"]
        place = table[_USUAL_POSITIONS if len(table) > 1 else slice(None)]
        place = place.mean(axis=0) if positions is None else table[positions]
        rows = self._weights["embeddings.word_embeddings.weight"][token_ids]
        rows = rows + place + self._weights["embeddings.token_type_embeddings.weight"][0]
        norm = (self._weights[f"embeddings.LayerNorm.{name}"] for name in ("weight", "bias"))
        return self._normalize(rows, *norm)

    def scores(self, states: np.ndarray, layer: int) -> np.ndarray:
        """Returns the attention scores `(heads, length, length)` of a layer.

        Args:
            states: Array `(length, hidden_dim)`, the input of the layer.
            layer: Int, index of the layer.
        """
        query, key = (self._heads(states, layer, name) for name in ("query", "key"))
        return query @ key.transpose(0, 2, 1) / math.sqrt(self.head_dim)

    def apply(self, states: np.ndarray, layer: int, scores: np.ndarray) -> np.ndarray:
        """Returns the output of a layer `(length, hidden_dim)`.

        Args:
            states: As in `scores`.
            layer: Int, index of the layer.
            scores: What `scores` returns, or other scores of this shape.
        """
        attended = (softmax(scores) @ self._heads(states, layer, "value")).transpose(1, 0, 2)
        attended = self._linear(attended.reshape(states.shape), layer, "attention.output.dense")
        norm = self.dense(layer, "attention.output.LayerNorm")
        states = self._normalize(states + attended, *norm)
        inner = self._linear(states, layer, "intermediate.dense")
        # The one step in float32: erf in float64 would take as long as all products.
        inner = keras.ops.convert_to_numpy(self._activation(inner.astype("float32")))
        inner = self._linear(inner, layer, "output.dense")
        return self._normalize(states + inner, *self.dense(layer, "output.LayerNorm"))

    def _heads(self, states, layer, name):
        """`(heads, length, head_dim)`."""
        rows = self._linear(states, layer, f"attention.self.{name}")
        return rows.reshape(len(states), self.num_heads, self.head_dim).transpose(1, 0, 2)

    def _linear(self, states, layer, name):
        weight, bias = self.dense(layer, name)
        return states @ weight.T + bias

    def _normalize(self, states, gamma, beta):
        centered = states - states.mean(axis=-1, keepdims=True)
        variance = (centered**2).mean(axis=-1, keepdims=True)
        return centered / np.sqrt(variance + self._epsilon) * gamma + beta


def softmax(scores: np.ndarray) -> np.ndarray:
    """Returns the probabilities of scores over the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)

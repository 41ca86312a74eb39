"""Attention probabilities of a model, and the terms of its scores."""

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.ops import masked_softmax
from keras_xlnet.results import Result, short, titled


@dataclasses.dataclass(frozen=True, repr=False)
class Attention(Result):
    """The attention of one layer, for one stream.

    Args:
        layer: Int, index of the layer.
        stream: `"content"` or `"query"`.
        terms: Dict of float arrays `(batch, num_heads, query_length, context_length)`, the terms
            (a) to (e) of the score as `keras_xlnet.ops.relative_attention_terms` names them. There
            is no `"segment"` in a model without segments.
        mask: Bool array `(batch, query_length, context_length)`, `True` = may attend.
        probabilities: Float array `(batch, num_heads, query_length, context_length)`.
        memory_length: Int, the number of context rows that are memory.
        positions: Int array `(batch, query_length)`, the position in the content of each query row.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 2, 2, 16, 32)
    >>> inspection = backbone.inspect({"token_ids": np.array([[5, 17, 8]])})
    >>> inspection.attention(layer=1)
    Attention(layer=1, stream='content', terms={'content': <float32 (1, 2, 3, 3)>, ...
    """

    layer: int
    stream: str
    terms: dict[str, np.ndarray]
    mask: np.ndarray
    probabilities: np.ndarray
    memory_length: int
    positions: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """The sum of the terms."""
        return sum(self.terms.values())  # type: ignore[return-value]  # 0 only without terms.

    @property
    def distances(self) -> np.ndarray:
        """`(batch, query_length, context_length)`: how far before the query a context row is."""
        context = np.arange(-self.memory_length, self.mask.shape[-1] - self.memory_length)
        return self.positions[..., None] - context


@dataclasses.dataclass(frozen=True, repr=False)
class Inspection(Result):
    """The intermediate results of a model.

    Args:
        outputs: What the model returned.
        attentions: List of `Attention`s, layer by layer, the content stream first.
        hidden_states: List of float arrays `(batch, length, hidden_dim)`: the content stream that
            enters each layer, and the one that leaves the last, if it is computed.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 2, 2, 16, 32)
    >>> backbone.inspect({"token_ids": np.array([[5, 17, 8]])})
    Inspection
      outputs: {'sequence_output': <float32 (1, 3, 16)>}
      attentions, content stream: 2 of <float32 (1, 2, 3, 3)>
      hidden_states: 3 of <float32 (1, 3, 16)>
    """

    outputs: object
    attentions: list[Attention]
    hidden_states: list[np.ndarray]

    def __repr__(self) -> str:
        lines = [f"outputs: {short(self.outputs)}"]
        for stream in ("content", "query"):
            found = [x.probabilities for x in self.attentions if x.stream == stream]
            if found:
                lines.append(f"attentions, {stream} stream: {len(found)} of {short(found[0])}")
        states = self.hidden_states
        lines.append(f"hidden_states: {len(states)} of {short(states[0])}")
        return titled("Inspection", lines)

    def attention(self, layer: int, stream: str = "content") -> Attention:
        """Returns the `Attention` of a layer and a stream.

        Raises:
            KeyError: If there is no such entry.
        """
        for found in self.attentions:
            if (found.layer, found.stream) == (layer, stream):
                return found
        raise KeyError((layer, stream))


def inspect_model(
    model: keras.Model, blocks: Sequence[keras.layers.Layer], inputs: Any
) -> Inspection:
    """Runs a model, and returns an `Inspection`, as `BaseModel.inspect` describes."""
    attended: list[list[Any]] = [[] for _ in blocks]
    streams: list[list[Any]] = [[] for _ in blocks]
    with contextlib.ExitStack() as stack:
        for block, of_attention, of_block in zip(blocks, attended, streams, strict=True):
            stack.enter_context(_recorded(block.attention, "attend", of_attention))
            stack.enter_context(_recorded(block, "call", of_block))
        outputs = model(inputs, training=False)
    hidden_states, attentions = [], []
    for layer, block in enumerate(blocks):
        (arguments, named, result), *_ = streams[layer]
        hidden_states.append(ops.convert_to_numpy(arguments[0]))
        has_content = named.get("return_content_stream", True)
        names = (["content"] if has_content else []) + ["query"]
        for stream, record in zip(names, attended[layer], strict=False):
            attentions.append(_attention(layer, stream, block.attention, *record))
    if has_content:
        last = result[0] if isinstance(result, tuple) else result
        hidden_states.append(ops.convert_to_numpy(last))
    return Inspection(outputs, attentions, hidden_states)


@contextlib.contextmanager
def _recorded(layer, method, records):
    """Appends `(positional arguments, named arguments, result)` of each call of a method."""
    original = getattr(layer, method)

    @functools.wraps(original)
    def recording(*args, **kwargs):
        result = original(*args, **kwargs)
        records.append((args, kwargs, result))
        return result

    # Bypasses Keras, which tracks every attribute of a layer.
    vars(layer)[method] = recording
    try:
        yield
    finally:
        del vars(layer)[method]


def _attention(layer, stream, attention, arguments, named, _):
    query, key, _, position_key = arguments
    known = ("segment_matrix", "target_positions", "attention_biases", "content_length")
    terms = attention.score_terms(
        query, key, position_key, **{name: named[name] for name in known if name in named}
    )
    batch_size, query_length = query.shape[:2]
    context_length = key.shape[2]
    mask = named.get("attention_mask")
    mask = ops.ones((1, 1, context_length), "bool") if mask is None else mask
    by_heads = ops.swapaxes(sum(terms.values()), 0, 1)
    targets, content_length = named.get("target_positions"), named.get("content_length")
    content_length = query_length if content_length is None else int(content_length)
    positions = np.arange(query_length)[None]
    positions = positions if targets is None else ops.convert_to_numpy(targets)
    shape = (batch_size, query_length, context_length)
    return Attention(
        layer=layer,
        stream=stream,
        terms={name: ops.convert_to_numpy(term) for name, term in terms.items()},
        mask=np.broadcast_to(ops.convert_to_numpy(mask), shape),
        probabilities=np.swapaxes(ops.convert_to_numpy(masked_softmax(by_heads, mask)), 0, 1),
        memory_length=context_length - content_length,
        positions=np.broadcast_to(positions, shape[:2]),
    )

"""Incremental decoding with a key/value cache."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.compat.compiled_function import compiled
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preprocessing.packing import rounded
from keras_xlnet.preprocessing.token_lists import pad_rows
from keras_xlnet.types import Tensor

# Of keys and values: (heads, batch, length, head_dim).
_BATCH_AXIS, _LENGTH_AXIS = 1, 2


class Decoder:
    """Base class of decoders: `reserve`, `start`, any number of `step` and `reorder`.

    `start` and `step` return log-probabilities `(batch, vocabulary_size)` of the next token as a
    NumPy array, and a state: a tuple of the keys and values of each block, a mask of real rows,
    and the number of tokens read, including padding.

    `read_prompts` and `read_tokens` do the same for tensors. They also work in a TensorFlow graph
    if the decoder is not compiled.

    Args:
        model: A language model.
        is_compiled: Whether each step is compiled with XLA, for known lengths.
    """

    # Of a model, and of what writes new keys and values among kept ones: the function `read`.
    _reader: Callable[..., Callable[..., Any]]

    def __init__(self, model: keras.Model, is_compiled: bool = True) -> None:
        self.model = model
        self.backbone = backbone_of(model)
        self.num_rows: Any = None  # Int or int tensor, once `reserve` is called.
        self.step_position_keys: Any = None  # Set when prompts are read.
        if not is_compiled:
            self.read = self._reader(model, write=_written)
        else:
            self.read = model.derived.setdefault("read", compiled(self._reader(model), model))

    def reserve(self, prompt_length: Any, max_new_tokens: Any) -> None:
        """Sets how many tokens the state has room for, ints or int tensors."""
        self.num_rows = rounded(rounded(prompt_length) + max_new_tokens)

    def start(self, prompts: Sequence[np.ndarray]) -> tuple[np.ndarray, Any]:
        """Reads prompts, a list of int arrays."""
        token_ids = pad_rows(prompts, side="left")
        num_padding = np.array([token_ids.shape[1] - len(p) for p in prompts], "int32")
        tensors = map(ops.convert_to_tensor, (token_ids, num_padding))
        log_probs, state = self.read_prompts(*tensors)
        return ops.convert_to_numpy(log_probs), state

    def step(self, token_ids: np.ndarray, state: Any) -> tuple[np.ndarray, Any]:
        """Reads one more token of each row, an int array `(batch,)`."""
        log_probs, state = self.read_tokens(ops.convert_to_tensor(token_ids), state)
        return ops.convert_to_numpy(log_probs), state

    def read_prompts(self, token_ids: Tensor, num_padding: Tensor) -> tuple[Tensor, Any]:
        """Reads prompts.

        Args:
            token_ids: `(batch, length)`, padded on the left.
            num_padding: `(batch,)`, the amount of padding of each row.

        Returns:
            Log-probabilities of the next token, `(batch, vocabulary_size)`, and the state.
        """
        raise NotImplementedError

    def read_tokens(self, token_ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Reads one more token of each row, `(batch,)`. Returns what `read_prompts` does."""
        raise NotImplementedError

    def reorder(self, state: Any, rows: np.ndarray) -> Any:
        """Returns the state with other rows, an int array."""
        keys_and_values, is_real, num_read = state
        taken = keras.tree.map_structure(
            lambda x: ops.take(x, rows, axis=_BATCH_AXIS), keys_and_values
        )
        return taken, ops.take(is_real, rows, axis=0), num_read

    def _empty(self, batch_size):
        """Keys and values of a state without tokens."""
        backbone = self.backbone
        shape = (backbone.num_heads, batch_size, self.num_rows, backbone.head_dim)
        return [(ops.zeros(shape, backbone.compute_dtype),) * 2 for _ in backbone.blocks]

    def _position_keys(self, *rows):
        """The position keys of each layer, for rows of this length and of the memory."""
        positions = self.backbone.position_encoding(*rows)
        return [block.attention.project_positions(positions) for block in self.backbone.blocks]


class CausalDecoder(Decoder):
    """Decodes with a `TransformerXLLanguageModel`.

    The state is the keys and values of the last `memory_length` tokens, as if the model
    read the prompt as one segment and then one token at a time, with memory. A model without
    memory keeps all tokens.

    Args:
        model: The model.
    """

    def reserve(self, prompt_length: Any, max_new_tokens: Any) -> None:
        """Sets how many tokens the state has room for, ints or int tensors."""
        super().reserve(prompt_length, max_new_tokens)
        self.num_rows = self.model.memory_length or self.num_rows

    def read_prompts(self, token_ids: Tensor, num_padding: Tensor) -> tuple[Tensor, Any]:
        """Reads prompts, as `Decoder.read_prompts` says."""
        batch_size, length = ops.shape(token_ids)
        num_padding = ops.expand_dims(num_padding, 1)
        rows, columns = (ops.arange(size, dtype="int32")[None] for size in (self.num_rows, length))
        is_token = may_attend = columns >= num_padding
        if self.model.attend_to_empty_memory:
            keys_and_values, *_ = self.from_memory(*self._zero_memory(batch_size))
            # Padding stands for the newest rows of the empty memory.
            is_real = rows >= num_padding
            may_attend = columns >= num_padding - self.num_rows
        else:
            keys_and_values = self._empty(batch_size)
            is_real = ops.zeros((batch_size, self.num_rows), "bool")
        # Keys and values of the prompt, and then of one token at a time.
        self.step_position_keys = self._position_keys(*self._blank_rows(1))
        position_keys = self._position_keys(*self._blank_rows(length))
        state = keys_and_values, is_real, ops.zeros((), "int32")
        return self.read(token_ids, is_token, may_attend, state, position_keys)

    def read_tokens(self, token_ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Reads one more token of each row, as `Decoder.read_tokens` says."""
        token_ids = ops.expand_dims(token_ids, 1)
        is_token = token_ids >= 0
        return self.read(token_ids, is_token, is_token, state, self.step_position_keys)

    def from_memory(self, content: Tensor, mask: Tensor) -> Any:
        """Returns the state of segments that the model has read.

        Args:
            content: `(batch, num_layers, memory_length, hidden_dim)`, the rows that entered each
                layer.
            mask: `(batch, memory_length)` bool, `True` for rows that may be attended to.
        """
        self.num_rows = ops.shape(mask)[1]
        self.step_position_keys = self._position_keys(*self._blank_rows(1))
        keys_and_values = [
            block.attention.project_content(block.join(content[:, layer]))
            for layer, block in enumerate(self.model.blocks)
        ]
        return keys_and_values, mask, ops.zeros((), "int32")

    def _blank_rows(self, length):
        """Content and memory. Only their lengths are used."""
        return ops.zeros((1, length, 1)), ops.zeros((1, self.num_rows, 1))

    def _zero_memory(self, batch_size):
        model = self.model
        shape = (batch_size, model.num_layers, self.num_rows, model.hidden_dim)
        return ops.zeros(shape, model.compute_dtype), ops.ones((batch_size, self.num_rows), "bool")

    @staticmethod
    def _reader(model, write=ops.slice_update):
        def read(token_ids, is_token, may_attend, state, position_keys):
            keys_and_values, is_real, num_read = state
            content, tables, projections = model.token_embedding(token_ids, return_weights=True)
            num_rows = ops.shape(is_real)[1]
            # Only the length of the memory is used.
            attention_mask, _ = model.attention_mask(
                content,
                padding_mask=may_attend,
                memory=ops.zeros((1, num_rows, 1)),
                memory_mask=is_real,
            )

            def context_of(block, content):
                # Zeros at padding, for an empty memory that is attended to.
                zeros = ops.zeros_like(content)
                return block.join(ops.where(ops.expand_dims(is_token, -1), content, zeros))

            content, extended = _run_with_cache(
                model,
                content,
                keys_and_values,
                position_keys,
                context_of,
                extend=lambda kept, new: ops.concatenate([kept, new], axis=_LENGTH_AXIS),
                attention_mask=attention_mask,
            )
            kept = keras.tree.map_structure(lambda x: x[:, :, -num_rows:], extended)
            shared = model.shared_weights(tables, projections)
            log_probs = model.softmax(content[:, -1:], **shared)[:, 0]
            is_real = ops.concatenate([is_real, may_attend], axis=1)[:, -num_rows:]
            return log_probs, (kept, is_real, num_read + ops.shape(token_ids)[1])

        return read


class PermutationDecoder(Decoder):
    """Decodes with an `XLNetPermutationLM`, from left to right after the prompt.

    All tokens of the prompt see each other. A generated token sees the prompt and the tokens
    generated before it; the tokens before it do not see it. This is the factorization order in
    which the prompt comes first and the others follow in the order of the text, so cached results
    stay valid.

    Args:
        model: The model.
    """

    def read_prompts(self, token_ids: Tensor, num_padding: Tensor) -> tuple[Tensor, Any]:
        """Reads prompts, as `Decoder.read_prompts` says."""
        rows = ops.arange(self.num_rows, dtype="int32")[None]
        is_real = rows >= ops.expand_dims(num_padding, 1)
        self.step_position_keys = self._position_keys(ops.zeros((1, self.num_rows, 1)))
        empty = self._empty(ops.shape(token_ids)[0])
        state = empty, is_real, ops.zeros((), "int32")
        return self.read(token_ids, state, self.step_position_keys)

    def read_tokens(self, token_ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Reads one more token of each row, as `Decoder.read_tokens` says."""
        return self.read(ops.expand_dims(token_ids, 1), state, self.step_position_keys)

    @staticmethod
    def _reader(model, write=ops.slice_update):
        backbone = model.backbone

        def read(token_ids, state, position_keys):
            keys_and_values, is_real, first = state
            batch_size, length = ops.shape(token_ids)
            content = backbone.token_embedding(token_ids)
            query = model.mask_embedding(ops.zeros((batch_size, 1), "int32"))
            # The rows of the content stream, and one of the query stream at the next position.
            positions = ops.tile(first + ops.arange(length + 1)[None], (batch_size, 1))
            # New tokens: tokens of the prompt see each other, a generated token sees itself.
            visible = ops.arange(ops.shape(is_real)[1])[None, None] < first + length
            streams, kept = _run_with_cache(
                backbone,
                ops.concatenate([content, query], axis=1),
                keys_and_values,
                position_keys,
                lambda block, streams: streams[:, :length],
                extend=lambda kept, new: write(kept, (0, 0, first, 0), new),
                attention_mask=ops.logical_and(visible, is_real[:, None]),
                target_positions=positions,
            )
            query = streams[:, length:]
            logits = model.logit_bias(backbone.token_embedding(query, reverse=True))
            return ops.log_softmax(logits[:, 0]), (kept, is_real, first + length)

        return read


def _written(kept, start, new):
    """`ops.slice_update` along the length, with operations of every TensorFlow runtime."""
    first = start[_LENGTH_AXIS]
    end = first + ops.shape(new)[_LENGTH_AXIS]
    return ops.concatenate([kept[:, :, :first], new, kept[:, :, end:]], axis=_LENGTH_AXIS)


def _run_with_cache(
    backbone, stream, keys_and_values, position_keys, context_of, extend, **attention_arguments
):
    """Runs the blocks on new rows, with the keys and values of earlier rows.

    Args:
        backbone: The backbone.
        stream: `(batch, rows, hidden_dim)`, the new rows.
        keys_and_values: List of the pairs of keys and values of each block.
        position_keys: List of the position keys of each block.
        context_of: Function of a block and its input stream that returns the rows to
            attend to.
        extend: Function of the cached keys (or values) and the new ones that returns both, joined.
        **attention_arguments: As in `RelativeMultiHeadAttention.attend`, for all blocks.

    Returns:
        The output of the last block, and a list of the extended keys and values.
    """
    biases = backbone.attention_biases
    biases = None if biases is None else biases(stream)
    extended = []
    for i, block in enumerate(backbone.blocks):
        new = block.attention.project_content(context_of(block, stream))
        key, value = map(extend, keys_and_values[i], new)
        attended = block.attention.attend(
            block.query_of(stream),
            key,
            value,
            position_keys[i],
            attention_biases=biases,
            **attention_arguments,
        )
        stream = block.finish(stream, attended)
        extended.append((key, value))
    return stream, extended

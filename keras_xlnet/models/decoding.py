"""What follows a sequence, token by token: keys and values are kept, and nothing is recomputed.

A decoder has the methods `reserve`, `start`, `step` and `reorder`. `start` and `step` return
log-probabilities `(batch, vocabulary_size)` of the next token as a NumPy array, and a state.
"""

import numpy as np
from keras import ops

from keras_xlnet.compat.compiled_function import compiled
from keras_xlnet.models.token_lists import pad_rows, rounded

_BATCH_AXIS = 1  # Of keys and values: (heads, batch, length, head_dim).


class CausalDecoder:
    """Decodes with a `TransformerXLLanguageModel`.

    The state is the keys and values of the last `memory_length` tokens, as the model has them when
    it reads the prompt as one segment and then one token at a time, with memory. A model without
    memory keeps all tokens.

    Args:
        model: The model.
    """

    def __init__(self, model):
        self.model = model
        self.num_rows = None
        self.read = model.derived.setdefault("read", compiled(self._reader(model), model))

    def reserve(self, prompt_length, max_new_tokens):
        """Sets how many tokens the state has room for."""
        self.num_rows = self.model.memory_length or rounded(rounded(prompt_length) + max_new_tokens)

    def start(self, prompts):
        """Reads prompts, a list of int arrays."""
        model, batch_size = self.model, len(prompts)
        shape = (model.num_heads, batch_size, self.num_rows, model.head_dim)
        empty = [ops.zeros(shape, model.compute_dtype) for _ in range(2 * model.num_layers)]
        token_ids = pad_rows(prompts, side="left")
        length = token_ids.shape[1]
        num_padding = np.array([[length - len(prompt)] for prompt in prompts])
        is_token = np.arange(length) >= num_padding
        is_real, may_attend = np.zeros((batch_size, self.num_rows), bool), is_token
        if model.attend_to_empty_memory:
            empty = self._of_zero_memory(batch_size)
            # Padding stands for the newest rows of the empty memory.
            is_real = np.arange(self.num_rows) >= num_padding
            may_attend = np.arange(length) >= num_padding - self.num_rows
        return self._advance(token_ids, is_token, may_attend, (empty, is_real))

    def step(self, token_ids, state):
        """Reads one more token of each row, an int array `(batch,)`."""
        is_token = token_ids[:, None] >= 0
        return self._advance(token_ids[:, None], is_token, is_token, state)

    def reorder(self, state, rows):
        """Returns the state with other rows, an int array."""
        keys_and_values, is_real = state
        taken = [ops.take(x, rows, axis=_BATCH_AXIS) for x in keys_and_values]
        return taken, ops.take(is_real, rows, axis=0)

    def _advance(self, token_ids, is_token, may_attend, state):
        rows = map(ops.convert_to_tensor, (token_ids, is_token, may_attend, state[1]))
        log_probs, *state = self.read(*rows, state[0])
        return ops.convert_to_numpy(log_probs), tuple(state)

    def _of_zero_memory(self, batch_size):
        """Keys and values of memory rows that are zero."""
        model = self.model
        memory = ops.zeros((batch_size, self.num_rows, model.hidden_dim), model.compute_dtype)
        positions = model.position_encoding(memory)
        found = []
        for block in model.blocks:
            key, value, _ = block.attention.project_context(block.join(memory), positions)
            found += [key, value]
        return found

    @staticmethod
    def _reader(model):
        def read(token_ids, is_token, may_attend, is_real, keys_and_values):
            content, tables, projections = model.token_embedding(token_ids, return_weights=True)
            num_rows = keys_and_values[0].shape[2]
            # Of it only the length is used.
            memory = ops.zeros((1, num_rows, 1))
            positions = model.position_encoding(content, memory=memory)
            attention_mask, _ = model.attention_mask(
                content, padding_mask=may_attend, memory=memory, memory_mask=is_real
            )
            biases = None if model.attention_biases is None else model.attention_biases(positions)
            kept = []
            for i, block in enumerate(model.blocks):
                # Zeros at padding, for an empty memory that is attended to.
                rows = ops.where(ops.expand_dims(is_token, -1), content, ops.zeros_like(content))
                *new, position_key = block.attention.project_context(block.join(rows), positions)
                key, value = (
                    ops.concatenate([old, x], axis=2)
                    for old, x in zip(keys_and_values[2 * i : 2 * i + 2], new, strict=True)
                )
                content = block.attend(
                    content,
                    key,
                    value,
                    position_key,
                    attention_mask=attention_mask,
                    attention_biases=biases,
                )
                kept += [x[:, :, -num_rows:] for x in (key, value)]
            shared = model.shared_weights(tables, projections)
            log_probs = model.softmax(content[:, -1:], **shared)[:, 0]
            is_real = ops.concatenate([is_real, may_attend], axis=1)[:, -num_rows:]
            return log_probs, kept, is_real

        return read


class PermutationDecoder:
    """Decodes with an `XLNetPermutationLM`, from left to right after the prompt.

    All tokens of the prompt see each other. A generated token sees the prompt and the tokens
    generated before it; the tokens before it do not see it. That is the factorization order in
    which the prompt comes first and the others follow in the order of the text, so nothing that
    was computed changes.

    Args:
        model: The model.
    """

    def __init__(self, model):
        self.model = model
        self.num_rows = None
        self.read = model.derived.setdefault("read", compiled(self._reader(model), model))

    def reserve(self, prompt_length, max_new_tokens):
        """Sets how many tokens the state has room for."""
        self.num_rows = rounded(rounded(prompt_length) + max_new_tokens)

    def start(self, prompts):
        """Reads prompts, a list of int arrays."""
        backbone = self.model.backbone
        token_ids = pad_rows(prompts, side="left")
        shape = (backbone.num_heads, len(prompts), self.num_rows, backbone.head_dim)
        empty = [ops.zeros(shape, backbone.compute_dtype) for _ in range(2 * backbone.num_layers)]
        length = token_ids.shape[1]
        is_padding = np.arange(self.num_rows) < np.array([[length - len(p)] for p in prompts])
        is_real = ops.convert_to_tensor(~is_padding)
        return self._advance(token_ids, (0, empty, is_real))

    def step(self, token_ids, state):
        """Reads one more token of each row, an int array `(batch,)`."""
        return self._advance(token_ids[:, None], state)

    def reorder(self, state, rows):
        """Returns the state with other rows, an int array."""
        first, keys_and_values, is_real = state
        taken = [ops.take(x, rows, axis=_BATCH_AXIS) for x in keys_and_values]
        return first, taken, ops.take(is_real, rows, axis=0)

    def _advance(self, token_ids, state):
        first, keys_and_values, is_real = state
        log_probs, keys_and_values = self.read(
            ops.convert_to_tensor(token_ids),
            ops.convert_to_tensor(first, "int32"),
            keys_and_values,
            is_real,
        )
        state = first + token_ids.shape[1], keys_and_values, is_real
        return ops.convert_to_numpy(log_probs), state

    @staticmethod
    def _reader(model):
        backbone = model.backbone

        def read(token_ids, first, keys_and_values, is_real):
            batch_size, length = token_ids.shape
            num_rows = keys_and_values[0].shape[2]
            content = backbone.token_embedding(token_ids)
            query = model.mask_embedding(ops.zeros((batch_size, 1), "int32"))
            whole = ops.zeros((batch_size, num_rows, 1))
            positions = backbone.position_encoding(whole)
            biases = backbone.attention_biases
            biases = None if biases is None else biases(positions)
            # The rows of the content stream, and one of the query stream at the next position.
            targets = ops.tile(first + ops.arange(length + 1)[None], (batch_size, 1))
            # New tokens: those of the prompt see each other, a generated one sees itself.
            visible = ops.arange(num_rows)[None, None] < first + length
            mask = ops.logical_and(visible, is_real[:, None])
            kept = []
            for i, block in enumerate(backbone.blocks):
                *new, position_key = block.attention.project_context(content, positions)
                key, value = (
                    ops.slice_update(old, (0, 0, first, 0), x)
                    for old, x in zip(keys_and_values[2 * i : 2 * i + 2], new, strict=True)
                )
                streams = block.attend(
                    ops.concatenate([content, query], axis=1),
                    key,
                    value,
                    position_key,
                    attention_mask=mask,
                    target_positions=targets,
                    attention_biases=biases,
                )
                content, query = streams[:, :length], streams[:, length:]
                kept += [key, value]
            logits = model.logit_bias(backbone.token_embedding(query, reverse=True))
            return ops.log_softmax(logits[:, 0]), kept

        return read

"""Inputs of a functional model that may be omitted.

Upstream: `keras.Input(optional=True)` lets a caller pass `None`, which layers then receive. There
are no defaults, and a key that is missing from a dict of inputs is an error.
Reproduction: docs/upstream.md, "Optional inputs cannot be omitted".
Delete this file when: functional models take defaults for inputs.
"""

from typing import Any

import keras
from keras import ops

from keras_xlnet.types import Tensor

_REQUIRED = ("token_ids", "permutation_mask", "target_positions", "target_mask")


class OptionalInputs:
    """Mixin of functional models: inputs that are not given get defaults.

    The defaults mean: one segment, no padding, an empty memory. So one graph serves all calls.

    A model lists in `_inputs_without_default` what its graph does not take, but its `call` does.
    """

    _inputs_without_default: tuple[str, ...] = ()

    def __call__(self, inputs: dict[str, Tensor], *args: Any, **kwargs: Any) -> Any:
        return super().__call__(self._complete(inputs), *args, **kwargs)

    def call(
        self,
        inputs: dict[str, Tensor],
        training: bool | None = None,
        mask: Any = None,
        **kwargs: Any,
    ) -> Any:
        # `stateless_call`, with which JAX trains, does not go through `__call__`.
        return super().call(self._complete(inputs), training=training, mask=mask, **kwargs)

    def _complete(self, inputs):
        self._check_keys(inputs)
        inputs = {
            key: value if isinstance(value, keras.KerasTensor) else ops.convert_to_tensor(value)
            for key, value in inputs.items()
            if value is not None
        }
        completed = {
            key: inputs[key] if key in inputs else self._default(key, inputs) for key in self.input
        }
        others = {key: inputs[key] for key in self._inputs_without_default if key in inputs}
        return completed | others

    def _check_keys(self, inputs):
        expected = [*self.input, *self._inputs_without_default]
        required = [key for key in expected if key in _REQUIRED]
        if not isinstance(inputs, dict) or any(inputs.get(key) is None for key in required):
            given = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
            raise ValueError(
                f"`inputs` must be a dict with {_quoted(required)} and any of {expected}. "
                f"Received: {given}"
            )
        unknown = sorted(set(inputs) - set(expected))
        if unknown:
            hint = "" if "memory" in expected else " (memory needs `memory_length`)"
            raise ValueError(
                f"`inputs` has keys that this model does not take: {unknown}. "
                f"Expected: {expected}{hint}"
            )

    def _default(self, key, inputs):
        token_ids = inputs["token_ids"]
        if key == "memory":
            return self._no_memory(token_ids)
        if key == "reset_memory":
            return ops.zeros_like(token_ids[:, 0], dtype="bool")
        like = token_ids
        if key.startswith("memory"):
            memory = inputs["memory"] if "memory" in inputs else self._no_memory(token_ids)
            like = memory[:, 0, :, 0]
        if key.endswith("mask"):
            return ops.ones_like(like, dtype="bool")
        return ops.zeros_like(like, dtype="int32")

    def _no_memory(self, token_ids):
        """Memory of length 0, for a batch size that may be unknown."""
        _, num_layers, _, hidden_dim = self.input["memory"].shape
        rows = ops.zeros_like(token_ids[:, :0], dtype=self.input["memory"].dtype)
        return ops.tile(rows[:, None, :, None], (1, num_layers, 1, hidden_dim))


def _quoted(names):
    return " and ".join(f"`{name}`" for name in names)

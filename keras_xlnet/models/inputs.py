"""Inputs of a functional model that may be omitted.

Keras' `keras.Input(optional=True)` has no defaults: docs/upstream.md, "Optional inputs cannot be
omitted".
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_xlnet.arguments import as_values, check_range
from keras_xlnet.types import Tensor

_REQUIRED = ("token_ids", "permutation_mask", "target_positions", "target_mask")


def complete_inputs(
    inputs: dict[str, Tensor],
    expected: dict[str, keras.KerasTensor],
    default: Callable[[str, dict[str, Tensor]], Tensor],
    others: Sequence[str] = (),
) -> dict[str, Tensor]:
    """Returns the inputs of a functional model, with defaults for those that are omitted.

    So one graph serves all calls.

    Args:
        inputs: Dict of tensors, arrays or `None`s.
        expected: The `input` of the model, a dict.
        default: Function of the name of an input and of the given inputs, such as `default_input`.
        others: Names of inputs that the `call` of the model takes but its graph does not.

    Raises:
        ValueError: If a required input is missing, or the model does not take an input.
    """
    _check_keys(inputs, [*expected, *others])
    inputs = {
        key: value if isinstance(value, keras.KerasTensor) else ops.convert_to_tensor(value)
        for key, value in inputs.items()
        if value is not None
    }
    completed = {key: inputs[key] if key in inputs else default(key, inputs) for key in expected}
    return completed | {key: inputs[key] for key in others if key in inputs}


def _check_keys(inputs, expected):
    required = [key for key in expected if key in _REQUIRED]
    if not isinstance(inputs, dict) or any(inputs.get(key) is None for key in required):
        given = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
        raise ValueError(
            f"`inputs` must be a dict with {_quoted(required)} and any of {expected}. For text, "
            f"call `predict`, or pass `model.preprocessor.encode(x).features`. Received: {given}"
        )
    unknown = sorted(set(inputs) - set(expected))
    if unknown:
        hint = "" if "memory" in expected else " (memory needs `memory_length`)"
        if "packing" in unknown:
            hint = " (packing needs no `memory_length`, `bidirectional_data` or `pooling='pair'`)"
        raise ValueError(
            f"`inputs` has keys that this model does not take: {unknown}. "
            f"Expected: {expected}{hint}"
        )


def default_input(
    key: str, inputs: dict[str, Tensor], expected: dict[str, keras.KerasTensor]
) -> Tensor:
    """Returns the default of an input: one segment, no padding, an empty memory.

    Args:
        key: String, the name of the input.
        inputs: Dict of the inputs that were given, among them `token_ids`.
        expected: The `input` of the model, a dict.
    """
    token_ids = inputs["token_ids"]
    if key == "memory":
        return _no_memory(token_ids, expected["memory"])
    if key == "reset_memory":
        return ops.zeros_like(token_ids[:, 0], dtype="bool")
    like = token_ids
    if key.startswith("memory"):
        has_memory = "memory" in inputs
        memory = inputs["memory"] if has_memory else _no_memory(token_ids, expected["memory"])
        like = memory[:, 0, :, 0]
    if key.endswith("mask"):
        return ops.ones_like(like, dtype="bool")
    return ops.zeros_like(like, dtype="int32")


def _no_memory(token_ids, memory):
    """Memory of length 0, for a batch size that may be unknown."""
    _, num_layers, _, hidden_dim = memory.shape
    rows = ops.zeros_like(token_ids[:, :0], dtype=memory.dtype)
    return ops.tile(rows[:, None, :, None], (1, num_layers, 1, hidden_dim))


def check_ranges(x: Any, vocabulary_size: int) -> None:
    """Raises `ValueError` if the ids or positions of arrays are out of range.

    Args:
        x: The inputs of a model. Traced tensors, datasets and others are not checked.
        vocabulary_size: Int, the number of token ids.
    """
    ids = as_values(x.get("token_ids")) if isinstance(x, dict) else None
    if ids is None:
        return
    check_range("token_ids", ids, 0, vocabulary_size - 1, f"vocabulary_size={vocabulary_size}")
    length = ids.shape[-1]
    for key, low in (("target_positions", -1), ("start_positions", 0), ("cls_index", 0)):
        check_range(key, as_values(x.get(key)), low, length - 1, f"length {length}")
    check_range("packing", as_values(x.get("packing")), -1, ids.size - 1, f"{ids.size} token_ids")


def _quoted(names):
    return " and ".join(f"`{name}`" for name in names)

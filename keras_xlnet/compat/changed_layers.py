"""Detects changes to layers of a model, so that its functions are compiled again.

Upstream: `predict`, `evaluate` and `fit` keep the functions that they have compiled. Models do not
notice `enable_lora`, `quantize`, `trainable` and `dtype_policy` of a layer inside. They continue to
compute with the old weights (TensorFlow), or exchange weights of the same shape (JAX).
Without it: after `enable_lora` of a layer with trained matrices, `predict` returns the old
probabilities (1e-4 off with layers of width 16); with it, the difference from a call is 0.
Reproduction: docs/upstream.md, "Changed layers keep compiled functions".
Delete this file when: `predict` after `layer.enable_lora` equals a call.
"""

import operator
from typing import Any

_is_trained = operator.attrgetter("_trainable")
# Attributes that are constants in a compiled function.
_CONSTANTS = ("_dtype_policy", "_trainable", "lora_alpha", "activation", "rate")


def layers_changed(model: Any) -> bool:
    """Returns whether a layer was changed since the last call, `True` in the first call."""
    # In the dict, because Keras would track attributes. A built model keeps its layers.
    state = model.__dict__
    if "_noticed_layers" not in state:
        state["_noticed_layers"] = [
            (vars(layer), layer._trainable_variables, layer._non_trainable_variables)
            for layer in model._flatten_layers()
        ]
    found = _state_of(state["_noticed_layers"])
    if found == state.get("_noticed"):
        return False
    state["_noticed"] = found
    return True


def _state_of(layers):
    """Returns everything that compiled functions depend on, in 50 microseconds for two blocks."""
    state: list[Any] = []
    for attributes, trainable, others in layers:
        state += map(attributes.get, _CONSTANTS)
        state += map(id, trainable)
        state += map(_is_trained, trainable)
        state += map(id, others)
    return state

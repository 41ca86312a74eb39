"""Notices that a layer of a model was changed, so that its functions are compiled again.

Upstream: `predict`, `evaluate` and `fit` keep functions that were compiled before. `enable_lora`,
`quantize`, `trainable` and `dtype_policy` of a layer do not reach the models that the layer is in,
so these go on computing with the old weights (TensorFlow), or take one weight for another of the
same shape (JAX).
Reproduction: docs/upstream.md, "Changed layers keep compiled functions".
Delete this file when: `predict` after `layer.enable_lora` equals a call.
"""

import operator
from typing import Any

_is_trained = operator.attrgetter("_trainable")
# Attributes that a compiled function holds as constants.
_CONSTANTS = ("_dtype_policy", "_trainable", "lora_alpha", "activation", "rate")


def layers_changed(model: Any) -> bool:
    """Returns whether a layer of a model was changed since the last call, or the first one."""
    # In the dict, as Keras would track attributes. A model that is built keeps its layers.
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
    """Returns all that compiled functions depend on, in some 50 microseconds for two blocks."""
    state: list[Any] = []
    for attributes, trainable, others in layers:
        state += map(attributes.get, _CONSTANTS)
        state += map(id, trainable)
        state += map(_is_trained, trainable)
        state += map(id, others)
    return state

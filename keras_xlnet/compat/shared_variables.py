"""Gives a built layer the variables of another layer.

Upstream: a layer that is built refuses variables as attributes, and Keras has no other way to make
two layers use one variable.
Without it: five adapters of one preset hold five copies of the same backbone.
Reproduction: docs/upstream.md, "Built layers cannot share a variable".
Delete this file when: a variable can be assigned to an attribute of a built layer.
"""

from typing import Any


def share_variables(model: Any, original: Any) -> None:
    """Replaces the trainable variables of a model by those of another with the same layers.

    The matrices of LoRA are left out: each model has its own. All replaced variables are trainable
    afterwards.
    """
    for layers in zip(model._flatten_layers(), original._flatten_layers(), strict=True):
        _share(*layers)


def _share(layer, original):
    variables = [v for v in original._trainable_variables if not v.name.startswith("lora_")]
    own = list(layer._trainable_variables)
    replaced = {id(old): new for old, new in zip(own, variables, strict=True)}
    for variable in own:
        layer._untrack_variable(variable)
    is_locked = layer._tracker.locked
    layer._tracker.unlock()
    for variable in variables:
        variable.trainable = True  # The tracker tells by it.
        layer._track_variable(variable)
    if is_locked:
        layer._tracker.lock()
    for name, value in list(vars(layer).items()):
        if id(value) in replaced:
            object.__setattr__(layer, name, replaced[id(value)])

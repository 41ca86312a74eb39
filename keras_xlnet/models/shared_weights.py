"""Backbones that share their weights, and have LoRA of their own."""

import weakref
from typing import Any

from keras_xlnet.compat.sublayers import RESTORED
from keras_xlnet.preset_files.adapter_weights import check_not_quantized


def with_shared_weights(backbone: Any, **arguments: Any) -> Any:
    """Returns a backbone with the same variables, frozen in both, and without LoRA.

    LoRA of one of them does not change the other. `models_of` finds the models of both.

    Args:
        backbone: An `XLNetBackbone` that is not quantized.
        **arguments: Other arguments of the class that do not change the weights.

    Raises:
        ValueError: If it is quantized.
    """
    check_not_quantized(backbone)
    config = {key: value for key, value in backbone.get_config().items() if key not in RESTORED}
    shared = type(backbone).from_config({**config, **arguments})
    layers = zip(shared._flatten_layers(), backbone._flatten_layers(), strict=True)
    for layer, original in layers:
        _share(layer, original)
    for weight in shared.weights:
        weight.trainable = False
    shared.vocabulary_sha256 = backbone.vocabulary_sha256
    shared.trained_from = backbone.trained_from
    vars(shared)["_models"] = vars(backbone).setdefault("_models", weakref.WeakValueDictionary())
    return shared


def _share(layer, original):
    """Replaces the variables of a layer. Those that could be trained stay so, for configs."""
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

"""Backbones that share their weights, and have LoRA of their own."""

import weakref
from typing import Any

from keras_xlnet.compat.shared_variables import share_variables
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
    share_variables(shared, backbone)
    for weight in shared.weights:
        weight.trainable = False
    shared.vocabulary_sha256 = backbone.vocabulary_sha256
    shared.trained_from = backbone.trained_from
    vars(shared)["_models"] = vars(backbone).setdefault("_models", weakref.WeakValueDictionary())
    return shared

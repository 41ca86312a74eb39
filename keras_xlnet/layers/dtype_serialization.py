"""Keeps quantized sublayers quantized when a composite layer is rebuilt from its config."""

import keras


def serialize_dtype(layer):
    """The `dtype` entry of a composite layer's config.

    Keras stores one policy for a composite layer and forgets those of its sublayers, so a
    quantized one cannot be loaded again: "expected 1 variables, received 2". A policy map by
    sublayer path, which every sublayer of ours is given as its `dtype`, keeps them.

    Args:
        layer: A `keras.Layer` that hands its own `dtype_policy` to its sublayers.

    Returns:
        A serialized `DTypePolicy`, or `DTypePolicyMap` if any sublayer is quantized.
    """
    policy = layer.dtype_policy
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        policy = policy.default_policy
    quantized = {
        sublayer.path: _own_policy(sublayer)
        for sublayer in layer._flatten_layers(include_self=False)
        if sublayer.quantization_mode is not None
    }
    if quantized:
        policy = keras.dtype_policies.DTypePolicyMap(policy, quantized)
    return keras.dtype_policies.serialize(policy)


def _own_policy(layer):
    policy = layer.dtype_policy
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        return policy[layer.path]
    return policy

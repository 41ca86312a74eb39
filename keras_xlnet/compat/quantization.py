"""Keeps quantized sublayers quantized when a composite layer is made again from its config.

Upstream: the config of a composite layer holds its own dtype policy, not those of its sublayers.
So a quantized one cannot be loaded: "expected 1 variables, received 2".
Reproduction: docs/upstream.md, "Quantized sublayers are lost".
Delete this file when: that one is quantized, once it is built.
"""

from typing import TYPE_CHECKING, Any

import keras

from keras_xlnet.compat.quick_deletion import quick_deletion

if TYPE_CHECKING:
    from typing_extensions import Self


class RestoresQuantization:
    """Mixin of composite layers and models whose configs say which sublayers are quantized.

    A layer made from such a config quantizes these sublayers when it is built, before weights are
    loaded. Layers call `restore_quantization` at the end of `build`.
    """

    _quantization = None

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.quantization_config()}

    def quantization_config(self) -> dict[str, Any]:
        """Returns `{"quantization": {path of sublayer: policy}}`, or `{}` without quantization."""
        policies = {
            path: keras.dtype_policies.serialize(sublayer.dtype_policy)
            for path, sublayer in _sublayers(self)
            if sublayer.quantization_mode is not None
        }
        return {"quantization": policies} if policies else {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Self":
        config = dict(config)
        quantization = config.pop("quantization", None)
        layer = super().from_config(config)
        layer._quantization = quantization
        if layer.built:
            layer.restore_quantization()
        return layer

    def restore_quantization(self) -> None:
        """Quantizes the sublayers that the config names. Their weights are not loaded yet."""
        if self._quantization:
            sublayers = dict(_sublayers(self))
            with quick_deletion():
                for path, policy in self._quantization.items():
                    # Assigning a quantized policy to a layer that is built quantizes it.
                    sublayers[path].dtype_policy = keras.dtype_policies.deserialize(policy)
            self._quantization = None


def _sublayers(layer, prefix=""):
    """Yields (path below `layer`, sublayer). Paths are made of names, which configs keep."""
    for sublayer in layer._flatten_layers(include_self=False, recursive=False):
        path = prefix + sublayer.name
        yield path, sublayer
        yield from _sublayers(sublayer, path + "/")

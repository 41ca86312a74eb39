"""Keeps quantized sublayers quantized when a composite layer is rebuilt from its config."""

import keras


class RestoresQuantization:
    """Mixin of composite layers and models: their configs remember what is quantized in them.

    Keras keeps the policy of a composite layer but not those of its sublayers, so a quantized one
    cannot be loaded again ("expected 1 variables, received 2"). With this mixin the config says
    which sublayers are quantized, and a layer made from it quantizes them as soon as it is built,
    before weights are loaded. Layers call `restore_quantization` at the end of `build`.
    """

    _quantization = None

    def get_config(self):
        return {**super().get_config(), **self.quantization_config()}

    def quantization_config(self):
        """`{"quantization": {path of sublayer: policy}}`, or `{}` if nothing is quantized."""
        policies = {
            path: keras.dtype_policies.serialize(sublayer.dtype_policy)
            for path, sublayer in _sublayers(self)
            if sublayer.quantization_mode is not None
        }
        return {"quantization": policies} if policies else {}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        quantization = config.pop("quantization", None)
        layer = super().from_config(config)
        layer._quantization = quantization
        if layer.built:
            layer.restore_quantization()
        return layer

    def restore_quantization(self):
        """Quantizes the sublayers that the config named. Their weights are still to be loaded."""
        if self._quantization:
            sublayers = dict(_sublayers(self))
            for path, policy in self._quantization.items():
                # Assigning a quantized policy to a layer that is built quantizes it.
                sublayers[path].dtype_policy = keras.dtype_policies.deserialize(policy)
            self._quantization = None


def _sublayers(layer, prefix=""):
    """Yields (path below `layer`, sublayer), by names: these survive a round trip."""
    for sublayer in layer._flatten_layers(include_self=False, recursive=False):
        path = prefix + sublayer.name
        yield path, sublayer
        yield from _sublayers(sublayer, path + "/")

"""Keeps sublayers quantized, frozen and with LoRA when a composite layer is made again.

Upstream: (1) The config of a composite layer holds its own dtype policy and `trainable`, but not
its sublayers'. So a layer with a quantized sublayer cannot be loaded, and a layer with a frozen
sublayer or with LoRA trains all of its weights again. (2) A functional model and a composite layer
that are made with `trainable=False` do not freeze the layers inside: their weights are trained as
part of another model. (3) With TensorFlow, assigning `False` to a `trainable` that is already
`False` does nothing, even if layers inside are trainable.
Without it: a classifier with a frozen block trains 39 instead of 22 weights after loading; loading
a quantized classifier raises `ValueError` ("A total of 17 objects could not be loaded").
Reproduction: docs/upstream.md, "Changes to sublayers are lost" and "Layers in a frozen layer are
trained".
Delete this file when: configs restore sublayers, and no weight in a frozen layer is trained.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import keras

from keras_xlnet.compat.lora import KeepsLora
from keras_xlnet.compat.quick_deletion import quick_deletion

if TYPE_CHECKING:
    from typing_extensions import Self

#: Keys of configs: the changes to sublayers.
RESTORED = ("quantization", "lora", "trainability")


class RestoresSublayers:
    """Mixin of composite layers and models whose configs contain the changes to their sublayers.

    A layer made from such a config changes its sublayers in the same way when it is built, before
    weights are loaded. Layers call `restore_sublayers` at the end of `build`.
    """

    _changes: dict[str, Any] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "trainable":
            set_trainable(self, value)
            return
        super().__setattr__(name, value)
        # Made with `trainable=False`, or frozen before it is built.
        if isinstance(value, keras.layers.Layer) and not getattr(self, "_trainable", True):
            set_trainable(value, False)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.sublayer_config()}

    def sublayer_config(self) -> dict[str, Any]:
        """Returns the changes since the layer was made, by the paths of its sublayers.

        Returns:
            A dict with some of `quantization` (`{path: dtype policy}`), `lora` (`{path: [rank,
            alpha]}`) and `trainability` (`{path: bool}`, also of weights, in the order in which
            they are assigned). `{}` if there are none.
        """
        sublayers = list(_sublayers(self))
        found = {
            "quantization": {
                path: keras.dtype_policies.serialize(sublayer.dtype_policy)
                for path, sublayer in sublayers
                if sublayer.quantization_mode is not None
            },
            "lora": {
                path: [sublayer.lora_rank, sublayer.lora_alpha]
                for path, sublayer in sublayers
                if isinstance(sublayer, KeepsLora) and sublayer.lora_enabled
            },
            "trainability": dict(_trainability(self, self.trainable)),
        }
        return {key: changes for key, changes in found.items() if changes}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Self":
        changes = {key: config[key] for key in RESTORED if key in config}
        layer = super().from_config({k: v for k, v in config.items() if k not in RESTORED})
        layer._changes = changes
        if layer.built:
            layer.restore_sublayers()
        return layer

    def restore_sublayers(self) -> None:
        """Applies the changes in the config to the sublayers, before weights are loaded.

        Raises:
            ValueError: If the config names a sublayer or a weight that does not exist.
        """
        changes, self._changes = self._changes or {}, None
        if not changes:
            return
        sublayers = dict(_sublayers(self))
        with quick_deletion():
            for path, policy in changes.get("quantization", {}).items():
                # Assigning a quantized policy to a built layer quantizes it.
                policy = keras.dtype_policies.deserialize(policy)
                _part(sublayers, path, self).dtype_policy = policy
        for path, (rank, alpha) in changes.get("lora", {}).items():
            sublayer = _part(sublayers, path, self)
            if not sublayer.lora_enabled:
                sublayer.enable_lora(rank, lora_alpha=alpha)
        # Last, because the other changes create weights.
        parts = variables_by_path(self) | sublayers
        for path, trainable in changes.get("trainability", {}).items():
            part = _part(parts, path, self)
            if isinstance(part, keras.Variable):
                part.trainable = trainable
            else:
                set_trainable(part, trainable)


def set_trainable(layer: keras.layers.Layer, trainable: bool) -> None:
    """Freezes or unfreezes a layer with all layers and weights in it."""
    layer._trainable = bool(trainable)
    for variable in layer._trainable_variables:
        variable.trainable = trainable
    for sublayer in layer._flatten_layers(include_self=False, recursive=False):
        set_trainable(sublayer, trainable)


def variables_by_path(layer: keras.layers.Layer) -> dict[str, keras.Variable]:
    """Returns `{path below the layer: variable}` for all variables that can be frozen.

    Paths consist of names, which configs keep. A variable of a sublayer that is in two places has
    two paths.
    """
    return {
        prefix + variable.name: variable
        for prefix, sublayer in [("", layer), *((p + "/", s) for p, s in _sublayers(layer))]
        for variable in sublayer._trainable_variables
    }


def _sublayers(layer: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields (path below `layer`, sublayer), each before its own sublayers."""
    for sublayer in layer._flatten_layers(include_self=False, recursive=False):
        path = prefix + sublayer.name
        yield path, sublayer
        yield from _sublayers(sublayer, path + "/")


def _trainability(layer, inherited, path=""):
    """Yields (path, trainable) of sublayers and weights that differ from their parent.

    Assigned in this order, from outside to inside, they restore every sublayer and weight:
    assigning to a layer assigns to everything in it.
    """
    trainable = layer.trainable
    if trainable != inherited:
        yield path, trainable
    prefix = path and path + "/"
    # Variables that were created as trainable: only these are frozen with their layer.
    for variable in layer._trainable_variables:
        if variable.trainable != trainable:
            yield prefix + variable.name, variable.trainable
    for sublayer in layer._flatten_layers(include_self=False, recursive=False):
        yield from _trainability(sublayer, trainable, prefix + sublayer.name)


def _part(parts, path, layer):
    if path not in parts:
        raise ValueError(
            f"The config of {type(layer).__name__} {layer.name!r} names {path!r}, which it does "
            "not have"
        )
    return parts[path]

from typing import Any

import keras

from keras_xlnet.compat.lora import Dense
from keras_xlnet.layers.activations import serialize_activation
from keras_xlnet.layers.initializers import clone_initializer
from keras_xlnet.registration import constructor_arguments
from keras_xlnet.types import Shape


class ConfiguredLayer(keras.layers.Layer):
    """Base class of layers that keep each constructor argument as an attribute of the same name.

    Layers with a `kernel_initializer` initialize their weights with copies of it.
    """

    def add_kernel(self, name: str, shape: Shape) -> keras.Variable:
        """Returns a new weight."""
        initializer = clone_initializer(self.kernel_initializer)
        return self.add_weight(shape=shape, initializer=initializer, name=name)

    def new_dense(self, name: str, units: int, **kwargs: Any) -> Dense:
        """Returns a new dense layer, by default with the dtype policy of this layer."""
        initializer = clone_initializer(self.kernel_initializer)
        options = {"dtype": self.dtype_policy, "name": name, **kwargs}
        return Dense(units, kernel_initializer=initializer, **options)

    def get_config(self) -> dict[str, Any]:
        arguments = {name: _serialize(getattr(self, name)) for name in constructor_arguments(self)}
        return {**super().get_config(), **arguments}


def _serialize(value):
    if isinstance(value, keras.initializers.Initializer):
        return keras.initializers.serialize(value)
    if callable(value):
        return serialize_activation(value)
    return list(value) if isinstance(value, tuple) else value

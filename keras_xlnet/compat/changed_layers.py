"""Compiles the functions of a model again when a layer in it was changed.

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


class NoticesChangedLayers:
    """Mixin of models that drops compiled functions, and `derived`, when a layer was changed."""

    @property
    def derived(self) -> dict[str, Any]:
        """Functional models and functions that are made of this one when they are needed, by name.

        They share its weights, and are neither saved nor tracked: they contain the model itself.
        """
        self._notice_changes()
        return self.__dict__["_derived"]

    def make_train_function(self, force: bool = False) -> None:
        """Creates the function that `fit` calls, as `keras.Model` does."""
        self._notice_changes()
        return super().make_train_function(force)

    def make_test_function(self, force: bool = False) -> None:
        """Creates the function that `evaluate` calls, as `keras.Model` does."""
        self._notice_changes()
        return super().make_test_function(force)

    def make_predict_function(self, force: bool = False) -> None:
        """Creates the function that `predict` calls, as `keras.Model` does."""
        self._notice_changes()
        return super().make_predict_function(force)

    def _notice_changes(self):
        # In the dict, as Keras would track attributes. A model that is built keeps its layers.
        state = self.__dict__
        if "_noticed_layers" not in state:
            state["_noticed_layers"] = [
                (vars(layer), layer._trainable_variables, layer._non_trainable_variables)
                for layer in self._flatten_layers()
            ]
        found = _state_of(state["_noticed_layers"])
        if found != state.get("_noticed"):
            state["_noticed"], state["_derived"] = found, {}
            # Not `None`: `fit` may be running, and has made its function.
            if self.train_function is not None:
                super().make_train_function(force=True)
            if self.test_function is not None:
                super().make_test_function(force=True)
            if self.predict_function is not None:
                super().make_predict_function(force=True)


def _state_of(layers):
    """Returns all that compiled functions depend on, in some 50 microseconds for two blocks."""
    state: list[Any] = []
    for attributes, trainable, others in layers:
        state += map(attributes.get, _CONSTANTS)
        state += map(id, trainable)
        state += map(_is_trained, trainable)
        state += map(id, others)
    return state

"""Adapters that a task model keeps by name: one of them is in its layers."""

import dataclasses
from typing import Any

import keras
import numpy as np

from keras_xlnet.preset_files.adapter import TAKEN, Adapter
from keras_xlnet.preset_files.adapter_weights import (
    check_not_quantized,
    check_only_lora_trains,
    head_weights,
    lora_by_path,
    lora_matrices,
    set_lora,
)


@dataclasses.dataclass(frozen=True)
class _State:
    """What an adapter changes in a model, as arrays."""

    lora: dict[str, tuple[int, float]]
    weights: dict[str, np.ndarray]
    attributes: dict[str, Any]
    trained_from: str | None


class NamedAdapters:
    """The adapters of a task model by name. `None` is the model without them.

    The active one is in the layers of the model, so that it can be trained. The others are arrays.
    """

    def __init__(self) -> None:
        self.active: str | None = None
        self._states: dict[str | None, _State] = {}

    @property
    def names(self) -> list[str]:
        """The names in the order of loading."""
        return [name for name in self._states if name is not None]

    def load(self, model: Any, adapter: Adapter, name: str) -> None:
        """Loads an adapter and makes it the active one.

        Raises:
            ValueError: If `name` is no string or taken, or as `Adapter.load_into`.
        """
        if not isinstance(name, str) or not name or name in self._states:
            raise ValueError(
                f"`name` must be a string that is not the name of an adapter of this model, "
                f"{self.names}. Received: name={name!r}"
            )
        if self._states:
            check_only_lora_trains(model)
        before = _state_of(model)
        adapter.load_into(model, merge=False)
        self._states[self.active] = before
        self._states[name] = _state_of(model)
        self.active = name

    def set(self, model: Any, name: str | None) -> None:
        """Makes an adapter the active one, or `None`.

        Raises:
            ValueError: If the model has no such adapter, is quantized, or its other weights are
                trainable.
        """
        self._check_name(name, None)
        if name == self.active:
            return
        check_not_quantized(model)
        check_only_lora_trains(model)
        self._states[self.active] = _state_of(model)
        _set_state(model, self._states[name])
        self.active = name

    def delete(self, model: Any, name: str) -> None:
        """Forgets an adapter. If it is the active one, `None` becomes active.

        Raises:
            ValueError: If the model has no such adapter.
        """
        self._check_name(name)
        if name == self.active:
            self.set(model, None)
        del self._states[name]

    def _check_name(self, name, *others):
        known = [*self.names, *others]
        if name not in known:
            raise ValueError(f"`name` must be one of {known}. Received: name={name!r}")


def _weights(model):
    return {**head_weights(model), **lora_matrices(lora_by_path(model.backbone))}


def _state_of(model):
    layers = lora_by_path(model.backbone)
    return _State(
        {path: (layer.lora_rank, layer.lora_alpha) for path, layer in layers.items()},
        {path: np.array(keras.ops.convert_to_numpy(w)) for path, w in _weights(model).items()},
        {name: getattr(model, name) for name in TAKEN if hasattr(model, name)},
        model.trained_from,
    )


def _set_state(model, state):
    set_lora(model.backbone, state.lora)
    for path, weight in _weights(model).items():
        weight.assign(state.weights[path])
    for name, value in state.attributes.items():
        setattr(model, name, value)
    model.trained_from = state.trained_from

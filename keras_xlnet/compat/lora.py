"""Saves and loads the matrices of LoRA, so that training goes on with them.

Upstream: a dense layer with LoRA is saved with the product of its matrices added to the kernel, and
when it is loaded, both matrices are zeros. The gradient of each is a product with the other, so
neither is ever trained again.
Reproduction: docs/upstream.md, "LoRA is not trained after loading".
Delete this file when: the matrices are loaded as they were, and so is the kernel.
"""

from typing import Any

import keras

# The prefix of the values that Keras does not store. Layers without LoRA load the others.
_EXACT = "exact_"


class KeepsLora:
    """Mixin of dense layers whose LoRA is saved and loaded as it is.

    Files of layers without LoRA, and those in which it was merged into the kernel, are loaded too:
    the matrices then start again, with a product of 0.
    """

    def save_own_variables(self, store: Any) -> None:
        super().save_own_variables(store)
        if self.lora_enabled:
            for variable in self.weights:
                store[_EXACT + variable.name] = variable

    def load_own_variables(self, store: Any) -> None:
        stored = {key: store[key] for key in store.keys()}
        exact = {key: stored.pop(key) for key in list(stored) if key.startswith(_EXACT)}
        if self.lora_enabled and exact:
            for variable in self.weights:
                variable.assign(exact[_EXACT + variable.name])
            return
        super().load_own_variables(stored)
        if self.lora_enabled:
            initialize = keras.initializers.HeUniform()  # That of `enable_lora`.
            self.lora_kernel_a.assign(initialize(self.lora_kernel_a.shape))

    def quantize(self, mode: str | None = None, type_check: bool = True, **kwargs: Any) -> None:
        """Quantizes the kernel. Keras refuses subclasses unless told otherwise."""
        return super().quantize(mode, type_check=False, **kwargs)


class Dense(KeepsLora, keras.layers.Dense):
    """A `keras.layers.Dense` whose LoRA is saved and loaded as it is."""

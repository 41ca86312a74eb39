"""Saves and loads the matrices of LoRA, so that training can continue with them.

Upstream: a dense layer with LoRA is saved with the product of its matrices added to the kernel, and
both matrices are zero after loading. The gradient of each is a product with the other, so neither
is ever trained again. A quantized kernel is rounded again to add the product, and `lora_alpha` in a
config is ignored.
Without it: after loading a fine-tuned classifier, training changes 0 of 8 matrices of LoRA; with
it, 7 of 8.
Reproduction: docs/upstream.md, "LoRA is not trained after loading" and "LoRA of a quantized layer
is rounded when it is saved".
Delete this file when: the matrices and the kernel are loaded unchanged.
"""

from typing import Any

import keras

from keras_xlnet.arguments import check_number, check_positive_int
from keras_xlnet.compat.quick_deletion import quick_deletion

# The prefix of values that Keras does not store. Layers without LoRA load the other values.
_EXACT = "exact_"


class KeepsLora:
    """Mixin of layers whose LoRA is saved and loaded unchanged.

    Files of layers without LoRA, or with LoRA merged into the kernel, can be loaded too: the
    matrices then start again, with a product of 0.
    """

    def enable_lora(self, rank: int, lora_alpha: float | None = None, **kwargs: Any) -> None:
        """Adds the matrices of LoRA, as the layer of Keras does."""
        self.check_lora(rank, lora_alpha)
        if lora_alpha is None and rank == self.lora_rank:
            lora_alpha = self.lora_alpha  # From the config.
        super().enable_lora(rank, lora_alpha=lora_alpha, **kwargs)

    def disable_lora(self) -> None:
        """Removes the matrices of a dense layer, which the layer of Keras keeps for good."""
        with quick_deletion():
            del self.lora_kernel_a, self.lora_kernel_b
        self.lora_enabled, self.lora_rank, self.lora_alpha = False, None, None

    def check_lora(self, rank: Any, lora_alpha: Any = None) -> None:
        """Raises `ValueError` if `enable_lora` could not add matrices with these arguments."""
        check_positive_int("rank", rank)
        if lora_alpha is not None and check_number("lora_alpha", lora_alpha) == 0:
            raise ValueError(f"`lora_alpha` must be above 0. Received: lora_alpha={lora_alpha!r}")
        if self.lora_enabled:
            raise ValueError(f"Layer {self.path!r} has LoRA already, of rank {self.lora_rank}")
        if self.quantization_mode not in (None, "int8", "int4"):
            raise ValueError(
                f"LoRA needs a layer that is not quantized, or in 'int8' or 'int4'. Received: "
                f"{self.path!r}, quantized in {self.quantization_mode!r}"
            )

    def save_own_variables(self, store: Any) -> None:
        # Keras would add the product to a quantized kernel, and round it again.
        if not (self.lora_enabled and self.quantization_mode):
            super().save_own_variables(store)
        if self.lora_enabled:
            for variable in self.weights:
                store[_EXACT + variable.name] = variable

    def load_own_variables(self, store: Any) -> None:
        stored = {key: store[key] for key in store.keys()}
        exact = {key: stored.pop(key) for key in list(stored) if key.startswith(_EXACT)}
        if exact and (self.lora_enabled or not stored):
            self._load_exact({key.removeprefix(_EXACT): value for key, value in exact.items()})
            return
        super().load_own_variables(stored)
        if self.lora_enabled:
            initialize = keras.initializers.HeUniform()  # As in `enable_lora`.
            names = ("lora_kernel_a", "lora_embeddings_a")
            first = next(variable for variable in self.weights if variable.name in names)
            first.assign(initialize(first.shape))

    def _load_exact(self, values):
        own = {variable.name: variable for variable in self.weights}
        if own.keys() != values.keys():
            raise ValueError(
                f"Layer {self.name!r} has the weights {sorted(own)}, and the file has "
                f"{sorted(values)}: enable the same LoRA and the same quantization first"
            )
        for name, variable in own.items():
            variable.assign(values[name])

    def quantize(self, mode: str | None = None, type_check: bool = True, **kwargs: Any) -> None:
        """Quantizes the kernel. Keras refuses subclasses unless told otherwise."""
        return super().quantize(mode, type_check=False, **kwargs)


class Dense(KeepsLora, keras.layers.Dense):
    """A `keras.layers.Dense` whose LoRA is saved and loaded unchanged."""


class ReversibleEmbedding(KeepsLora, keras.layers.ReversibleEmbedding):
    """A `keras.layers.ReversibleEmbedding` whose LoRA is saved and loaded unchanged."""

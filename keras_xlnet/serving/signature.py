"""A function of a SavedModel that clients call."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function with named inputs and outputs.

    Args:
        function: Function of tensors, which are passed by name. It returns a dict of tensors whose
            first axis is the batch.
        inputs: List of `tf.TensorSpec` with names.
    """

    function: Callable[..., dict[str, tf.Tensor]]
    inputs: Sequence[tf.TensorSpec]

    @property
    def specs(self) -> dict[str, tf.TensorSpec]:
        """Dict of the inputs by name."""
        return {spec.name: spec for spec in self.inputs}


def strings(*names: str, batch_size: int | None = None) -> list[tf.TensorSpec]:
    """Returns the specs of string inputs `(batch,)`."""
    return [tf.TensorSpec((batch_size,), tf.string, name) for name in names]

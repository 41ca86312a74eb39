"""Layers that return one tensor in one call and two in another.

Upstream: a functional model compares the number of its outputs from a layer with `layer.output`,
the outputs of the layer's first call in any graph.
Without it: `XLNetPermutationLM(backbone)` raises `ValueError` ("Output with path `logits` is not
connected to `inputs`"), because the backbone calls its blocks with one stream first.
Reproduction: docs/upstream.md, "Outputs that vary with the call".
Delete this file when: `keras.Model` accepts it.
"""

from typing import Any


class VaryingOutputs:
    """Mixin of layers whose number of outputs depends on the call."""

    @property
    def output(self) -> Any:
        """The symbolic outputs of the call that returned the most tensors."""
        # Keras has no public property for the calls of a layer.
        outputs = max((node.output_tensors for node in self._inbound_nodes), key=len, default=None)
        if outputs is None:
            return super().output  # Let Keras raise its error.
        return outputs[0] if len(outputs) == 1 else list(outputs)

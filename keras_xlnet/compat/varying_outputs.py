"""Layers that return one tensor in one call and two in another.

Upstream: a functional model checks that its outputs are connected with as many outputs a layer as
`layer.output` has, the outputs of the layer's first call in any graph.
Without it: `XLNetPermutationLM(backbone)` raises "Output with path `logits` is not connected to
`inputs`", because the backbone calls its blocks with one stream first. It reads the private
`_inbound_nodes`, for which Keras has no public property.
Reproduction: docs/upstream.md, "Outputs that vary with the call".
Delete this file when: `keras.Model` accepts it.
"""

from typing import Any


class VaryingOutputs:
    """Mixin of layers whose number of outputs depends on the call."""

    @property
    def output(self) -> Any:
        """The symbolic outputs of the call that returned the most tensors."""
        outputs = max((node.output_tensors for node in self._inbound_nodes), key=len, default=None)
        if outputs is None:
            return super().output  # Let Keras raise its error.
        return outputs[0] if len(outputs) == 1 else list(outputs)

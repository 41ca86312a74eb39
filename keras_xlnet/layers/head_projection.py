import math
from typing import Any

import keras
from keras import ops

from keras_xlnet.compat.lora import KeepsLora
from keras_xlnet.types import Tensor


class HeadProjection(KeepsLora, keras.layers.EinsumDense):
    """A `keras.layers.EinsumDense` to or from heads, computed as one matrix product.

    PyTorch does so by itself. On TensorFlow, Keras' layer and its gradient are one product per row
    of the batch: docs/upstream.md, "`EinsumDense` to heads multiplies row by row".

    Args:
        num_contracted: Int, how many of the last axes of the input are summed over.
        output_sizes: Tuple of ints, the sizes of the axes that replace them.
        **kwargs: Other arguments of `keras.layers.EinsumDense`.
    """

    def __init__(self, num_contracted: int, output_sizes: tuple[int, ...], **kwargs: Any) -> None:
        summed, new = "cd"[:num_contracted], "ef"[: len(output_sizes)]
        super().__init__(
            f"ab{summed},{summed}{new}->ab{new}", output_shape=(None, *output_sizes), **kwargs
        )
        self.supports_masking = True
        self.num_contracted = num_contracted

    def call(self, inputs: Tensor) -> Tensor:
        if keras.backend.backend() == "torch":
            import torch

            # One operation instead of four: each costs 70 microseconds of Python. An ONNX file
            # stores only kernels of products in int8.
            if not torch.compiler.is_exporting():
                return super().call(inputs)
        kernel = self.kernel
        summed, new = kernel.shape[: self.num_contracted], kernel.shape[self.num_contracted :]
        rows = ops.reshape(inputs, (-1, math.prod(summed)))
        outputs = ops.matmul(rows, ops.reshape(kernel, (math.prod(summed), math.prod(new))))
        return ops.reshape(outputs, (*ops.shape(inputs)[: -self.num_contracted], *new))

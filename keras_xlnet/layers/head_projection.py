import math

import keras
from keras import ops


class HeadProjection(keras.layers.EinsumDense):
    """`keras.layers.EinsumDense` to or from heads, computed as one product of two matrices.

    TensorFlow computes `(batch, length, ...)` times a kernel as a product for each of the batch,
    and the gradient of the kernel as the sum of as many.

    Args:
        num_contracted: Int, how many of the last axes of the input are summed over.
        output_sizes: Tuple of ints, the axes in their place.
        **kwargs: Of `keras.layers.EinsumDense`.
    """

    def __init__(self, num_contracted, output_sizes, **kwargs):
        summed, new = "cd"[:num_contracted], "ef"[: len(output_sizes)]
        super().__init__(
            f"ab{summed},{summed}{new}->ab{new}", output_shape=(None, *output_sizes), **kwargs
        )
        self.num_contracted = num_contracted

    def call(self, inputs):
        kernel = self.kernel
        summed, new = kernel.shape[: self.num_contracted], kernel.shape[self.num_contracted :]
        rows = ops.reshape(inputs, (-1, math.prod(summed)))
        outputs = ops.matmul(rows, ops.reshape(kernel, (math.prod(summed), math.prod(new))))
        return ops.reshape(outputs, (*ops.shape(inputs)[: -self.num_contracted], *new))

    def quantize(self, mode=None, type_check=True, **kwargs):
        """As `EinsumDense`, which refuses what inherits from it, as that may compute more."""
        return super().quantize(mode, type_check=False, **kwargs)

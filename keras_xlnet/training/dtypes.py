"""The dtype policy that trains faster on this machine."""

import functools
import time

import numpy as np
from keras import ops

# Matrix products are only a part of a training step.
_WORTHWHILE = 1.5
_SIZE = 1024


def fastest_dtype() -> str:
    """Returns the name of the dtype policy that trains faster on this machine.

    It times matrix products, which takes a fraction of a second the first time. Processors without
    instructions for bfloat16 multiply it more slowly than float32.

    Returns:
        `"mixed_bfloat16"` if products in bfloat16 take less than two thirds of their time in
        float32, otherwise `"float32"`.

    Example:

    >>> keras_xlnet.training.fastest_dtype() in ("float32", "mixed_bfloat16")
    True

    Pass it to `from_preset(..., dtype=fastest_dtype())`.
    """
    is_faster = product_seconds("float32") > _WORTHWHILE * product_seconds("bfloat16")
    return "mixed_bfloat16" if is_faster else "float32"


def products_per_second(dtype: str) -> float:
    """Returns the number of floating-point operations per second in large matrix products.

    Args:
        dtype: String, the dtype of the matrices.
    """
    return 2 * _SIZE**3 / product_seconds(dtype)


@functools.cache  # A process measures once, so that all its models have the same dtype.
def product_seconds(dtype: str, repetitions: int = 5) -> float:
    """Returns the shortest time, in seconds, of a matrix product as large as in a training step."""
    values = np.random.default_rng(0).normal(size=(_SIZE, _SIZE))
    matrix = ops.cast(ops.convert_to_tensor(values, "float32"), dtype)
    product = ops.matmul(matrix, matrix)  # The first product prepares the library.
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        product = ops.matmul(matrix, matrix)
        ops.convert_to_numpy(product[:1, :1])  # Waits for the product.
        seconds.append(time.perf_counter() - start)
    return min(seconds)

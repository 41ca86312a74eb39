"""Random bits from a counter, and dropout made of them.

    bits[n]    = mix(mix(n + h1) xor h2)          n the index of a number in the tensor,
                                                  h1, h2 two hashes of the seed
    dropout(x) = x[n] / (1 - rate)  if bits[n] >= rate * 2**32,  otherwise 0

The bits depend only on the seed and the index. So the backward pass computes them
again instead of storing a mask, and nothing is computed in sequence.

Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", for generators that
hash a counter; the function `mix` is "lowbias32" of C. Wellons (2018); Srivastava et al. 2014 for
dropout.
"""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.types import Tensor


def hash_dropout(x: Tensor, rate: float, seed: Tensor) -> Tensor:
    """Sets a random share of a tensor to zero and scales the rest up, which keeps the mean.

    On PyTorch, which has no arithmetic of unsigned integers, `keras.random.dropout` does this.

    Args:
        x: Float tensor of any shape.
        rate: Float, the share, 0 <= rate < 1.
        seed: `(2,)` integer tensor; on PyTorch also a `keras.random.SeedGenerator`.

    Returns:
        A tensor of the shape and dtype of `x`.

    Example:

    >>> seed = keras.ops.convert_to_tensor([1, 2], dtype="uint32")
    >>> dropped = keras_xlnet.ops.hash_dropout(np.ones(1000, "float32"), 0.5, seed)
    >>> sorted(set(keras.ops.convert_to_numpy(dropped).tolist()))
    [0.0, 2.0]
    """
    x = ops.convert_to_tensor(x)
    if keras.backend.backend() == "torch":
        seed = int(seed[0]) if ops.is_tensor(seed) else seed
        return keras.random.dropout(x, rate, seed=seed)
    threshold = np.uint32(min(round(rate * 2**32), 2**32 - 1))
    kept = ops.greater_equal(random_bits(ops.shape(x), seed), threshold)
    return ops.where(kept, x * ops.cast(1.0 / (1.0 - rate), x.dtype), ops.zeros((), x.dtype))


def random_bits(shape: tuple[Any, ...], seed: Tensor) -> Tensor:
    """Returns random 32 bit numbers, uniform and independent in statistical tests.

    Args:
        shape: Tuple of ints or scalar tensors, fewer than 2**31 numbers.
        seed: `(2,)` integer tensor.

    Returns:
        A uint32 tensor.
    """
    first, second = (ops.cast(seed[i], "uint32") for i in range(2))
    # Consecutive seeds differ in few bits. After mixing, any bit may differ.
    first = _mix(first + _mix(second))
    second = _mix(ops.bitwise_xor(second, _mix(first)))
    # The index is counted from the seed. Counted from 0 it would be a constant, which compilers
    # evaluate and keep in memory.
    index, stride = first, 1
    for axis, length in reversed(list(enumerate(shape))):
        along = ops.cast(ops.arange(length, dtype="int32") * stride, "uint32")
        index = index + ops.reshape(along, [-1] + [1] * (len(shape) - 1 - axis))
        stride = stride * length
    return _mix(ops.bitwise_xor(_mix(index), second))


def _mix(x):
    """A permutation of the 32 bit numbers: each bit of the result depends on all bits of `x`."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(shift)))
        x = ops.multiply(x, np.uint32(factor))
    return ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))

import keras
import numpy as np
from keras import ops

from keras_xlnet.layers.arguments import check_rate
from keras_xlnet.layers.fused import fused
from keras_xlnet.layers.replica_seed_generator import ReplicaSeedGenerator


@keras.saving.register_keras_serializable(package="keras_xlnet")
class HashDropout(keras.layers.Layer):
    """Dropout whose random bits are a hash of each number's place, and so cost next to nothing.

    On processors a third of the time of `keras.layers.Dropout` or less, and no memory: the
    backward pass makes the mask again. Replicas of a `tf.distribute` strategy draw their own masks.

    Args:
        rate: Float, the share that is set to zero, from 0 to below 1. The rest is scaled up so
            that the mean stays.
        seed: Optional int that fixes the masks.

    Call arguments:
        inputs: Float tensor of any shape.
        training: Whether anything is dropped.

    Returns:
        Tensor of the shape of `inputs`.

    Example:

    >>> dropped = keras_xlnet.layers.HashDropout(0.5, seed=1)(np.ones((2, 100)), training=True)
    >>> sorted(set(keras.ops.convert_to_numpy(dropped).ravel().tolist()))
    [0.0, 2.0]

    Source: Srivastava et al. 2014; Salmon et al. 2011 for random numbers from counters. The hash
    is "lowbias32" of C. Wellons (2018).
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate = check_rate("rate", rate)
        self.seed = seed
        self.seed_generator = ReplicaSeedGenerator(seed)
        self.supports_masking = True
        self.built = True

    def next_seed(self, training):
        """The seed of the next mask for `drop`, or `None` if nothing is to be dropped."""
        if not training or self.rate == 0:
            return None
        if keras.backend.backend() == "torch":
            return self.seed_generator
        return self.seed_generator.next()

    def call(self, inputs, training=False):
        seed = self.next_seed(training)
        return inputs if seed is None else _drop(inputs, seed, rate=self.rate, fuse=True)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}


def drop(x, seed, rate):
    """Zeros for a random share of `x`, the rest scaled up.

    PyTorch has no arithmetic of unsigned integers: there the bits are those of its generator.

    Args:
        x: Float tensor of any shape.
        seed: As `HashDropout.next_seed` returns it, or two random integers.
        rate: Float, the share.

    Returns:
        A tensor of the shape of `x`.
    """
    if keras.backend.backend() == "torch":
        seed = int(seed[0]) if ops.is_tensor(seed) else seed
        return keras.random.dropout(x, rate, seed=seed)
    threshold = np.uint32(min(round(rate * 2**32), 2**32 - 1))
    kept = ops.greater_equal(random_bits(ops.shape(x), seed), threshold)
    return ops.where(kept, x * ops.cast(1.0 / (1.0 - rate), x.dtype), ops.zeros((), x.dtype))


_drop = fused(drop)


def random_bits(shape, seed):
    """Numbers that are uniform and independent as far as statistics can tell.

    Args:
        shape: Shape of fewer than 2**31 numbers.
        seed: `(2,)` integers.

    Returns:
        A uint32 tensor.
    """
    first, second = (ops.cast(seed[i], "uint32") for i in range(2))
    # Seeds are counted up: only mixed they differ in all bits.
    first = _mix(first + _mix(second))
    second = _mix(ops.bitwise_xor(second, _mix(first)))
    # The place of each number, counted from the seed: from 0 it would be a constant, which
    # compilers evaluate and keep.
    place, stride = first, 1
    for axis, length in reversed(list(enumerate(shape))):
        along = ops.cast(ops.arange(length, dtype="int32") * stride, "uint32")
        place = place + ops.reshape(along, [-1] + [1] * (len(shape) - 1 - axis))
        stride = stride * length
    return _mix(ops.bitwise_xor(_mix(place), second))


def _mix(x):
    """A permutation of the 32 bit numbers: each bit of the result depends on all bits of `x`."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(shift)))
        x = ops.multiply(x, np.uint32(factor))
    return ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))

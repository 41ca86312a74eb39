from typing import Any

import keras

from keras_xlnet.arguments import check_rate
from keras_xlnet.compat.fused import fused
from keras_xlnet.compat.replica_seed_generator import ReplicaSeedGenerator
from keras_xlnet.layers.configured_layer import ConfiguredLayer
from keras_xlnet.ops.random import hash_dropout
from keras_xlnet.registration import register
from keras_xlnet.types import Shape, Tensor


@register
class HashDropout(ConfiguredLayer):
    """Dropout whose random bits are a hash of the index of each number.

    On a CPU it takes a third of the time of `keras.layers.Dropout` or less, and stores no mask:
    the backward pass computes it again. Every replica of a `tf.distribute` strategy draws its own
    masks.

    Args:
        rate: Float, the share of numbers that is set to zero, 0 <= rate < 1. The other numbers are
            scaled up, which keeps the mean.
        seed: Optional int that fixes the masks.

    Call arguments:
        inputs: Float tensor of any shape.
        training: Whether dropout is applied.

    Returns:
        Tensor of the shape of `inputs`.

    Example:

    >>> dropped = keras_xlnet.layers.HashDropout(0.5, seed=1)(np.ones((2, 100)), training=True)
    >>> sorted(set(keras.ops.convert_to_numpy(dropped).ravel().tolist()))
    [0.0, 2.0]

    Source: Srivastava et al. 2014; `keras_xlnet.ops.random` for the bits.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = check_rate("rate", rate)
        self.seed = seed
        self.seed_generator = ReplicaSeedGenerator(seed)
        self.supports_masking = True
        self.built = True

    def next_seed(self, training: bool | None) -> Any:
        """Returns the seed of the next mask, or `None` if dropout is not applied."""
        if not training or self.rate == 0:
            return None
        if keras.backend.backend() == "torch":
            return self.seed_generator
        return self.seed_generator.next()

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        seed = self.next_seed(training)
        if seed is None:
            return inputs
        return _drop(inputs, seed, rate=self.rate, fuse=True)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape


@fused
def _drop(x, seed, *, rate):
    return hash_dropout(x, rate, seed)

"""A map that has one element in memory at a time.

Upstream: on TensorFlow, `keras.ops.map` is `tf.map_fn` with its default of ten parallel iterations,
and has no argument to change that. Ten elements are in memory at once, which cancels the savings of
attention in chunks.
Without it: `python -m benchmarks.workarounds sequential_map` (`predict` of 6144 tokens in chunks of
128) needs 400 to 420 MiB instead of 231 to 245 on two processors.
Reproduction: docs/upstream.md, "`keras.ops.map` runs ten elements at once".
Delete this file when: `keras.ops.map` can be told to run one element at a time.
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_xlnet.lazy_modules import tf
from keras_xlnet.types import Tensor


def sequential_map(
    function: Callable[[dict[str, Tensor]], Tensor],
    elements: dict[str, Tensor],
    like: str | keras.KerasTensor,
) -> Tensor:
    """Computes `keras.ops.map(function, elements)`, one element at a time.

    Args:
        function: Function from a dict of tensors to a tensor.
        elements: Dict of tensors with the elements along the first axis.
        like: Symbolic result of `function`; or a key of `elements`, if the results have the shape
            and dtype of this tensor's elements.

    Returns:
        A tensor, the results along the first axis.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.map(function, elements)
    if isinstance(like, str):
        signature = tf.TensorSpec(elements[like].shape[1:], elements[like].dtype)
    else:
        signature = tf.TensorSpec(like.shape, like.dtype)
    return tf.map_fn(function, elements, fn_output_signature=signature, parallel_iterations=1)

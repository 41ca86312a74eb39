"""Chains of elementwise operations, compiled into one pass over memory."""

import functools

import keras
from keras import ops


def fused(function):
    """Decorator of a pure function of tensors that is cheap to compute but slow to remember.

    Called with `fuse=True` in a TensorFlow graph it becomes one XLA program, and the backward pass
    computes it again from its arguments instead of keeping what is in between. Matrix products are
    no part of it: those TensorFlow does best itself. On other backends, and eagerly, nothing
    changes. Callers fuse in training only: an exported model has to run where there is no XLA.

    Args:
        function: Function of positional tensors or `None`s and of hashable keyword arguments,
            that returns a tensor and uses no variables and no random numbers.

    Returns:
        A function that computes the same, with the keyword `fuse`.
    """

    @functools.wraps(function)
    def call(*tensors, fuse=False, **static):
        if not fuse or not _in_tensorflow_graph():
            return function(*tensors, **static)
        given = tuple(x is not None for x in tensors)
        compiled = _compiled(function, given, tuple(sorted(static.items())))
        return compiled(*(ops.convert_to_tensor(x) for x in tensors if x is not None))

    return call


def _in_tensorflow_graph():
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return not tf.executing_eagerly()


@functools.cache
def _compiled(function, given, static):
    """The XLA program of `function`, the same one for all layers, and that of its gradient."""
    import tensorflow as tf

    def compute(*tensors):
        tensors = iter(tensors)
        return function(*(next(tensors) if g else None for g in given), **dict(static))

    forward = tf.function(compute, jit_compile=True, autograph=False)

    @functools.partial(tf.function, jit_compile=True, autograph=False)
    def backward(tensors, gradient):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            output = compute(*tensors)
        return tape.gradient(output, tensors, gradient)

    @tf.custom_gradient
    def call(*tensors):
        return forward(*tensors), lambda gradient: backward(tensors, gradient)

    return call

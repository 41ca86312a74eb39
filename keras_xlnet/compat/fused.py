"""Chains of elementwise operations, compiled into one pass over memory.

Upstream: outside of XLA, TensorFlow runs elementwise operations one by one. Each reads and writes
memory, and its inputs are kept for the gradient. XLA for a whole model (`jit_compile=True`) fuses
them, but multiplies matrices more slowly than TensorFlow on a CPU, and exported models then need
XLA. TensorFlow's automatic clustering, which would find the chains, is off. The graph of a custom
gradient stays in memory forever.
Without it: `python -m benchmarks.workarounds fused` (6 layers of width 256) takes 1.2 times the
time of a processor in later steps, and 1.2 to 1.8 times in the first step of a model.
Reproduction: docs/upstream.md, "Elementwise operations are not fused on CPUs" and "A model that was
fitted stays in memory".
Delete this file when: TensorFlow clusters elementwise operations on CPUs by default.
"""

import functools
import weakref
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_xlnet.lazy_modules import tf


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a pure function of tensors that is cheap to compute and large to store.

    Called with `fuse=True` in a TensorFlow graph, the function becomes one XLA program, and the
    backward pass computes it again from its arguments. It should hold no matrix products.
    Eagerly, and on other backends, `fuse` has no effect. Use `fuse=True` in training only: an
    exported model must run without XLA.

    Args:
        function: Function of positional tensors or `None`s and of hashable keyword arguments,
            that returns a tensor. It may use no variables and no random generators.

    Returns:
        A function that computes the same, with the keyword argument `fuse`.
    """

    @functools.wraps(function)
    def call(*tensors, fuse=False, **static):
        if not fuse or not _in_tensorflow_graph():
            return function(*tensors, **static)
        given = tuple(x is not None for x in tensors)
        tensors = [ops.convert_to_tensor(x) for x in tensors if x is not None]
        # Otherwise TensorFlow would use a trace for unknown sizes, and lose the known sizes.
        specs = tuple((str(x.shape), x.dtype) for x in tensors)
        static = tuple(sorted(static.items()))
        return _compiled(function, given, specs, static, tf.distribute.has_strategy())(*tensors)

    return call


def fused_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method of a layer in the same way as `fused`.

    The method may use the weights of the layer, and call sublayers. Layers of equal configuration
    share one program: the weights are among its arguments.

    Args:
        method: Method of a `keras.layers.Layer`, of positional tensors or `None`s.

    Returns:
        A method that computes the same, with the keyword argument `fuse`.
    """

    @fused
    def compute(*tensors, key):
        layer = _LAYERS[key]
        weights, inputs = tensors[: len(layer.weights)], tensors[len(layer.weights) :]
        with keras.StatelessScope(list(zip(layer.weights, weights, strict=True))):
            return method(layer, *inputs)

    @functools.wraps(method)
    def call(layer, *tensors, fuse=False):
        if not fuse or not _in_tensorflow_graph():
            return method(layer, *tensors)
        key = configuration(layer)
        # While a program is traced, the layer that needs it is alive.
        _LAYERS[key] = layer
        weights = [weight.value for weight in layer.weights]
        return compute(*weights, *tensors, key=key, fuse=True)

    return call


# A layer of each configuration, weakly: a program holds on to no model.
_LAYERS: "weakref.WeakValueDictionary[Any, Any]" = weakref.WeakValueDictionary()


def configuration(layer: keras.layers.Layer) -> tuple[Any, ...]:
    """Returns everything that a layer's computation depends on, except the values of weights."""
    config = layer.get_config()
    arguments = {key: config[key] for key in sorted(config) if key not in ("name", "seed")}
    shapes = [(tuple(weight.shape), weight.dtype) for weight in layer.weights]
    return type(layer), repr(arguments), repr(shapes)


def _in_tensorflow_graph():
    return keras.backend.backend() == "tensorflow" and not tf.executing_eagerly()


@functools.cache
def _compiled(function, given, specs, static, has_strategy):
    """Compiles `function` and its gradient for tensors with these shapes and dtypes.

    All layers share the programs.
    """

    def compute(*tensors):
        tensors = iter(tensors)
        return function(*(next(tensors) if g else None for g in given), **dict(static))

    forward = tf.function(compute, jit_compile=True, autograph=False)

    @functools.partial(tf.function, jit_compile=True, autograph=False)
    def backward(tensors, gradient):
        floats = [x for x in tensors if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            output = compute(*tensors)
        gradients = iter(tape.gradient(output, floats, gradient))
        return [next(gradients) if x.dtype.is_floating else None for x in tensors]

    @tf.custom_gradient
    def call(*tensors):
        return forward(*tensors), lambda gradient: backward(tensors, gradient)

    # TensorFlow never deletes the graph that calls a custom gradient, with its variables. In a
    # function of its own, that graph has no variables. Replicas cannot share such a function.
    return call if has_strategy else tf.function(call, autograph=False)

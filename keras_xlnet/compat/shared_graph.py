"""The call of equal layers, traced once for all of them.

Upstream: a model of twelve equal blocks is traced twelve times, forwards and backwards, before its
first step. TensorFlow shares what is in a `tf.function` between calls, but finds variables by
identity, so that each layer would have a function of its own.
Without it: `python -m benchmarks.workarounds shared_graph` (12 layers of width 256): the first step
of a second model takes 15 to 17 s of a processor instead of 10 to 12. Later steps are the same.
Reproduction: docs/upstream.md, "Equal layers are traced one by one".
Delete this file when: Keras has a layer that repeats a block, such as `jax.lax.scan` over weights.
"""

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import keras
from keras import ops

from keras_xlnet.compat.fused import configuration
from keras_xlnet.compat.recompute import seeds_of

_Method = TypeVar("_Method", bound=Callable[..., Any])
# The attribute of a graph with the functions that are shared in it.
_FUNCTIONS = "keras_xlnet_shared_functions"
_are_shared = contextvars.ContextVar("_are_shared", default=False)


@contextlib.contextmanager
def shared_graphs(model: keras.Model) -> Iterator[None]:
    """Lets equal layers share their traces in a train step of `model` that is traced in this
    context.

    Not if XLA compiles the step. XLA takes what a shared function is called with, the batch
    included, for constants, and compiles each batch anew: constants of the function, such as the
    order of a transposition, are among its outputs, which the gradient takes.

    Args:
        model: A compiled model.
    """
    token = _are_shared.set(not model.jit_compile)
    try:
        yield
    finally:
        _are_shared.reset(token)


def shared_graph(call: _Method) -> _Method:
    """Decorates the `call` of a layer that models repeat, with the attribute
    `gradient_checkpointing`.

    Calls with `training=True` in the context `shared_graphs` share one function between layers of
    equal configuration: their weights and the states of their seed generators are its arguments.
    It is inlined, so that the graph that runs is the same. With gradient checkpointing, under a
    `tf.distribute` strategy, where variables belong to replicas, and on other backends nothing
    changes.

    Args:
        call: Method `call` with an argument `training`. It may only use the variables of the
            layer.

    Returns:
        A method with the same signature.
    """
    signature = inspect.signature(call)

    @functools.wraps(call)
    def wrapper(layer, *args, **kwargs):
        # Recomputation has functions of its own.
        if layer.gradient_checkpointing or not _is_shareable():
            return call(layer, *args, **kwargs)
        arguments = dict(signature.bind(layer, *args, **kwargs).arguments)
        if not arguments.get("training"):
            return call(layer, *args, **kwargs)
        del arguments[next(iter(arguments))]
        return _call_shared(layer, functools.partial(call, layer), arguments)

    return wrapper  # type: ignore[return-value]  # `wraps` gives it the signature of `call`.


def _is_shareable():
    if keras.backend.backend() != "tensorflow" or not _are_shared.get():
        return False
    import tensorflow as tf

    return not tf.executing_eagerly() and not tf.distribute.has_strategy()


def _call_shared(layer, call, arguments):
    """`call(**arguments)` by a function of the graph."""
    import tensorflow as tf

    names = [name for name, value in arguments.items() if ops.is_tensor(value)]
    static = {name: value for name, value in arguments.items() if name not in names}
    seeds = seeds_of(layer)
    variables = [*layer.weights, *seeds]

    def compute(*tensors):
        inputs = dict(zip(names, tensors[: len(names)], strict=True))
        values = list(zip(variables, tensors[len(names) :], strict=True))
        with keras.StatelessScope(values, initialize_variables=False) as scope:
            outputs = call(**static, **inputs)
            return outputs, [scope.get_current_value(seed) for seed in seeds]

    # The layers in a layer may have been changed one by one.
    parts = tuple(configuration(part) for part in layer._flatten_layers())
    key = (parts, tuple(names), repr(static), tuple(v.trainable for v in layer.weights))
    # An attribute goes when the graph goes. TensorFlow copies a collection to the graphs of
    # functions that are called in this one, and never deletes some of them.
    graph = tf.compat.v1.get_default_graph()
    functions = getattr(graph, _FUNCTIONS, [])
    setattr(graph, _FUNCTIONS, functions)
    function = next((known for other, known in functions if other == key), None)
    if function is None:
        function = tf.function(compute, autograph=False)
        functions.append((key, function))
    tensors = [arguments[name] for name in names] + [tf.convert_to_tensor(v) for v in variables]
    outputs, next_seeds = function(*tensors)
    for seed, value in zip(seeds, next_seeds, strict=True):
        seed.assign(value)
    return outputs

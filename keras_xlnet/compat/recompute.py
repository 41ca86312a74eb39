"""Gradient checkpointing of a layer.

Upstream: `keras.remat` is for pure functions of tensors. The second run of a layer draws other
dropout masks than the first, because the state of its seed generator has advanced, so the gradient
is wrong. On TensorFlow, weights and everything else with a gradient must be arguments.
Without it: with dropout 0.3, the gradients of the weights are wrong by 35 % of their largest entry
(median over the weights of 2 layers, at most 86 %); with it, by 0.
Reproduction: docs/upstream.md, "`remat` draws another dropout mask" and "`RematScope` fails for
keyword arguments".
Delete this file when: `keras.remat` is right for the call of a layer with weights and dropout.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import keras
from keras import ops

_Method = TypeVar("_Method", bound=Callable[..., Any])


def recomputable(call: _Method) -> _Method:
    """Decorates the `call` of a layer that has the attribute `gradient_checkpointing`.

    If it is `True`, calls with `training=True` keep only their arguments, and the backward pass
    computes the outputs again.

    Args:
        call: Method `call` with an argument `training`. It may only use the variables of the
            layer, and must return a tensor or a tuple of tensors.

    Returns:
        A method with the same signature.

    Source: Chen et al. 2016, "Training deep nets with sublinear memory cost".
    """
    signature = inspect.signature(call)

    @functools.wraps(call)
    def wrapper(layer, *args, **kwargs):
        arguments = signature.bind(layer, *args, **kwargs).arguments
        if not (layer.gradient_checkpointing and arguments.get("training")):
            return call(layer, *args, **kwargs)
        del arguments[next(iter(arguments))]
        return _call_recomputed(layer, functools.partial(call, layer), arguments)

    return wrapper  # type: ignore[return-value]  # `wraps` gives it the signature of `call`.


def _call_recomputed(layer, call, arguments):
    """Computes `call(**arguments)` by `keras.remat`."""
    names = [name for name, value in arguments.items() if _is_differentiable(value)]
    weights = layer.trainable_variables
    frozen = [(v, ops.convert_to_tensor(v.value)) for v in layer.non_trainable_weights]
    seeds = seeds_of(layer)
    # Copies, because the first run changes the seeds, and the second run needs the same seeds.
    first_seeds = [ops.copy(seed.value) for seed in seeds]

    def compute(*tensors):
        inputs = dict(zip(names, tensors[: len(names)], strict=True))
        start = [_after(value, tensors[0]) for value in first_seeds]
        values = [
            *zip(weights, tensors[len(names) :], strict=True),
            *zip(seeds, start, strict=True),
            *frozen,
        ]
        with keras.StatelessScope(values, initialize_variables=False) as scope:
            outputs = call(**{**arguments, **inputs})
            return outputs, [scope.get_current_value(seed) for seed in seeds]

    tensors = [arguments[name] for name in names]
    tensors += [ops.convert_to_tensor(v.value) for v in weights]
    outputs, next_seeds = keras.remat(compute)(*tensors)
    for seed, value in zip(seeds, next_seeds, strict=True):
        seed.assign(value)
    return outputs


def seeds_of(layer: keras.layers.Layer) -> list[keras.Variable]:
    """Returns the states of the seed generators in a layer: the variables that are not weights."""
    weights = {id(weight) for weight in layer.weights}
    return [v for v in layer.variables if id(v) not in weights]


def _is_differentiable(value):
    return ops.is_tensor(value) and keras.backend.is_float_dtype(
        keras.backend.standardize_dtype(value.dtype)
    )


def _after(value, tensor):
    """Returns `value`, with a dependency on `tensor`.

    Dropout masks depend only on a seed. Without the dependency, TensorFlow finds that the masks of
    both runs are equal, and keeps them in memory.
    """
    first = ops.reshape(tensor, (-1,))[:1]
    zero = ops.minimum(ops.sum(ops.abs(first)), 0)
    return value + ops.cast(zero, value.dtype)

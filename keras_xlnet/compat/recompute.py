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

from keras_xlnet.compat.sequential_map import sequential_map
from keras_xlnet.types import Tensor

_Method = TypeVar("_Method", bound=Callable[..., Any])
# More than a seed generator draws in one call of a model.
_DRAWS = 1024


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


def recomputed_in_chunks(
    layer: keras.layers.Layer,
    call: Callable[[dict[str, Tensor]], Tensor],
    inputs: dict[str, Tensor],
    size: int,
    output: keras.KerasTensor,
) -> Tensor:
    """Computes `call(inputs)`, `size` rows at a time. The backward pass computes each part again.

    Only the inputs and outputs of all rows are in memory, and what one part needs. Each part draws
    dropout masks of its own, the same in both passes.

    Args:
        layer: Keras layer whose variables `call` uses, some of them trainable.
        call: Function whose rows do not depend on each other.
        inputs: Dict of tensors without gradients.
        size: Int.
        output: What `call` returns, without the axis of rows.

    Source: Gao et al. 2021, "Scaling deep contrastive learning batch size under memory limited
    setup".
    """
    num_rows = ops.shape(next(iter(inputs.values())))[0]
    num_parts = (num_rows + size - 1) // size
    # The last row is repeated to fill the last part.
    rows = ops.minimum(ops.arange(num_parts * size, dtype="int32"), num_rows - 1)
    parts = {
        name: ops.reshape(ops.take(x, rows, axis=0), (num_parts, size, *ops.shape(x)[1:]))
        for name, x in inputs.items()
    }
    seeds, weights = seeds_of(layer), _values_of(layer)
    for i, seed in enumerate(seeds):
        number = ops.cast(ops.arange(num_parts + 1, dtype="int32"), seed.dtype)
        # The second number of a state counts the draws.
        draws = ops.stack([ops.zeros_like(number), number * _DRAWS], axis=-1)
        states = ops.expand_dims(seed.value, 0) + draws
        parts[f"seed_{i}"] = states[:-1]
        seed.assign(states[-1])

    def call_part(part):
        part_seeds = [part.pop(f"seed_{i}") for i in range(len(seeds))]
        return _recomputed(layer, lambda scope: call(part), [], part_seeds, weights)

    like = keras.KerasTensor((size, *output.shape), output.dtype)
    outputs = sequential_map(call_part, parts, like=like)
    return ops.reshape(outputs, (num_parts * size, *ops.shape(outputs)[2:]))[:num_rows]


def _call_recomputed(layer, call, arguments):
    """Computes `call(**arguments)` by `keras.remat`."""
    names = [name for name, value in arguments.items() if _is_differentiable(value)]
    seeds = seeds_of(layer)
    # Copies, because the first run changes the seeds, and the second run needs the same seeds.
    first_seeds = [ops.copy(seed.value) for seed in seeds]

    def call_with(scope, *inputs):
        outputs = call(**{**arguments, **dict(zip(names, inputs, strict=True))})
        return outputs, [scope.get_current_value(seed) for seed in seeds]

    inputs = [arguments[name] for name in names]
    outputs, next_seeds = _recomputed(layer, call_with, inputs, first_seeds, _values_of(layer))
    for seed, value in zip(seeds, next_seeds, strict=True):
        seed.assign(value)
    return outputs


def _values_of(layer):
    """The values of the trainable variables, and the other weights with theirs."""
    trainable = [ops.convert_to_tensor(v.value) for v in layer.trainable_variables]
    return trainable, [(v, ops.convert_to_tensor(v.value)) for v in layer.non_trainable_weights]


def _recomputed(layer, call, inputs, first_seeds, values):
    """`call(scope, *inputs)` by `keras.remat`; `scope` has the seeds and the weights."""
    (trainable, frozen), seeds = values, seeds_of(layer)

    def compute(*tensors):
        start = [_after(value, tensors[0]) for value in first_seeds]
        values = [
            *zip(layer.trainable_variables, tensors[len(inputs) :], strict=True),
            *zip(seeds, start, strict=True),
            *frozen,
        ]
        with keras.StatelessScope(values, initialize_variables=False) as scope:
            return call(scope, *tensors[: len(inputs)])

    return keras.remat(compute)(*inputs, *trainable)


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

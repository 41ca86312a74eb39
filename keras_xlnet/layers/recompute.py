"""Gradient checkpointing of a layer."""

import keras
from keras import ops


def call_recomputed(layer, call, **arguments):
    """Calls a layer so that the backward pass computes it again instead of remembering it.

    `keras.remat` does that for a function of tensors. Here the rest of what a layer is made of is
    brought into this form: what is not differentiable or `None` may not be an argument of it on
    TensorFlow, weights may only be arguments, and seeds have to be the same the second time.

    Args:
        layer: A built layer.
        call: What to call, a function of `layer` that uses no other variables.
        **arguments: Tensors and other things, the arguments of `call`.

    Returns:
        What `call(**arguments)` returns: a tensor or a tuple of tensors. Seeds have been advanced
        once.

    Source: Chen et al. 2016, "Training deep nets with sublinear memory cost".
    """
    names = [name for name, value in arguments.items() if _is_differentiable(value)]
    weights = layer.trainable_variables
    frozen = [(v, ops.convert_to_tensor(v.value)) for v in layer.non_trainable_weights]
    seeds = _seeds_of(layer)
    # Copies: otherwise the second run would see what they are advanced to.
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


def _seeds_of(layer):
    """The states of seed generators: variables that are no weights."""
    weights = {id(weight) for weight in layer.weights}
    return [v for v in layer.variables if id(v) not in weights]


def _is_differentiable(value):
    return ops.is_tensor(value) and keras.backend.is_float_dtype(
        keras.backend.standardize_dtype(value.dtype)
    )


def _after(value, tensor):
    """`value`, in a graph only to be had after `tensor`.

    Dropout masks depend on nothing but a seed: TensorFlow would see that those of the second run
    are those of the first, and remember them.
    """
    first = ops.reshape(tensor, (-1,))[:1]
    zero = ops.minimum(ops.sum(ops.abs(first)), 0)
    return value + ops.cast(zero, value.dtype)

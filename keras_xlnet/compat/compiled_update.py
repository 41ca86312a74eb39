"""The update of all weights by XLA programs, one for each shape, with dense gradients.

Upstream: (1) an optimizer is a dozen elementwise operations for each weight. TensorFlow traces and
optimizes each of them before the first step, and reads and writes memory for each in every step.
(2) The gradient of an embedding is a `tf.IndexedSlices` with an entry for each occurrence of a
token. Keras squares the entries, where it should square their sum, so Adam on TensorFlow computes
another update than on JAX and PyTorch. (3) The sum over replicas, also over one, keeps the graph of
the step in memory for ever, with the weights.
Without it: `python -m benchmarks.workarounds compiled_update` (6 layers of width 256): later steps
take 2 to 5 % longer, and 5 % at the size of XLNet-Base; the first step is the same. One program for
all weights takes 8 s of a processor to compile.
Reproduction: docs/upstream.md, (2) "Sparse gradients are squared before they are summed" and (3) "A
model that was fitted stays in memory".
Delete this file when: the three are mended, and `optimizer.apply` is compiled.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import keras

# Their update of a weight depends on its value, its gradient and its slots, and on nothing else.
_OF_KERAS = (
    keras.optimizers.SGD,
    keras.optimizers.RMSprop,
    keras.optimizers.Adam,
    keras.optimizers.AdamW,
    keras.optimizers.Adadelta,
    keras.optimizers.Adagrad,
    keras.optimizers.Adamax,
    keras.optimizers.Adafactor,
    keras.optimizers.Nadam,
    keras.optimizers.Lion,
    keras.optimizers.Lamb,
)


@contextlib.contextmanager
def compiled_update(optimizer: keras.optimizers.Optimizer | None) -> Iterator[None]:
    """Compiles with XLA what `optimizer` does in a train step that is traced in this context.

    The rest of the step is not compiled. Neither is the update in eager mode, under a
    `tf.distribute` strategy, where replicas communicate in it, or by an optimizer of unknown class,
    which may treat each weight in its own way. A class of optimizers with a method `update_group`
    is compiled: from the index of a weight it returns what its update depends on besides its
    value, its gradient and its slots.

    Args:
        optimizer: A Keras optimizer, or `None`.
    """
    nothing_to_do = keras.backend.backend() != "tensorflow"
    # The replicas of a strategy enter in turns: the first one enters first and leaves last.
    if nothing_to_do or optimizer is None or "apply" in vars(optimizer):
        yield
        return
    with _replaced(optimizer, apply=_update_with(optimizer)):
        yield


@contextlib.contextmanager
def _replaced(optimizer, **methods):
    """Replaces methods of an object, not of its class."""
    vars(optimizer).update(methods)
    try:
        yield
    finally:
        for name in methods:
            del vars(optimizer)[name]


def _update_with(optimizer):
    import tensorflow as tf

    apply = optimizer.apply
    # A `LossScaleOptimizer` has another optimizer, which updates the weights.
    updating = getattr(optimizer, "inner_optimizer", optimizer)

    def update(gradients, trainable_variables=None):
        pairs = zip(gradients, trainable_variables, strict=True)
        pairs = [(tf.convert_to_tensor(g), v) for g, v in pairs if g is not None]
        if not pairs:
            return apply(gradients, trainable_variables)  # Let Keras raise its error.
        gradients, variables = zip(*pairs, strict=True)
        if tf.executing_eagerly() or tf.distribute.has_strategy():
            return apply(gradients, variables)
        methods: dict[str, Any] = {"_all_reduce_sum_gradients": list}
        if _is_known(updating):
            if not optimizer.built:
                # Here, because the slots have to be known before the first weight is updated.
                with keras.name_scope(optimizer.name):
                    optimizer.build(list(trainable_variables))
            methods["update_step"] = _shared_update_step(updating)
        with _replaced(updating, **methods):
            return apply(gradients, variables)

    return update


def _is_known(optimizer):
    return type(optimizer) in _OF_KERAS or hasattr(optimizer, "update_group")


def _shared_update_step(optimizer: Any) -> Callable[..., None]:
    """Returns an `update_step` with one program for all weights that are updated alike."""
    import tensorflow as tf

    programs: dict[Any, Any] = {}
    weights, slots = list(optimizer._trainable_variables), _slots(optimizer)
    group_of = getattr(optimizer, "update_group", lambda index: None)

    def update_step(gradient, variable, learning_rate):
        index = optimizer._get_variable_index(variable)
        state = [weights[index], *(slot[index] for slot in slots)]
        specs = [(tuple(part.shape), part.dtype) for part in state]
        key = (group_of(index), gradient.dtype, *specs)
        if key not in programs:
            programs[key] = _program(optimizer, index, state)
        tensors = map(tf.convert_to_tensor, (gradient, learning_rate, *state))
        values = programs[key](*tensors)
        for place, value in values.items():
            state[int(place)].assign(value)

    return update_step


def _slots(optimizer):
    """Lists with a variable for each weight, such as the momentums of Adam."""
    count = len(optimizer._trainable_variables)
    lists = [
        part
        for name, part in vars(optimizer).items()
        if isinstance(part, (list, tuple)) and len(part) == count and name not in _NO_SLOTS
    ]
    return [part for part in lists if all(isinstance(v, keras.Variable) for v in part)]


# The weights, all variables, and what Keras updates outside of `update_step`.
_NO_SLOTS = (
    "_trainable_variables",
    "_variables",
    "_accumulated_gradients",
    "_model_variables_moving_average",
)


def _program(optimizer, index, state):
    """A function of tensors: the update of a weight and its slots, for those that are like it."""
    import tensorflow as tf

    update_step = type(optimizer).update_step

    @functools.partial(tf.function, jit_compile=True, autograph=False)
    def program(gradient, learning_rate, *values):
        with (
            keras.StatelessScope(list(zip(state, values, strict=True))) as scope,
            # On TensorFlow they assign to the variables themselves, outside of the scope.
            _replaced(
                optimizer,
                assign=lambda variable, value: variable.assign(value),
                assign_add=lambda variable, value: variable.assign_add(value),
                assign_sub=lambda variable, value: variable.assign_sub(value),
                _get_variable_index=lambda variable: index,
            ),
        ):
            update_step(optimizer, gradient, state[0], learning_rate)
        new = map(scope.get_current_value, state)
        pairs = enumerate(zip(new, values, strict=True))
        return {str(i): value for i, (value, given) in pairs if value is not given}

    return program

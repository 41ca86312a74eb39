"""Dense gradients, one kernel for Adam, and no sum over replicas if there is only one.

Upstream, with TensorFlow: (1) The gradient of an embedding is a `tf.IndexedSlices` with an entry
for each occurrence of a token. Keras squares the entries instead of their sum, so Adam computes
another update than on JAX and PyTorch. (2) The sum over replicas, even over one, keeps the graph of
the step and the weights in memory forever. (3) Adam is eleven operations for each weight, which
read and write all of it, where TensorFlow has one. A strategy leaves (2) and (3) as they are.
Without it: (1) 4 steps of Adam change an entry of the embedding by 15 % more or less (the median);
(2) each fitted model with 84 MiB of weights leaves 260 to 280 MiB in memory, with it 0 to 11; (3)
`python -m benchmarks.workarounds dense_gradients`: an update takes 1.7 times the time of a
processor, and 2.9 times with an embedding of 28,000 tokens.
Reproduction: docs/upstream.md, (1) "Sparse gradients are squared before they are summed" and (2) "A
model that was fitted stays in memory".
Delete this file when: (1) and (2) are fixed.
"""

import contextlib
import functools
from typing import Any

import keras

from keras_xlnet.lazy_modules import tf


def dense_gradients(
    optimizer: keras.optimizers.Optimizer | None,
) -> contextlib.AbstractContextManager[None]:
    """Returns a context in which a traced train step updates by dense gradients.

    Args:
        optimizer: A Keras optimizer, or `None`.
    """
    nothing_to_do = keras.backend.backend() != "tensorflow"
    # The replicas of a strategy enter in turn: the first one enters first and leaves last.
    if nothing_to_do or optimizer is None or "apply" in vars(optimizer):
        return contextlib.nullcontext()
    return _replaced(optimizer, apply=_apply_of(optimizer))


@contextlib.contextmanager
def _replaced(optimizer, **methods):
    """Replaces methods of an object, not of its class."""
    vars(optimizer).update(methods)
    try:
        yield
    finally:
        for name in methods:
            del vars(optimizer)[name]


def _apply_of(optimizer):
    apply = optimizer.apply
    # A `LossScaleOptimizer` contains the optimizer that updates the weights.
    updating = getattr(optimizer, "inner_optimizer", optimizer)

    def apply_dense(gradients, trainable_variables=None):
        pairs = zip(gradients, trainable_variables, strict=True)
        pairs = [(tf.convert_to_tensor(g), v) for g, v in pairs if g is not None]
        if not pairs:
            return apply(gradients, trainable_variables)  # Let Keras raise its error.
        if not optimizer.built:  # For all variables, including those without a gradient now.
            optimizer.build(list(trainable_variables))
        gradients, variables = zip(*pairs, strict=True)
        methods: dict[str, Any] = {}
        if not tf.distribute.has_strategy():  # Replicas take turns here, and would share methods.
            methods["_all_reduce_sum_gradients"] = list
            is_adam = type(updating).update_step is keras.optimizers.Adam.update_step
            if is_adam and not updating.amsgrad:
                methods["update_step"] = functools.partial(_adam_step, updating)
        with _replaced(updating, **methods):
            return apply(gradients, variables)

    return apply_dense


def _adam_step(optimizer, gradient, variable, learning_rate):
    """What `keras.optimizers.Adam.update_step` computes, in one pass over memory."""
    dtype, index = variable.dtype, optimizer._get_variable_index(variable)
    step = tf.cast(optimizer.iterations + 1, dtype)
    beta_1, beta_2 = (tf.cast(beta, dtype) for beta in (optimizer.beta_1, optimizer.beta_2))
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=optimizer._momentums[index].value.handle,
        v=optimizer._velocities[index].value.handle,
        beta1_power=tf.pow(beta_1, step),
        beta2_power=tf.pow(beta_2, step),
        lr=tf.cast(learning_rate, dtype),
        beta1=beta_1,
        beta2=beta_2,
        epsilon=tf.cast(optimizer.epsilon, dtype),
        grad=tf.cast(gradient, dtype),
    )

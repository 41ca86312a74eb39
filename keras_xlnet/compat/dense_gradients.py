"""Dense gradients of embeddings, and no sum over replicas if there is only one.

Upstream, with TensorFlow: (1) The gradient of an embedding is a `tf.IndexedSlices` with an entry
for each occurrence of a token. Keras squares the entries instead of their sum, so Adam computes
another update than on JAX and PyTorch. (2) The sum over replicas, even over one, keeps the graph of
the step and the weights in memory forever.
Without it: 4 steps of Adam change an entry of the embedding by 15 % more or less (the median), and
each fitted model with 84 MiB of weights leaves 260 to 280 MiB in memory; with it, 0 to 11.
Reproduction: docs/upstream.md, (1) "Sparse gradients are squared before they are summed" and (2) "A
model that was fitted stays in memory".
Delete this file when: both are fixed.
"""

import contextlib

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
        if tf.distribute.has_strategy():
            return apply(gradients, variables)
        with _replaced(updating, _all_reduce_sum_gradients=list):
            return apply(gradients, variables)

    return apply_dense

"""Dense gradients of embeddings, and no sum over replicas where there is only one.

Upstream, with TensorFlow: (1) The gradient of an embedding is a `tf.IndexedSlices` with an entry
for each occurrence of a token. Keras squares the entries, where it should square their sum, so Adam
computes another update than on JAX and PyTorch. (2) The sum over replicas, also over one, keeps the
graph of the step in memory for ever, with the weights.
Without it: other weights after each step, and the memory of each model that was fitted.
Reproduction: docs/upstream.md, (1) "Sparse gradients are squared before they are summed" and (2) "A
model that was fitted stays in memory".
Delete this file when: both are mended.
"""

import contextlib
from collections.abc import Iterator

import keras

from keras_xlnet.lazy_modules import tf


@contextlib.contextmanager
def dense_gradients(optimizer: keras.optimizers.Optimizer | None) -> Iterator[None]:
    """Changes what `optimizer` does in a train step that is traced in this context.

    Args:
        optimizer: A Keras optimizer, or `None`.
    """
    nothing_to_do = keras.backend.backend() != "tensorflow"
    # The replicas of a strategy enter in turns: the first one enters first and leaves last.
    if nothing_to_do or optimizer is None or "apply" in vars(optimizer):
        yield
        return
    with _replaced(optimizer, apply=_apply_of(optimizer)):
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


def _apply_of(optimizer):
    apply = optimizer.apply
    # A `LossScaleOptimizer` has another optimizer, which updates the weights.
    updating = getattr(optimizer, "inner_optimizer", optimizer)

    def apply_dense(gradients, trainable_variables=None):
        pairs = zip(gradients, trainable_variables, strict=True)
        pairs = [(tf.convert_to_tensor(g), v) for g, v in pairs if g is not None]
        if not pairs:
            return apply(gradients, trainable_variables)  # Let Keras raise its error.
        if not optimizer.built:  # For all variables, also those that have no gradient now.
            optimizer.build(list(trainable_variables))
        gradients, variables = zip(*pairs, strict=True)
        if tf.distribute.has_strategy():
            return apply(gradients, variables)
        with _replaced(updating, _all_reduce_sum_gradients=list):
            return apply(gradients, variables)

    return apply_dense

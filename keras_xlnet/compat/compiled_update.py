"""The update of all weights as one XLA program, with dense gradients.

Upstream: (1) an optimizer is a dozen elementwise operations a weight, and TensorFlow reads and
writes memory for each. (2) The gradient of an embedding is a `tf.IndexedSlices` with an entry for
each occurrence of a token. Keras squares the entries, where it should square their sum, so Adam on
TensorFlow computes another update than on JAX and PyTorch.
Reproduction of (2): docs/upstream.md, "Sparse gradients are squared before they are summed".
Delete this file when: the two give equal weights, and `optimizer.apply` is compiled.
"""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def compiled_update(optimizer: keras.optimizers.Optimizer | None) -> Iterator[None]:
    """Compiles with XLA what `optimizer` does in a train step that is traced in this context.

    The rest of the step is not compiled. Neither is the update in eager mode, or under a
    `tf.distribute` strategy, where replicas communicate in it.

    Args:
        optimizer: A Keras optimizer, or `None`.
    """
    nothing_to_do = keras.backend.backend() != "tensorflow"
    # The replicas of a strategy enter in turns: the first one enters first and leaves last.
    if nothing_to_do or optimizer is None or "apply" in vars(optimizer):
        yield
        return
    vars(optimizer)["apply"] = _update_with(optimizer)
    try:
        yield
    finally:
        del vars(optimizer)["apply"]


def _update_with(optimizer):
    import tensorflow as tf

    apply = optimizer.apply

    def update(gradients, trainable_variables=None):
        pairs = zip(gradients, trainable_variables, strict=True)
        pairs = [(tf.convert_to_tensor(g), v) for g, v in pairs if g is not None]
        if not pairs:
            return apply(gradients, trainable_variables)  # Let Keras raise its error.
        gradients, variables = zip(*pairs, strict=True)
        if tf.executing_eagerly() or tf.distribute.has_strategy():
            return apply(gradients, variables)
        if not optimizer.built:
            # Here, because in the program its variables would have this traced a second time.
            with keras.name_scope(optimizer.name):
                optimizer.build(list(trainable_variables))
        return compiled(gradients, variables)

    def compiled(gradients, variables):
        @tf.function(jit_compile=True, autograph=False)
        def apply_all(gradients):
            apply(gradients, variables)

        apply_all(gradients)

    return update

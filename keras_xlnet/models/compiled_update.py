"""The update of all weights as one XLA program."""

import contextlib

import keras


@contextlib.contextmanager
def compiled_update(optimizer):
    """While a train step is traced in here, XLA compiles what `optimizer` does in it.

    An optimizer is a dozen elementwise operations a weight: TensorFlow reads and writes memory for
    each, XLA once for all. The rest of the step is not compiled, and neither is the update in eager
    mode and under a `tf.distribute` strategy, where replicas talk to each other in there.

    The gradient of an embedding becomes a tensor first: Keras squares what each occurrence of a
    token adds to it, and not their sum, which is another optimizer than on other backends.
    """
    nothing_to_do = keras.backend.backend() != "tensorflow" or optimizer is None
    # The replicas of a strategy take turns in here: the first one comes first and leaves last.
    if nothing_to_do or "apply" in vars(optimizer):
        yield
        return
    vars(optimizer)["apply"] = _update_with(optimizer.apply)
    try:
        yield
    finally:
        del vars(optimizer)["apply"]


def _update_with(apply):
    import tensorflow as tf

    def update(gradients, trainable_variables=None):
        pairs = zip(gradients, trainable_variables, strict=True)
        pairs = [(tf.convert_to_tensor(g), v) for g, v in pairs if g is not None]
        if not pairs:
            return apply(gradients, trainable_variables)  # It has words for that.
        gradients, variables = zip(*pairs, strict=True)
        if tf.executing_eagerly() or tf.distribute.has_strategy():
            return apply(gradients, variables)
        return compiled(gradients, variables)

    def compiled(gradients, variables):
        @tf.function(jit_compile=True, autograph=False)
        def apply_all(gradients):
            apply(gradients, variables)

        apply_all(gradients)

    return update

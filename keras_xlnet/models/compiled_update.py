"""The update of all weights as one XLA program."""

import contextlib

import keras


@contextlib.contextmanager
def compiled_update(optimizer):
    """While a train step is traced in here, XLA compiles what `optimizer` does in it.

    An optimizer is a dozen elementwise operations a weight: TensorFlow reads and writes memory for
    each, XLA once for all. The rest of the step is not compiled. Nothing changes on other backends,
    in eager mode, and under a `tf.distribute` strategy, where replicas talk to each other in there.
    """
    if not _can_compile(optimizer):
        yield
        return
    apply = optimizer.apply
    vars(optimizer)["apply"] = _compiled(apply)
    try:
        yield
    finally:
        del vars(optimizer)["apply"]


def _can_compile(optimizer):
    if keras.backend.backend() != "tensorflow" or optimizer is None:
        return False
    import tensorflow as tf

    return not tf.executing_eagerly() and not tf.distribute.has_strategy()


def _compiled(apply):
    import tensorflow as tf

    def compiled_apply(gradients, trainable_variables=None):
        pairs = zip(gradients, trainable_variables, strict=True)
        pairs = [(tf.convert_to_tensor(g), v) for g, v in pairs if g is not None]
        gradients, variables = zip(*pairs, strict=True)

        @tf.function(jit_compile=True, autograph=False)
        def update(gradients):
            apply(gradients, variables)

        update(gradients)

    return compiled_apply

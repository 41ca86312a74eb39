"""What each Keras backend does its own way: gradients and compiled calls."""

import functools

import keras
import numpy as np

BACKEND = keras.backend.backend()


class UnsupportedError(Exception):
    """A computation that a backend, or Keras on it, has no way to do. The message is the reason."""


def gradients(layer, loss_of, *args, **kwargs):
    """Loss, and its gradient for every trainable variable, by the means of the backend.

    Args:
        layer: A built Keras layer or model.
        loss_of: Function from what `layer` returns to a scalar.
        *args, **kwargs: What to call `layer` with.

    Returns:
        The loss, and a dict from the path of a variable to a numpy array.
    """
    variables = layer.trainable_variables
    paths = [variable.path for variable in variables]
    assert len(set(paths)) == len(paths)
    loss, values = _GRADIENTS[BACKEND](layer, variables, loss_of, args, kwargs)
    # TensorFlow and torch give None for a variable that the loss does not depend on, JAX zeros.
    values = [
        np.zeros(variable.shape) if value is None else keras.ops.convert_to_numpy(value)
        for variable, value in zip(variables, values, strict=True)
    ]
    return keras.ops.convert_to_numpy(loss), dict(zip(paths, values, strict=True))


def _tensorflow_gradients(layer, variables, loss_of, args, kwargs):
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = loss_of(layer(*args, **kwargs))
    values = tape.gradient(loss, [variable.value for variable in variables])
    # That of an embedding is sparse.
    return loss, [None if value is None else tf.convert_to_tensor(value) for value in values]


def _jax_gradients(layer, variables, loss_of, args, kwargs):
    import jax

    others = [variable.value for variable in layer.non_trainable_variables]

    def loss_at(values):
        outputs, _ = layer.stateless_call(values, others, *args, **kwargs)
        return loss_of(outputs)

    return jax.jit(jax.value_and_grad(loss_at))([variable.value for variable in variables])


def _torch_gradients(layer, variables, loss_of, args, kwargs):
    for variable in variables:
        variable.value.grad = None
    loss = loss_of(layer(*args, **kwargs))
    loss.backward()
    return loss.detach(), [variable.value.grad for variable in variables]


_GRADIENTS = {
    "tensorflow": _tensorflow_gradients,
    "jax": _jax_gradients,
    "torch": _torch_gradients,
}


def run(layer, *args, **kwargs):
    """Calls a built layer or model, in the way of the backend that is fastest to start.

    That is an eager call, but for JAX, which compiles op by op then, a jitted one.
    """
    return run_with_xla(layer, *args, **kwargs) if BACKEND == "jax" else layer(*args, **kwargs)


def run_with_xla(layer, *args, **kwargs):
    """Calls a built layer or model, compiled by XLA.

    Raises:
        UnsupportedError: If the backend has no XLA.
    """
    if BACKEND == "jax":
        # Layers that are quantized later keep their identity, but not their graph.
        return _jitted(layer, len(layer.variables))(
            [variable.value for variable in layer.trainable_variables],
            [variable.value for variable in layer.non_trainable_variables],
            args,
            kwargs,
        )
    if BACKEND == "tensorflow":
        import tensorflow as tf

        args, kwargs = tf.nest.map_structure(tf.convert_to_tensor, (args, kwargs))
        return tf.function(layer.__call__, jit_compile=True)(*args, **kwargs)
    raise UnsupportedError(f"{BACKEND} has no XLA: Keras runs it eagerly")


@functools.cache
def _jitted(layer, number_of_variables):
    import jax

    def call(trainable, non_trainable, args, kwargs):
        return layer.stateless_call(trainable, non_trainable, *args, **kwargs)[0]

    return jax.jit(call)

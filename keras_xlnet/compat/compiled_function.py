"""A compiled function of tensors that uses the weights of a model.

Upstream: `keras.Model` compiles its own `call` for `fit`, `evaluate` and `predict`. There is no way
to compile another function on every backend: `tf.function` finds variables itself, `jax.jit` needs
them as arguments.
Without it: `generate` of 100 tokens takes 40 times as long on TensorFlow (24 to 26 s of a processor
instead of 0.6 s, with 6 layers of width 128).
Reproduction: docs/upstream.md, "No `jit` for every backend".
Delete this file when: Keras has a backend-independent `jit` that takes the variables of a layer.
"""

import functools
from collections.abc import Callable
from typing import Any

import keras

from keras_xlnet.lazy_modules import tf


def compiled(function: Callable[..., Any], model: keras.Model) -> Callable[..., Any]:
    """Returns a function that is compiled with XLA, on TensorFlow and JAX.

    Args:
        function: Takes and returns (nested) tensors. It may read the variables of `model`, but
            must not assign them. Each set of shapes is compiled once.
        model: A Keras model.

    Returns:
        A function with the same arguments. On PyTorch it runs eagerly, without gradients, and
        on OpenVINO as it is.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        return tf.function(function, autograph=False, jit_compile=True)
    if backend == "jax":
        return _compiled_with_jax(function, model)
    if backend == "openvino":
        return function
    import torch

    return torch.no_grad()(function)


def _compiled_with_jax(function, model):
    import jax

    variables = list(model.variables)

    @jax.jit
    def pure(values, *args):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return function(*args)

    @functools.wraps(function)
    def call(*args):
        return pure([variable.value for variable in variables], *args)

    return call

"""The two kinds of dense layer that heads on top of a backbone are made of."""

import keras

from keras_xlnet.layers.initialization import clone_initializer


def tanh_dense(head, units, name):
    """A dense layer with tanh, a sublayer of `head` that has its initializer and dtype policy."""
    return keras.layers.Dense(
        units,
        activation="tanh",
        kernel_initializer=clone_initializer(head.kernel_initializer),
        dtype=head.dtype_policy,
        name=name,
    )


def float32_logit(head, name, use_bias=True):
    """A dense layer with one output. Half precision is too coarse for logits that are compared."""
    return keras.layers.Dense(
        1,
        use_bias=use_bias,
        kernel_initializer=clone_initializer(head.kernel_initializer),
        dtype="float32",
        name=name,
    )

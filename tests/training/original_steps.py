"""Repeats the recorded updates of the original and of tensorflow-addons with Keras optimizers."""

import contextlib
import re

import keras
import numpy as np

from keras_xlnet.training import AdamWeightDecay, WarmupPolynomialDecay

NUM_LAYERS = 3
STEPS = 10


def schedule(decay_method, learning_rate, train_steps, warmup_steps, min_lr_ratio, **_):
    """Returns the learning rate schedule for flags of the original."""
    if decay_method == "poly":
        return WarmupPolynomialDecay(learning_rate, train_steps, warmup_steps, min_lr_ratio)
    return keras.optimizers.schedules.CosineDecay(
        0.0,
        decay_steps=train_steps - warmup_steps,
        alpha=min_lr_ratio,
        warmup_target=learning_rate,
        warmup_steps=warmup_steps,
    )


def optimizer(flags):
    """Returns the optimizer for flags of the original, without gradient clipping."""
    kwargs = {"learning_rate": schedule(**flags), "epsilon": flags["adam_epsilon"]}
    if flags["weight_decay"]:
        return AdamWeightDecay(weight_decay=flags["weight_decay"], **kwargs)
    return keras.optimizers.Adam(**kwargs)


def variables(arrays):
    """Returns the variables before the first step, with the names of the original as paths."""
    prefix = "init/"
    return [
        variable(name.removeprefix(prefix), value)
        for name, value in arrays.items()
        if name.startswith(prefix)
    ]


def variable(path, value):
    *scopes, name = path.split("/")
    with contextlib.ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(keras.name_scope(scope))
        return keras.Variable(value, name=name)


def layer_decay(name, rate, num_layers=NUM_LAYERS):
    """Returns the factor of the clipped gradient, which the original calls a learning rate."""
    layer = re.match(r"model/transformer/layer_(\d+)/", name)
    return rate ** (num_layers - 1 - int(layer[1])) if layer else 1.0


def is_decayed(name):
    """Returns whether the original decays a weight, by its name there."""
    included = re.search("r_s_bias|r_r_bias|r_w_bias", name)
    return bool(included) or not re.search("LayerNorm|layer_norm|bias", name)


def clip(gradients, norm):
    total = np.sqrt(sum(np.sum(g.astype("float64") ** 2) for g in gradients))
    return [(g * min(1.0, norm / total)).astype("float32") for g in gradients]


def steps_of_addons(arrays, optimizer, names=("dense/kernel", "dense/bias", "LayerNorm/gamma")):
    """Yields the values of the three variables of `addons/traj.npz` after each step."""
    variables = [variable(name, arrays[f"w{i}"]) for i, name in enumerate(names)]
    for step in range(STEPS):
        optimizer.apply([arrays[f"g{step}_{i}"] for i in range(3)], variables)
        yield [keras.ops.convert_to_numpy(v) for v in variables]

"""Prints losses and numbers of shards on 8 virtual devices of the JAX backend, as JSON.

KERAS_BACKEND=jax XLA_FLAGS=--xla_force_host_platform_device_count=8 python distribute.py
"""

import json

import keras
import numpy as np

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM, XLNetTextClassifier
from keras_xlnet.training import layout_map

RNG = np.random.default_rng(0)
TOKEN_IDS = RNG.integers(9, 32, (24, 6)).astype("int32")
TARGETS = np.sort(RNG.permuted(np.tile(np.arange(6), (24, 1)), axis=1)[:, :2]).astype("int32")
PERMUTATION_MASK = RNG.random((24, 6, 6)) < 0.5


def backbone(**arguments):
    return XLNetBackbone(
        vocabulary_size=32,
        num_layers=1,
        num_heads=4,
        hidden_dim=16,
        intermediate_dim=32,
        dropout=0.0,
        attention_dropout=0.0,
        **arguments,
    )


def permutation_lm():
    model = XLNetPermutationLM(backbone(memory_length=3), stateful=True, batch_size=8)
    inputs = {"token_ids": TOKEN_IDS, "permutation_mask": PERMUTATION_MASK}
    labels = np.take_along_axis(TOKEN_IDS, TARGETS, axis=1)
    return model, {**inputs, "target_positions": TARGETS}, labels


def text_classifier():
    base = backbone(tie_attention_biases=True, attention_chunk_size=3, gradient_checkpointing=True)
    model = XLNetTextClassifier(base, num_classes=3, dropout=0.0)
    return model, {"token_ids": TOKEN_IDS}, TOKEN_IDS[:, 0] % 3


def losses(make, distribution):
    """Returns the losses of 3 steps, and into how many different shards each weight is split."""
    keras.distribution.set_distribution(distribution)
    model, inputs, labels = make()
    rng = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape))
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    history = [
        model.train_on_batch(
            {key: value[i : i + 8] for key, value in inputs.items()}, labels[i : i + 8]
        )
        for i in (0, 8, 16)
    ]
    shards = {
        weight.path: int(np.prod(weight.shape) // weight.value.addressable_shards[0].data.size)
        for weight in model.weights
    }
    return [float(np.asarray(loss[0])) for loss in history], shards


def main():
    mesh = keras.distribution.DeviceMesh((2, 4), ["batch", "model"])
    model_parallel = keras.distribution.ModelParallel(
        layout_map=layout_map(mesh), batch_dim_name="batch", auto_shard_dataset=False
    )
    found = {}
    for make in (permutation_lm, text_classifier):
        for name, distribution in (
            ("one", None),
            ("data", keras.distribution.DataParallel(auto_shard_dataset=False)),
            ("model", model_parallel),
        ):
            found[f"{make.__name__}/{name}"] = losses(make, distribution)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

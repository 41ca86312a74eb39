"""Prints losses and numbers of shards on 8 virtual devices of the JAX backend, as JSON.

KERAS_BACKEND=jax XLA_FLAGS=--xla_force_host_platform_device_count=8 python distribute.py

With numbers of devices as arguments, it prints what a training on batches gives that they cannot
divide.
"""

import importlib.util
import json
import sys

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


def uneven_batches(num_devices):
    """All numbers of a training with dropout, on 4 rows and 3 rows, in batches of 3."""
    devices = [f"cpu:{i}" for i in range(num_devices)]
    distribution = keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)
    keras.distribution.set_distribution(distribution if num_devices > 1 else None)
    keras.utils.set_random_seed(3)
    model = XLNetTextClassifier(XLNetBackbone(32, 1, 2, 8, 8), num_classes=2)
    model.compile(keras.optimizers.SGD(0.1), metrics=["accuracy"])
    x = {
        "token_ids": TOKEN_IDS[:4],
        "segment_ids": np.zeros((4, 6), "int32"),
        "padding_mask": np.arange(6) >= np.arange(4)[:, None],
    }
    y, weights = TOKEN_IDS[:4, 0] % 2, np.arange(1.0, 5.0)
    held_out = {"token_ids": TOKEN_IDS[5:8]}, TOKEN_IDS[5:8, 0] % 2

    def batches():
        for i in (0, 3):
            yield {key: array[i : i + 3] for key, array in x.items()}, y[i : i + 3]

    arguments = {"validation_data": held_out, "sample_weight": weights, "verbose": 0}
    history = model.fit(x, y, batch_size=3, epochs=2, **arguments).history
    history["of_generator"] = model.fit(batches(), steps_per_epoch=2, verbose=0).history["loss"]
    history["of_split"] = model.fit(x, y, 3, validation_split=0.25, verbose=0).history["val_loss"]
    if importlib.util.find_spec("tensorflow"):
        import tensorflow as tf

        dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(3)
        history["of_dataset"] = model.evaluate(dataset, verbose=0)
    model.fit_head(x, y, batch_size=3, verbose=0)
    numbers = [
        *history.values(),
        model.evaluate(x, y, batch_size=3, verbose=0),
        model.predict(x, batch_size=3, verbose=0).tolist(),
        [float(number) for number in model.train_on_batch(x, y)],
        [float(number) for number in model.test_on_batch(x, y)],
        [float(np.abs(weight).sum()) for weight in model.get_weights()],
    ]
    return [np.ravel(each).tolist() for each in numbers]


def main():
    if sys.argv[1:]:
        print(json.dumps([uneven_batches(int(number)) for number in sys.argv[1:]]))
        return
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

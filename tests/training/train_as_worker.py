"""A tiny training, for tests: in this process, or as one of two workers in processes of their own.

As a program it takes one argument, JSON with `index`, `ports`, `folder`, `steps`, `epochs` and
options, and writes its results to `INDEX.npz` in the folder.
"""

import json
import os
import pathlib
import signal
import sys

if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    workers = [f"127.0.0.1:{port}" for port in settings["ports"]]
    task = {"type": "worker", "index": settings["index"]}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import tensorflow as tf

if __name__ == "__main__":
    # Before anything else of TensorFlow is used.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

import keras
import numpy as np

from keras_xlnet.models import XLNetBackbone, XLNetTextClassifier

ROWS, LENGTH = 8, 6


def make_model(steps_per_execution=1):
    """A classifier whose weights are those of a seed, with no dropout."""
    backbone = XLNetBackbone(40, 1, 2, 8, 12, dropout=0.0, attention_dropout=0.0)
    model = XLNetTextClassifier(backbone, num_classes=3, dropout=0.0)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.3, size=variable.shape) + ("gamma" in variable.path))
    # Adam would divide the rounding of gradients that are 0 by itself.
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), steps_per_execution=steps_per_execution)
    return model


def batches(steps):
    """`steps` full batches of distinct rows, padded with a bool mask."""
    rng = np.random.default_rng(1)
    rows = steps * ROWS
    inputs = {
        "token_ids": rng.integers(0, 40, (rows, LENGTH)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (rows, LENGTH)).astype("int32"),
        "padding_mask": np.arange(LENGTH) >= rng.integers(0, 4, (rows, 1)),
    }
    labels = rng.integers(0, 3, rows).astype("int32")
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels))
    return dataset.batch(ROWS, drop_remainder=True).with_options(options)


def train(model, dataset, epochs, callbacks=()):
    """What `fit`, `evaluate` and `predict` give, and the weights."""
    history = model.fit(
        dataset, epochs=epochs, validation_data=dataset, callbacks=list(callbacks), verbose=0
    )
    return {
        "history": history.history,
        "evaluation": model.evaluate(dataset, verbose=0),
        "predictions": np.sort(model.predict(dataset, verbose=0), axis=0),
        "weights": np.concatenate([np.ravel(v) for v in model.get_weights()]),
    }


class _Die(keras.callbacks.Callback):
    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.epoch:
            os.kill(os.getpid(), signal.SIGKILL)


def main(index, folder, steps, epochs, steps_per_execution=1, backup=False, die_in_epoch=None, **_):
    folder = pathlib.Path(folder)
    callbacks = [keras.callbacks.BackupAndRestore(folder / f"backup-{index}")] if backup else []
    if die_in_epoch is not None and index == 1:
        callbacks.append(_Die(die_in_epoch))
    with strategy.scope():
        model = make_model(steps_per_execution)
    result = train(model, batches(steps), epochs, callbacks)
    np.savez(folder / f"{index}.npz", **{**result, "history": json.dumps(result["history"])})


if __name__ == "__main__":
    main(**settings)

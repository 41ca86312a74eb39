"""Trains a small model with dropout and kills its own process.

python train_and_be_killed.py BACKUP_DIR KILL_EPOCH KILL_STEP
"""

import os
import signal
import sys

import keras
import numpy as np

from keras_xlnet import training

STEPS, EPOCHS, ROWS = 6, 4, 8


class Interrupt(keras.callbacks.Callback):
    """Raises an exception in the middle of an epoch."""

    def __init__(self, epoch=1, step=3):
        super().__init__()
        self.epoch, self.step = epoch, step

    def on_epoch_begin(self, epoch, logs=None):
        self.now = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if (self.now, batch) == (self.epoch, self.step):
            self.interrupt()

    def interrupt(self):
        raise KeyboardInterrupt


class Kill(Interrupt):
    """Sends SIGKILL, so that nothing is cleaned up."""

    def interrupt(self):
        os.kill(os.getpid(), signal.SIGKILL)


def batches(optimizer):
    """Yields batches from the step of the optimizer on, each a function of its number."""
    number = int(keras.ops.convert_to_numpy(optimizer.iterations))
    while True:
        rng = np.random.default_rng(number)
        x = rng.normal(size=(ROWS, 4)).astype("float32")
        yield x, x.sum(axis=1, keepdims=True)
        number += 1


def dataset(optimizer):
    import tensorflow as tf

    signature = (tf.TensorSpec((ROWS, 4)), tf.TensorSpec((ROWS, 1)))
    data = tf.data.Dataset.from_generator(lambda: batches(optimizer), output_signature=signature)
    return data.prefetch(2)


def train(*callbacks):
    """Returns the last loss, the number of epochs trained, and all weights and optimizer states."""
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(1),
        ]
    )
    rate = training.WarmupPolynomialDecay(0.05, STEPS * EPOCHS, warmup_steps=4)
    model.compile(training.AdamWeightDecay(rate, use_ema=True), "mse")
    data = dataset(model.optimizer)
    # The killed process runs on the CPU, so the one that continues must do so too.
    with keras.device("cpu:0"):
        history = model.fit(
            data, steps_per_epoch=STEPS, epochs=EPOCHS, callbacks=list(callbacks), verbose=0
        )
    variables = [v.numpy() for v in model.trainable_variables + model.optimizer.variables]
    return history.history["loss"][-1], len(history.epoch), variables


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    backup_dir, epoch, step = sys.argv[1:]
    train(training.ExactBackupAndRestore(backup_dir), Kill(int(epoch), int(step)))

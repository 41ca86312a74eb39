"""Batches go on where a restored optimizer stopped."""

import keras


class ResumeBatches(keras.callbacks.Callback):
    """Makes `fit` go on with the batch after the last one that the optimizer has seen.

    Put it behind the callback that restores the model (`keras.callbacks.BackupAndRestore`). Keras
    asks a dataset for its iterator after `on_train_begin`, so that `batches.dataset()` begins at
    the restored step without reading anything before it.

    Args:
        batches: the `PermutationBatches` whose `dataset()` is given to `fit`.

    Example:

    >>> import types
    >>> from keras_xlnet.pretraining import ResumeBatches
    >>> batches = types.SimpleNamespace(first_step=0)
    >>> model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x = np.zeros((6, 1))
    >>> _ = model.fit(x, x, batch_size=2, verbose=0)
    >>> _ = model.fit(x, x, batch_size=2, verbose=0, callbacks=[ResumeBatches(batches)])
    >>> batches.first_step
    3
    """

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def on_train_begin(self, logs=None):
        optimizer = self.model.optimizer
        # Behind loss scaling stands the optimizer that counts. With gradient accumulation its
        # `iterations` are updates; the variable has the batches.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        counter = next(v for v in optimizer.variables if v.name == "iteration")
        self.batches.first_step = int(keras.ops.convert_to_numpy(counter.value))

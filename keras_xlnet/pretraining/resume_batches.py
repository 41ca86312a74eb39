"""A callback that continues with the right batch after a restart."""

from typing import Any

import keras

from keras_xlnet.pretraining.permutation_batches import PermutationBatches
from keras_xlnet.registration import refuse_unknown_arguments


@refuse_unknown_arguments
class ResumeBatches(keras.callbacks.Callback):
    """Makes `fit` continue with the batch after the last one that the optimizer was updated with.

    In the list of callbacks, put it after the callback that restores the model
    (`ExactBackupAndRestore` or `keras.callbacks.BackupAndRestore`). Keras creates the iterator of
    a dataset after `on_train_begin`, so `batches.dataset()` begins at the restored step without
    reading the batches before it.

    Args:
        batches: The `PermutationBatches` or `CausalBatches` whose `dataset()` is passed to `fit`.

    Raises:
        ValueError: If `batches` is something else, such as a dataset.

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

    def __init__(self, batches: PermutationBatches) -> None:
        super().__init__()
        if not hasattr(batches, "first_step"):
            raise ValueError(
                "`batches` must be a `PermutationBatches` or `CausalBatches`, not their dataset. "
                f"Received: batches={batches!r}"
            )
        self.batches = batches

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        optimizer = self.model.optimizer
        # A LossScaleOptimizer wraps the optimizer that counts the batches. With gradient
        # accumulation, the property `iterations` counts updates, but this variable batches.
        optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        counter = next(v for v in optimizer.variables if v.name == "iteration")
        self.batches.first_step = int(keras.ops.convert_to_numpy(counter.value))

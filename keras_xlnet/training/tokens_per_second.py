import time
from typing import Any

import keras

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.registration import refuse_unknown_arguments


@refuse_unknown_arguments
class TokensPerSecond(keras.callbacks.Callback):
    """Adds `tokens_per_second` to the logs of each epoch, for the progress bar and TensorBoard.

    Measures the training steps including the time to load their data. Validation and the first
    step of `fit`, which compiles the model, are not measured. An epoch without any other step gets
    NaN. In the list of callbacks, put `TensorBoard`, `CSVLogger` and others that read the logs
    after this one.

    Args:
        tokens_per_step: Int, number of tokens in a batch, including padding: batch size over all
            replicas times sequence length.

    Raises:
        ValueError: If `tokens_per_step` is not a positive integer.

    Example:

    >>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> speed = keras_xlnet.training.TokensPerSecond(tokens_per_step=4 * 8)
    >>> x, y = np.zeros((12, 8)), np.zeros((12, 1))
    >>> history = model.fit(x, y, batch_size=4, callbacks=[speed], verbose=0)
    >>> history.history["tokens_per_second"][0] > 0
    True
    """

    def __init__(self, tokens_per_step: int) -> None:
        super().__init__()
        self.tokens_per_step = check_positive_int("tokens_per_step", tokens_per_step)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._compiled = False

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._steps = 0
        self._seconds: Any = None  # A float after `_stop`.
        self._start(first_step=0)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        steps_done = self._steps_done(batch)
        if not self._compiled:
            self._compiled = True
            self._start(first_step=steps_done)
        self._steps = steps_done - self._first_step

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._stop()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._stop()
        tokens = self._steps * self.tokens_per_step
        logs["tokens_per_second"] = tokens / self._seconds if tokens else float("nan")

    def _steps_done(self, batch):
        # With `steps_per_execution`, `batch` is the last step of an execution. In the last
        # execution of an epoch it can be greater than the number of steps.
        steps = self.params["steps"]
        return min(batch + 1, steps) if steps else batch + 1

    def _start(self, first_step):
        self._first_step = first_step
        self._started = time.perf_counter()

    def _stop(self):
        # Measured once at the end of an epoch: steps run asynchronously, and only reading the
        # metrics of the epoch waits for them.
        if self._seconds is None:
            self._seconds = time.perf_counter() - self._started

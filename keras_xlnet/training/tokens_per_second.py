import time

import keras

from keras_xlnet.layers.arguments import check_positive_int


class TokensPerSecond(keras.callbacks.Callback):
    """Adds the speed of training to the logs of an epoch, for the progress bar and TensorBoard.

    The time is that of the training steps and of their data, without the evaluation that follows
    and without the first step of `fit`, which compiles. An epoch that has no other step gets NaN.
    Callbacks that are to see `tokens_per_second`, such as `TensorBoard` and `CSVLogger`, come
    after this one in the list.

    Args:
        tokens_per_step: Int, tokens a batch, padding included: rows times sequence length, over
            all replicas.

    Raises:
        ValueError: If `tokens_per_step` is not a positive int.

    Example:

    >>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> speed = keras_xlnet.training.TokensPerSecond(tokens_per_step=4 * 8)
    >>> x, y = np.zeros((12, 8)), np.zeros((12, 1))
    >>> history = model.fit(x, y, batch_size=4, callbacks=[speed], verbose=0)
    >>> history.history["tokens_per_second"][0] > 0
    True
    """

    def __init__(self, tokens_per_step):
        super().__init__()
        self.tokens_per_step = check_positive_int("tokens_per_step", tokens_per_step)

    def on_train_begin(self, logs=None):
        self._compiled = False

    def on_epoch_begin(self, epoch, logs=None):
        self._steps, self._seconds = 0, None
        self._start(first_step=0)

    def on_train_batch_end(self, batch, logs=None):
        done = self._done(batch)
        if not self._compiled:
            self._compiled = True
            self._start(first_step=done)
        self._steps = done - self._first_step

    def on_test_begin(self, logs=None):
        self._stop()

    def on_epoch_end(self, epoch, logs=None):
        self._stop()
        tokens = self._steps * self.tokens_per_step
        logs["tokens_per_second"] = tokens / self._seconds if tokens else float("nan")

    def _done(self, batch):
        # With `steps_per_execution`, `batch` is the last of several steps, and in the last
        # execution of an epoch may lie beyond its end.
        steps = self.params["steps"]
        return min(batch + 1, steps) if steps else batch + 1

    def _start(self, first_step):
        self._first_step = first_step
        self._started = time.perf_counter()

    def _stop(self):
        # At the end of the steps and not after each: a device may still be at work then, until
        # Keras has read the metrics of the epoch.
        if self._seconds is None:
            self._seconds = time.perf_counter() - self._started

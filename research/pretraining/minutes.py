"""Callbacks that count processor time across restarts of a run."""

import contextlib
import json
import time

import keras


class _KeptInFile(keras.callbacks.Callback):
    """Keeps numbers in a file, so that an interrupted run continues with them.

    Args:
        path: `pathlib.Path` of the file.
    """

    names = ("cpu_minutes", "minutes")

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_train_begin(self, logs=None):
        self.spent = dict.fromkeys(self.names, 0.0)
        with contextlib.suppress(OSError, ValueError):
            self.spent = json.loads(self.path.read_text(encoding="utf-8"))

    def on_epoch_end(self, epoch, logs=None):
        self.path.write_text(json.dumps(self.spent), encoding="utf-8")


class Minutes(_KeptInFile):
    """Logs the minutes of processor time and wall clock time since training began."""

    def on_train_begin(self, logs=None):
        super().on_train_begin()
        self.clocks = self._clocks()

    def on_epoch_end(self, epoch, logs=None):
        before, self.clocks = self.clocks, self._clocks()
        for name in self.names:
            self.spent[name] += (self.clocks[name] - before[name]) / 60
        super().on_epoch_end(epoch)
        logs |= self.spent

    def _clocks(self):
        return dict(zip(self.names, (time.process_time(), time.perf_counter()), strict=True))


class CpuBudget(_KeptInFile):
    """Ends training after a number of CPU minutes, and sets the learning rate along the way.

    The learning rate rises linearly over the first steps, stays, and falls linearly to 0 in the
    last part of the budget. So a run of unknown length can be continued with a larger budget as
    long as it has not begun to fall. Only train steps count: not their compilation, not validation.

    Args:
        path: `pathlib.Path` of the file.
        cpu_minutes: Float, the budget, in minutes of processor time of all threads.
        learning_rate: Float, the peak learning rate.
        warmup_steps: Int, number of steps in which it rises.
        decay_share: Float, the part of the budget in which it falls.

    Source: Hu et al. 2024 (MiniCPM), section 4, "warmup-stable-decay".
    """

    names = ("cpu_minutes", "steps")

    def __init__(self, path, cpu_minutes, learning_rate, warmup_steps=200, decay_share=0.4):
        super().__init__(path)
        self.cpu_minutes, self.learning_rate = cpu_minutes, learning_rate
        self.warmup_steps, self.decay_share = warmup_steps, decay_share

    def on_train_begin(self, logs=None):
        super().on_train_begin()
        self.is_compiled = False

    def on_train_batch_begin(self, batch, logs=None):
        self.start = time.process_time()
        rise = (self.spent["steps"] + 1) / self.warmup_steps
        fall = (1 - self.spent["cpu_minutes"] / self.cpu_minutes) / self.decay_share
        rate = self.learning_rate * max(0.0, min(1.0, rise, fall))
        self.model.optimizer.learning_rate.assign(rate)

    def on_train_batch_end(self, batch, logs=None):
        if self.is_compiled:
            self.spent["cpu_minutes"] += (time.process_time() - self.start) / 60
        self.is_compiled = True
        self.spent["steps"] += 1
        self.model.stop_training = self.spent["cpu_minutes"] >= self.cpu_minutes

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch)
        logs |= {"train_cpu_minutes": self.spent["cpu_minutes"]}

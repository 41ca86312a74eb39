import os
import pathlib
import re
import shutil
from typing import Any

import keras
import numpy as np

from keras_xlnet.registration import refuse_unknown_arguments
from keras_xlnet.types import PathLike

_UNFINISHED = "unfinished"
_DELETED = "deleted"


@refuse_unknown_arguments
class ExactBackupAndRestore(keras.callbacks.Callback):
    """Saves a backup after each epoch, so that a killed run continues with the exact same numbers.

    `keras.callbacks.BackupAndRestore` restores the weights, the optimizer and the epoch. This
    callback also restores the states of the random seed generators: without them, other dropout
    masks are drawn after a restart. The process may be killed at any time, even while a backup is
    written or deleted: the next start restores the last complete backup.

    `fit` continues at the beginning of the epoch that was interrupted, so at most `steps_per_epoch`
    steps are lost. The results are exact if the data of an epoch depends only on the number of
    steps trained so far, for example on `model.optimizer.iterations` when the first batch is
    requested, and not on earlier epochs in the same process, as a reshuffled dataset does. The
    states of other callbacks, such as the patience of `EarlyStopping`, are not restored. On the
    PyTorch backend, give `seed` to layers that draw random numbers: without a seed, Keras uses
    PyTorch's global generator, which is not saved.

    Args:
        backup_dir: Local directory for the backup. The backup is deleted when `fit` ends.

    Example:

    >>> import tempfile
    >>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dropout(0.5)])
    >>> model.compile(keras.optimizers.SGD(), "mse")
    >>> x = np.ones((4, 8))
    >>> with tempfile.TemporaryDirectory() as backup_dir:
    ...     backup = keras_xlnet.training.ExactBackupAndRestore(backup_dir)
    ...     history = model.fit(x, x, epochs=2, callbacks=[backup], verbose=0)

    Source: `keras.callbacks.BackupAndRestore`, which saves and restores everything except the
        random states.
    """

    def __init__(self, backup_dir: PathLike) -> None:
        super().__init__()
        self.backup_dir = pathlib.Path(backup_dir)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        for leftover in (_UNFINISHED, _DELETED):
            shutil.rmtree(self.backup_dir / leftover, ignore_errors=True)
        backups = self._backups()
        if backups:
            self._keras_callback(backups[-1]).on_train_begin()
            self._restore_random_state(backups[-1])

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        unfinished = self.backup_dir / _UNFINISHED
        self._keras_callback(unfinished).on_epoch_end(epoch)
        self._save_random_state(unfinished)
        older = self._backups()
        # A rename is atomic, so a directory named epoch_N is always complete.
        os.replace(unfinished, self.backup_dir / f"epoch_{epoch + 1}")
        self._delete(older)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._delete(self._backups())

    def _backups(self):
        """Returns the complete backups, the newest last. Only a kill leaves more than one."""
        found = [p for p in self.backup_dir.glob("epoch_*") if re.fullmatch(r"epoch_\d+", p.name)]
        return sorted(found, key=lambda p: int(p.name.removeprefix("epoch_")))

    def _delete(self, backups):
        for backup in backups:
            # Renamed first: a half-deleted epoch_N would be taken for a complete backup.
            os.replace(backup, self.backup_dir / _DELETED)
            shutil.rmtree(self.backup_dir / _DELETED)

    def _keras_callback(self, directory):
        callback = keras.callbacks.BackupAndRestore(str(directory))
        callback.set_model(self.model)
        return callback

    def _save_random_state(self, directory):
        states = [keras.ops.convert_to_numpy(state) for state in self._random_states()]
        np.savez(directory / "random_state.npz", *states)

    def _restore_random_state(self, directory):
        with np.load(directory / "random_state.npz") as saved:
            for state, value in zip(self._random_states(), saved.values(), strict=True):
                state.assign(value)

    def _random_states(self):
        # In the order of the model's variables: the names of seed generators contain a counter
        # of the process, so they are different after a restart.
        return [v for v in self.model.variables if v.name == "seed_generator_state"]

import os
import pathlib
import re
import shutil

import keras
import numpy as np


class ExactBackupAndRestore(keras.callbacks.Callback):
    """`keras.callbacks.BackupAndRestore`, after which training goes on as if never killed.

    Keras restores weights, optimizer and epoch. This callback adds the state of the random
    generators of layers, without which another dropout is drawn after the restart; and it holds a
    backup complete at any moment, so that a kill while one is written does no harm.

    `fit` starts again at the epoch that was killed: `steps_per_epoch` sets how much work is lost at
    most. To get the same numbers, the data of an epoch must be a function of its number, such as
    `model.optimizer.iterations` gives it when the first batch is asked for; a shuffle that depends
    on the epochs before it in the same process is not. State of other callbacks, such as the
    patience of `EarlyStopping`, is not kept. On PyTorch, layers need a `seed`: Keras draws from a
    generator of PyTorch's own without one.

    Args:
        backup_dir: Local directory. The backup in it is deleted when `fit` ends.

    Example:

    >>> import tempfile
    >>> model = keras.Sequential([keras.Input((8,)), keras.layers.Dropout(0.5)])
    >>> model.compile(keras.optimizers.SGD(), "mse")
    >>> x = np.ones((4, 8))
    >>> with tempfile.TemporaryDirectory() as backup_dir:
    ...     backup = keras_xlnet.training.ExactBackupAndRestore(backup_dir)
    ...     history = model.fit(x, x, epochs=2, callbacks=[backup], verbose=0)

    Source: Keras' `BackupAndRestore`, which does the restoring of what it saves.
    """

    def __init__(self, backup_dir):
        super().__init__()
        self.backup_dir = pathlib.Path(backup_dir)

    def on_train_begin(self, logs=None):
        backups = self._backups()
        if backups:
            self._keras_callback(backups[-1]).on_train_begin()
            self._restore_random_state(backups[-1])

    def on_epoch_end(self, epoch, logs=None):
        unfinished = self.backup_dir / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._keras_callback(unfinished).on_epoch_end(epoch)
        self._save_random_state(unfinished)
        older = self._backups()
        # Renaming is atomic: a backup of this name is complete.
        os.replace(unfinished, self.backup_dir / f"epoch_{epoch + 1}")
        for backup in older:
            shutil.rmtree(backup)

    def on_train_end(self, logs=None):
        for backup in self._backups():
            shutil.rmtree(backup)

    def _backups(self):
        """The complete backups, the newest last. There is more than one only after a kill."""
        found = [p for p in self.backup_dir.glob("epoch_*") if re.fullmatch(r"epoch_\d+", p.name)]
        return sorted(found, key=lambda p: int(p.name.removeprefix("epoch_")))

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
        # By their order: names of generators count up in a process, and differ in the next one.
        return [v for v in self.model.variables if v.name == "seed_generator_state"]

"""A training run that is killed and started again ends with the numbers of one that is not."""

import contextlib
import functools
import itertools
import os
import pathlib
import random
import shutil
import signal
import sys

import h5py
import keras
import numpy as np
import pytest

from keras_xlnet.training import ExactBackupAndRestore
from tests.forks import fork_program
from tests.training import train_and_be_killed
from tests.training.train_and_be_killed import EPOCHS, STEPS, Interrupt, train

# A killed process, and the one that goes on, give the same bits.
pytestmark = pytest.mark.optimized_graphs
SCRIPT = pathlib.Path(train_and_be_killed.__file__)


@pytest.fixture(scope="module")
def never_killed():
    return train()


def kill(backup_dir):
    step = random.randrange(STEPS)
    killed = fork_program(SCRIPT, backup_dir, 1, step)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    print(f"killed in step {step} of the second epoch")  # pytest shows it with a failure


def assert_same_end(actual, expected):
    (loss, _, variables), (expected_loss, _, expected_variables) = actual, expected
    assert loss == expected_loss
    for value, expected_value in zip(variables, expected_variables, strict=True):
        np.testing.assert_array_equal(value, expected_value)


def test_killed_run_ends_as_if_never_killed(tmp_path, never_killed):
    kill(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch_1"]
    resumed = train(ExactBackupAndRestore(tmp_path))
    assert never_killed[1] == EPOCHS
    assert resumed[1] == EPOCHS - 1
    assert_same_end(resumed, never_killed)
    assert not list(tmp_path.iterdir())


def test_keras_alone_draws_another_dropout(tmp_path, never_killed):
    # The reason for ExactBackupAndRestore. If this fails, Keras restores random states itself.
    with pytest.raises(KeyboardInterrupt):
        train(keras.callbacks.BackupAndRestore(tmp_path / "keras"), Interrupt())
    loss, epochs, _ = train(keras.callbacks.BackupAndRestore(tmp_path / "keras"))
    assert epochs == EPOCHS - 1
    assert loss != never_killed[0]


def test_directories_of_other_names_are_kept(tmp_path, never_killed):
    with pytest.raises(KeyboardInterrupt):
        train(ExactBackupAndRestore(tmp_path), Interrupt())
    (tmp_path / "epoch_0").mkdir()
    (tmp_path / "epoch_of_mine").mkdir()
    assert_same_end(train(ExactBackupAndRestore(tmp_path)), never_killed)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch_of_mine"]


# Killed after every single file operation.


class Killed(BaseException):
    """Stands for SIGKILL."""


class Killer:
    """Raises `Killed` instead of file operation `number` below a directory, and of all later ones.

    It listens to Python's audit events, so no function that changes files is missed. HDF5 files
    are written outside of Python: creating a dataset in one counts as an operation.
    """

    EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir")

    def __init__(self):
        self.active, self.directory = False, None
        sys.addaudithook(self.on_event)

    @contextlib.contextmanager
    def kill_before(self, number, directory):
        self.number, self.directory, self.count = number, str(directory), 0
        self.active = True
        try:
            yield
        finally:
            self.active = False

    def on_event(self, event, arguments):
        if self.active and event in self.EVENTS:
            path = arguments[0]
            # shutil.rmtree deletes names relative to a descriptor of their directory.
            is_relative = isinstance(path, str) and not os.path.isabs(path)
            is_below = str(path).startswith(self.directory)
            if is_below or (event != "open" and is_relative):
                self.operation()

    def operation(self):
        if self.active:
            self.count += 1
            if self.count >= self.number:
                raise Killed


@pytest.fixture(scope="module")
def killer():
    # An audit hook cannot be removed: one for all tests.
    return Killer()


@pytest.fixture
def kill_in_hdf5(killer, monkeypatch):
    create_dataset = h5py.Group.create_dataset

    def killable(group, *args, **kwargs):
        if group.file.mode != "r":
            killer.operation()
        return create_dataset(group, *args, **kwargs)

    monkeypatch.setattr(h5py.Group, "create_dataset", killable)


TINY_EPOCHS = 2


@functools.cache
def tiny_dataset():
    """Made once: Keras makes one of arrays in each `fit`, which takes longer than the training."""
    import tensorflow as tf

    x = np.arange(6, dtype="float32").reshape(2, 3)
    return tf.data.Dataset.from_tensors((x, x[:, :1]))


def train_tiny(backup_dir, *callbacks):
    """Returns the number of epochs trained and all variables at the end."""
    keras.utils.set_random_seed(2)
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dropout(0.5), keras.layers.Dense(1, use_bias=False)]
    )
    model.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    if backup_dir is not None:
        callbacks = [ExactBackupAndRestore(backup_dir), *callbacks]
    history = model.fit(tiny_dataset(), epochs=TINY_EPOCHS, callbacks=list(callbacks), verbose=0)
    return len(history.epoch), [v.numpy() for v in model.variables + model.optimizer.variables]


@pytest.fixture(scope="module")
def tiny_never_killed():
    return train_tiny(None)[1]


def complete_backups(directory):
    """Returns the numbers of the epochs that have a backup; each must have all its files."""
    backups = list(directory.glob("epoch_*"))
    names = {"latest.weights.h5", "training_metadata.json", "random_state.npz"}
    for backup in backups:
        assert {path.name for path in backup.iterdir()} == names
    return [int(backup.name.removeprefix("epoch_")) for backup in backups]


def assert_continues(directory, expected):
    last_epoch = max(complete_backups(directory), default=0)
    num_epochs, variables = train_tiny(directory)
    assert num_epochs == TINY_EPOCHS - last_epoch
    for value, expected_value in zip(variables, expected, strict=True):
        np.testing.assert_array_equal(value, expected_value)
    assert not list(directory.iterdir())
    return last_epoch


def kill_at(killer, number, directory):
    """Trains until the file operation of a number, and returns whether there was one."""
    try:
        with killer.kill_before(number, directory):
            train_tiny(directory)
    except Killed:
        return True
    return False


@pytest.mark.usefixtures("kill_in_hdf5")
def test_kill_after_every_file_operation(tmp_path, killer, tiny_never_killed):
    restored = []
    for number in itertools.count(1):
        directory = tmp_path / str(number)
        directory.mkdir()
        if not kill_at(killer, number, directory):
            break
        restored.append(assert_continues(directory, tiny_never_killed))
    # In the first save, in the second one, in its rotation and, once the last backup is renamed,
    # in the deletion at the end, after which training starts from the beginning.
    assert [epoch for epoch, _ in itertools.groupby(restored)] == [0, 1, 2, 0]
    assert min(restored.count(epoch) for epoch in range(TINY_EPOCHS + 1)) > 3


def test_kill_while_leftovers_are_deleted(tmp_path, killer, tiny_never_killed):
    killed = tmp_path / "killed"
    with pytest.raises(KeyboardInterrupt):
        train_tiny(killed, Interrupt(epoch=1, step=0))
    assert complete_backups(killed) == [1]
    for leftover in ("unfinished", "deleted"):
        (killed / leftover).mkdir()
        (killed / leftover / "latest.weights.h5").write_bytes(b"half of a file")
    for number in range(1, 7):
        directory = shutil.copytree(killed, tmp_path / str(number))
        assert kill_at(killer, number, directory)
        assert assert_continues(directory, tiny_never_killed) == 1

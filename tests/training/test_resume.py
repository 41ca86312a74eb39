"""A training run that was killed with SIGKILL ends exactly as one that was not."""

import os
import pathlib
import random
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_xlnet.training import ExactBackupAndRestore
from tests.training import train_and_be_killed
from tests.training.train_and_be_killed import EPOCHS, STEPS, Interrupt, train

SCRIPT = pathlib.Path(train_and_be_killed.__file__)
ROOT = SCRIPT.parents[2]


@pytest.fixture(scope="module")
def never_killed():
    return train()


def kill(backup_dir):
    step = random.randrange(STEPS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    killed = subprocess.run(
        [sys.executable, str(SCRIPT), str(backup_dir), "1", str(step)],
        env=environment,
        capture_output=True,
        text=True,
    )
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
    # The reason of ExactBackupAndRestore. Should this fail, Keras has mended it.
    with pytest.raises(KeyboardInterrupt):
        train(keras.callbacks.BackupAndRestore(tmp_path / "keras"), Interrupt())
    loss, epochs, _ = train(keras.callbacks.BackupAndRestore(tmp_path / "keras"))
    assert epochs == EPOCHS - 1
    assert loss != never_killed[0]


def test_kill_while_a_backup_is_written(tmp_path, never_killed, monkeypatch):
    def interrupted(source, destination):
        if destination.name == "epoch_2":
            raise KeyboardInterrupt
        source.rename(destination)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", interrupted)
        train(ExactBackupAndRestore(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"epoch_1", "unfinished"}
    resumed = train(ExactBackupAndRestore(tmp_path))
    assert resumed[1] == EPOCHS - 1
    assert_same_end(resumed, never_killed)


def test_kill_before_the_older_backup_is_deleted(tmp_path, never_killed):
    with pytest.raises(KeyboardInterrupt):
        train(ExactBackupAndRestore(tmp_path), Interrupt())
    (tmp_path / "epoch_0").mkdir()
    (tmp_path / "epoch_of_mine").mkdir()
    assert_same_end(train(ExactBackupAndRestore(tmp_path)), never_killed)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch_of_mine"]

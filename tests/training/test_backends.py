"""Optimizers, schedules and backups on JAX and PyTorch, each in its own process."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.training import compute

SCRIPT = pathlib.Path(compute.__file__)
ROOT = SCRIPT.parents[2]


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_steps_and_resume(backend):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "",
    }
    run = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    worst = json.loads(run.stdout.splitlines()[-1])
    assert worst.pop("resume") == 0
    assert set(worst) == {
        "adam_weight_decay",
        "lamb_weight_decay",
        "accumulation",
        "later_fits",
    }
    assert all(difference < 1e-6 for difference in worst.values()), worst

"""Training on 8 virtual devices of the JAX backend, in a process of its own."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_xlnet.training import layout_map

SCRIPT = pathlib.Path(__file__).with_name("distribute.py")
MODELS = ("permutation_lm", "text_classifier")
# Everything else is small: each device has all of it.
SPLIT = re.compile(
    r"token_embedding/embeddings|block_\d/attention/.*|attention_biases/.*"
    r"|block_\d/feed_forward/(intermediate/.*|output/kernel)"
)
MEMORY = re.compile(r"memory_\w+/.*")


# JAX compiles six train steps.
trains = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed: pip install '.[jax]' brings it")
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "PYTHONPATH": str(SCRIPT.parents[2]),
    }
    run = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@trains
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["data", "model"])
def test_losses_are_those_of_one_device(found, model, kind):
    expected, _ = found[f"{model}/one"]
    actual, _ = found[f"{model}/{kind}"]
    assert len(set(expected)) == 3
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


@trains
@pytest.mark.parametrize("model", MODELS)
def test_what_is_large_is_split(found, model):
    _, pieces = found[f"{model}/model"]
    expected = {
        path: 4 if SPLIT.fullmatch(path) else 2 if MEMORY.fullmatch(path) else 1 for path in pieces
    }
    assert pieces == expected
    assert sum(n > 1 for n in pieces.values()) > 10
    assert set(found[f"{model}/data"][1].values()) == {1}


@pytest.mark.parametrize("axis", ["batch", "model"])
def test_a_mesh_without_the_axis_is_refused(axis):
    class Mesh:
        axis_names = [name for name in ("batch", "model") if name != axis]

    with pytest.raises(ValueError, match=f"no axis '{axis}'. Received: {axis}_axis='{axis}'"):
        layout_map(Mesh())
    with pytest.raises(ValueError, match="no axis 'x'. Received: batch_axis='x'"):
        layout_map(Mesh(), batch_axis="x")


def test_no_path_has_two_layouts():
    mesh = keras.distribution.DeviceMesh((1, 1), ["batch", "model"], devices=["cpu:0"])
    layouts = layout_map(mesh)
    paths = [
        "outer/block_11/attention/key/kernel",
        "block_0/attention/output/kernel",
        "attention_biases/segment_bias",
        "memory_3/training_state",
        "memory_mask/evaluation_state",
        "token_embedding/embeddings",
    ]
    assert [len(layouts[path].axes) for path in paths] == [3, 3, 2, 3, 2, 2]
    for path in ("logits/kernel", "sequence_summary/pooling/attention/query/kernel"):
        assert layouts[path] is None

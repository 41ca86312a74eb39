"""Training on 8 virtual devices of the JAX backend, in its own process."""

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

from keras_xlnet import models
from keras_xlnet.training import layout_map

SCRIPT = pathlib.Path(__file__).with_name("distribute.py")
MODELS = ("permutation_lm", "text_classifier")
# What the docstring of `layout_map` says: all other weights are copied to each device.
SPLIT = re.compile(
    r"token_embedding/embeddings|block_\d/attention/.*|attention_biases/.*"
    r"|block_\d/feed_forward/(intermediate/.*|output/kernel)"
)
COPIED = re.compile(
    r".*norm/(gamma|beta)|block_\d/feed_forward/output/bias|mask_embedding/.*|logits/.*"
    r"|sequence_summary/.*|(start|end)_logits/.*|answer_class/.*"
)
MEMORY = re.compile(r"memory_\w+/.*")


# JAX compiles six train steps.
trains = pytest.mark.slow


def run_script(*arguments):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed: pip install '.[jax]' brings it")
    flags = "--xla_force_host_platform_device_count=8"
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}",
        "PYTHONPATH": str(SCRIPT.parents[2]),
    }
    run = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def found():
    return run_script()


@pytest.mark.parametrize("devices", ["2", pytest.param("4", marks=pytest.mark.slow)])
def test_batches_that_devices_cannot_divide(devices):
    """Arrays, a generator, a dataset, `fit`, `evaluate`, `predict`, weights: as on one device."""
    one, several = run_script("1", devices)
    assert [len(part) for part in several] == [len(part) for part in one]
    for actual, expected in zip(several, one, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@trains
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["data", "model"])
def test_losses_equal_those_of_one_device(found, model, kind):
    expected, _ = found[f"{model}/one"]
    actual, _ = found[f"{model}/{kind}"]
    assert len(set(expected)) == 3
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


@trains
@pytest.mark.parametrize("model", MODELS)
def test_weights_are_split_into_shards(found, model):
    _, shards = found[f"{model}/model"]
    expected = {
        path: 4 if SPLIT.fullmatch(path) else 2 if MEMORY.fullmatch(path) else 1 for path in shards
    }
    assert shards == expected
    assert sum(n > 1 for n in shards.values()) > 10
    assert set(found[f"{model}/data"][1].values()) == {1}


@pytest.mark.parametrize("axis", ["batch", "model"])
def test_a_mesh_without_the_axis_is_refused(axis):
    class Mesh:
        axis_names = [name for name in ("batch", "model") if name != axis]

    with pytest.raises(ValueError, match=f"`{axis}_axis` must be an axis .*: {axis}_axis='{axis}'"):
        layout_map(Mesh())
    with pytest.raises(ValueError, match="`batch_axis` must be .* Received: batch_axis='x'"):
        layout_map(Mesh(), batch_axis="x")


@pytest.fixture(scope="module")
def layouts():
    mesh = keras.distribution.DeviceMesh((1, 1), ["batch", "model"], devices=["cpu:0"])
    return layout_map(mesh)


def backbone(**kwargs):
    return models.XLNetBackbone(11, 1, 2, 4, 8, **kwargs)


@pytest.mark.parametrize(
    "make",
    [
        lambda: models.XLNetPermutationLM(backbone(memory_length=3), stateful=True, batch_size=2),
        lambda: models.XLNetTextClassifier(
            backbone(tie_attention_biases=True), num_classes=2, pooling="attention"
        ),
        lambda: models.XLNetTokenClassifier(backbone(), num_classes=2),
        lambda: models.XLNetQuestionAnswering(backbone()),
    ],
    ids=["permutation_lm", "text_classifier", "token_classifier", "question_answering"],
)
def test_every_weight_is_split_or_copied_as_documented(layouts, make):
    for weight in make().weights:
        layout = layouts[weight.path]
        is_split = SPLIT.fullmatch(weight.path) or MEMORY.fullmatch(weight.path)
        assert is_split or COPIED.fullmatch(weight.path), weight.path
        assert (layout is not None) == bool(is_split), weight.path
        assert layout is None or len(layout.axes) == len(weight.shape), weight.path


def test_no_path_matches_two_patterns(layouts):
    # Keras raises an error for such a path.
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

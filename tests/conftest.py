"""Fixtures that several tests share. Golden numbers come from the original implementation."""

import gc
import json
import os
import pathlib
import random
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hypothesis
import numpy as np
import pytest

from tests import quick_compiler

# Until the first test: imports make no garbage, and looking for it takes a third of their time.
gc.disable()
GOLDEN = pathlib.Path(__file__).parent / "golden"
SEED = 20
# A loaded machine takes its time: 400 ms for an example of 1 ms was seen.
hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")


@pytest.fixture(scope="session")
def golden_dir():
    return GOLDEN


@pytest.fixture(scope="session")
def tokenizer():
    """A tokenizer of 200 tokens. A test of other flags or tokens makes its own."""
    from keras_xlnet.tokenizers import XLNetTokenizer

    return XLNetTokenizer(GOLDEN / "spiece.model")


@pytest.fixture(scope="session")
def golden():
    """`golden("encoder.npz")` or `golden("heads.json")`: the parsed file, read once."""
    cache = {}

    def read(name):
        if name not in cache:
            path = GOLDEN / name
            if path.suffix == ".npz":
                with np.load(path) as arrays:
                    cache[name] = dict(arrays)
            else:
                cache[name] = json.loads(path.read_text(encoding="utf-8"))
        return cache[name]

    return read


@pytest.fixture(scope="session")
def golden_checkpoint():
    """`golden_checkpoint("tiny_ckpt")`: a function from a variable's original name to its value."""
    import tensorflow as tf

    def read(name):
        return tf.train.load_checkpoint(str(GOLDEN / name / "xlnet_model.ckpt")).get_tensor

    return read


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(scope="session")
def two_replicas():
    """A `MirroredStrategy` of two replicas on this processor."""
    import tensorflow as tf

    if len(tf.config.list_logical_devices("CPU")) < 2:
        pytest.skip("TensorFlow started with one logical device (see pytest_configure)")
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture(autouse=True, scope="module")
def _collect_garbage_quickly():
    """Keras collects garbage for each weight that it quantizes: not through all that was there."""
    gc.enable()
    gc.collect()
    gc.freeze()
    # What a trace makes stays until its test is over: it is not looked through again and again.
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(autouse=True, scope="module")
def _trace_quickly(request):
    """In `make test` TensorFlow does not optimize graphs, which run for milliseconds."""
    import tensorflow as tf

    as_users = request.node.get_closest_marker("optimized_graphs")
    disabled = _is_quick(request.config) and as_users is None
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": disabled})


def _is_quick(config):
    """Whether this is `make test`, and not `make test-all`."""
    return config.getoption("markexpr") == "not slow"


@pytest.fixture(autouse=True, scope="module")
def _seed_fixtures():
    import tensorflow as tf

    tf.random.set_seed(SEED)
    _seed()


@pytest.fixture(autouse=True)
def _seed_test(_seed_fixtures):
    _seed()


def _seed():
    """A test that passes once passes again, whichever tests ran before it in its process."""
    import keras

    keras.utils.set_random_seed(SEED)


def _keep_kernels():
    """Makes `keras.utils.set_random_seed` keep TensorFlow's kernels of eager operations.

    TensorFlow forgets them all, so that its random operations start again, and making one takes
    0.4 ms or more. Keras passes seeds to its operations. `tf.random.set_seed` forgets them still.
    """
    import keras
    import tensorflow as tf
    from tensorflow.python.eager import context

    def set_seed(seed):
        context.context()._seed, context.context()._rng = seed, random.Random(seed)

    def set_random_seed(seed, set_all=keras.utils.set_random_seed):
        with mock.patch.object(tf.random, "set_seed", set_seed):
            set_all(seed)

    keras.utils.set_random_seed = set_random_seed


def pytest_configure(config):
    if getattr(config.option, "numprocesses", None):
        return  # This process starts others, and runs no tests itself.
    # Compiling is nearly all that JAX does in the processes of tests.
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    # Logical devices can only be made before TensorFlow has started.
    import tensorflow as tf

    processor = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        processor, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    _keep_kernels()
    if _is_quick(config):
        quick_compiler.use_in_this_process()

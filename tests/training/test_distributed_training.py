"""Several replicas, here and in other processes, train and evaluate as one device does."""

import json
import socket
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.training import DistributedTraining, FineTuningAdamW
from tests.small_models import small_backbone
from tests.training import train_as_worker
from tests.training.train_as_worker import batches, make_model

STEPS = 5
INITIALIZER = keras.initializers.RandomNormal(stddev=0.3, seed=1)


@pytest.fixture(scope="module")
def one_device():
    """Losses of two epochs and of `evaluate`, predictions and weights, of one device."""
    return train_as_worker.train(make_model(), batches(STEPS), epochs=2)


def assert_same(actual, expected):
    assert actual["history"].keys() == expected["history"].keys()
    for key, values in expected["history"].items():
        np.testing.assert_allclose(actual["history"][key], values, rtol=0, atol=2e-6, err_msg=key)
    for key in ("evaluation", "predictions", "weights"):
        np.testing.assert_allclose(actual[key], expected[key], rtol=0, atol=2e-6, err_msg=key)


@pytest.mark.parametrize("steps_per_execution", [1, 2])
def test_two_replicas_train_as_one_device(steps_per_execution, two_replicas, one_device):
    # With 2, the last of 5 batches is alone; bool masks fail in Keras itself.
    with two_replicas.scope():
        model = make_model(steps_per_execution)
    assert batches(1).element_spec[0]["padding_mask"].dtype == tf.bool
    assert_same(train_as_worker.train(model, batches(STEPS), epochs=2), one_device)
    assert int(model.optimizer.iterations.numpy()) == 2 * STEPS


@pytest.mark.parametrize(
    "weighted, batch_size, optimizer",
    [
        (False, 10, "SGD"),
        (True, 10, "SGD"),
        (True, 21, "SGD"),
        (False, 10, "Adam"),
        (False, 10, "FineTuningAdamW"),
    ],
)
def test_replicas_with_different_numbers_of_rows_train_as_one_device(
    two_replicas, weighted, batch_size, optimizer, rng
):
    """Of 21 rows in batches of 10, the last batch is a row on one replica and none on the other."""
    inputs = {"token_ids": rng.integers(0, 40, (21, 6))}
    weights = rng.random(21) if weighted else None

    def train(strategy):
        with strategy.scope():
            model = make_model()
            if optimizer != "SGD":  # A large epsilon, so that small gradients stay small.
                made = FineTuningAdamW if optimizer == "FineTuningAdamW" else keras.optimizers.Adam
                model.compile(made(0.01, epsilon=0.1), loss=model.loss)
        arguments = {"batch_size": batch_size, "shuffle": False, "verbose": 0}
        y = np.arange(21) % 3
        loss = model.fit(inputs, y, sample_weight=weights, **arguments).history["loss"]
        return [*loss, *np.concatenate([np.ravel(w) for w in model.get_weights()])]

    expected = train(tf.distribute.get_strategy())
    np.testing.assert_allclose(train(two_replicas), expected, rtol=0, atol=1e-6)


def test_eager_steps_are_those_of_keras(two_replicas):
    with two_replicas.scope():
        model = make_model()
        model.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    inputs = {key: value for key, value in next(iter(batches(1)))[0].items() if key == "token_ids"}
    assert np.isfinite(model.evaluate(inputs, np.zeros(8), verbose=0)[0])


def test_any_model_can_have_it(two_replicas):
    class Line(DistributedTraining, keras.Sequential):
        pass

    with two_replicas.scope():
        model = Line([keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1), "mse", steps_per_execution=4)
    x = np.random.default_rng(0).normal(size=(64, 2)).astype("float32")
    y = x @ np.array([[2.0], [-1.0]], "float32")
    history = model.fit(x, y, batch_size=8, epochs=6, verbose=0).history["loss"]
    assert history[-1] < 0.01 * history[0]


def test_a_backbone_alone_trains_with_a_bool_mask(two_replicas):
    def train(strategy):
        with strategy.scope():
            model = small_backbone(vocabulary_size=40, kernel_initializer=INITIALIZER)
            # To trace the step takes seconds: only for several replicas.
            run_eagerly = strategy.num_replicas_in_sync == 1
            loss = {"sequence_output": "mse"}
            model.compile(keras.optimizers.SGD(0.5), loss, run_eagerly=run_eagerly)
        rng = np.random.default_rng(2)
        inputs = {
            "token_ids": rng.integers(9, 40, (8, 6)),
            "padding_mask": rng.random((8, 6)) < 0.8,
        }
        outputs = {"sequence_output": rng.normal(size=(8, 6, 16)).astype("float32")}
        data = tf.data.Dataset.from_tensors((inputs, outputs)).repeat(3)
        return model.fit(data, verbose=0, epochs=2).history["loss"]

    np.testing.assert_allclose(train(two_replicas), train(tf.distribute.get_strategy()), atol=2e-6)


def test_an_unsupported_version_of_keras_raises_an_error(two_replicas, monkeypatch):
    with two_replicas.scope():
        model = make_model()
    monkeypatch.delattr(keras.Model.__mro__[1], "_maybe_symbolic_build", raising=False)
    for base in keras.Model.__mro__:
        monkeypatch.delattr(base, "_maybe_symbolic_build", raising=False)
    with pytest.raises(RuntimeError, match="Unsupported Keras version.*3.12 to"):
        model.make_train_function(force=True)


# === Several processes ===


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start_workers(folder, **options):
    """Two processes that train together; what each prints is in `folder`."""
    ports = free_ports(2)
    workers = []
    for index in range(2):
        command = [sys.executable, train_as_worker.__file__]
        settings = {
            "index": index,
            "ports": ports,
            "folder": str(folder),
            "steps": STEPS,
            **options,
        }
        log = open(folder / f"{index}.log", "ab")
        workers.append(
            subprocess.Popen([*command, json.dumps(settings)], stdout=log, stderr=subprocess.STDOUT)
        )
    return workers


def results(folder, workers, timeout=240):
    for index, worker in enumerate(workers):
        if worker.wait(timeout) != 0:
            pytest.fail((folder / f"{index}.log").read_text()[-3000:])
    return [
        {key: json.loads(str(value)) if key == "history" else value for key, value in f.items()}
        for f in (dict(np.load(folder / f"{index}.npz")) for index in range(2))
    ]


@pytest.mark.slow
def test_two_workers_train_as_one_device(tmp_path, one_device):
    for result in results(tmp_path, start_workers(tmp_path, epochs=2, steps_per_execution=2)):
        assert_same(result, one_device)


@pytest.mark.slow
def test_a_worker_that_is_killed(tmp_path):
    """Both start again, and end with the same losses and weights as if nothing had been."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir(), killed.mkdir()
    expected = results(whole, start_workers(whole, epochs=4, backup=True))
    workers = start_workers(killed, epochs=4, backup=True, die_in_epoch=2)
    assert workers[1].wait(240) == -9
    deadline = time.monotonic() + 120
    while workers[0].poll() is None and time.monotonic() < deadline:
        time.sleep(0.5)
    assert workers[0].poll() not in (None, 0), "worker 0 did not notice"
    again = results(killed, start_workers(killed, epochs=4, backup=True))
    for actual, other in zip(again, expected, strict=True):
        np.testing.assert_array_equal(actual["weights"], other["weights"])
        assert (
            actual["history"]["loss"] == other["history"]["loss"][-len(actual["history"]["loss"]) :]
        )
        assert 1 <= len(actual["history"]["loss"]) <= 2

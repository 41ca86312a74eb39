"""Strategies by name. Those that change the devices of TensorFlow run in other processes."""

import json
import os
import pathlib
import types

import pytest

from keras_xlnet.training import make_strategy, worker_directory
from tests.forks import fork_program

SCRIPT = pathlib.Path(__file__).with_name("name_a_strategy.py")


def run(tf_config=None, **arguments):
    result = fork_program(SCRIPT, json.dumps(arguments), json.dumps(tf_config))
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_one_device():
    strategy = make_strategy()
    assert strategy.num_replicas_in_sync == 1
    assert worker_directory(strategy, "d") == "d"


def test_the_cpu_is_split():
    assert run(name="mirrored", num_replicas=3) == "MirroredStrategy 3 d"


def test_workers_of_tf_config():
    config = {"cluster": {"worker": ["127.0.0.1:0"]}, "task": {"type": "worker", "index": 0}}
    assert run(config, name="multi_worker").endswith("1 d")


def test_no_tpu():
    message = run(name="tpu")
    assert message.startswith("ValueError No TPU found. Received: tpu='local': ")
    assert "\n" not in message


def test_other_workers_get_their_own_directory():
    resolver = types.SimpleNamespace(task_id=2)
    strategy = types.SimpleNamespace(cluster_resolver=resolver)
    assert worker_directory(strategy, "d") == os.path.join("d", "worker-2")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"name": "horovod"}, "`name` must be one of .*'multi_worker', 'tpu'"),
        (
            {"name": "tpu", "num_replicas": 2},
            "`num_replicas` can only be given with name='mirrored'",
        ),
        ({"name": "mirrored", "num_replicas": 0}, "`num_replicas` must be a positive integer"),
        ({"name": "multi_worker"}, "needs the environment variable TF_CONFIG"),
    ],
)
def test_bad_arguments(arguments, message, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match=message):
        make_strategy(**arguments)

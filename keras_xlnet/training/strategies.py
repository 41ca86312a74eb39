"""`tf.distribute` strategies by name, for programs with a command-line flag for the strategy."""

import os
from typing import Any

from keras_xlnet.arguments import check_choice, check_positive_int
from keras_xlnet.lazy_modules import tf
from keras_xlnet.types import PathLike

#: Names of the strategies of `make_strategy`.
STRATEGIES = ("one_device", "mirrored", "multi_worker", "tpu")


def make_strategy(
    name: str = "one_device", num_replicas: int | None = None, tpu: str = "local"
) -> Any:
    """Creates the `tf.distribute` strategy in whose `scope()` a model is created and compiled.

    Call this function before any other TensorFlow function: the devices of a process cannot be
    configured once they are in use.

    Args:
        name: String, one of `STRATEGIES`. `"one_device"`: the default strategy.
            `"mirrored"`: all GPUs of this machine. `"multi_worker"`: the machines that the
            environment variable `TF_CONFIG` lists. `"tpu"`: all cores of a TPU.
        num_replicas: Int, number of devices, only for `"mirrored"`. If the machine has fewer GPUs,
            the CPU is split into this many logical devices. Training is then slower than on one
            device, but programs can be tested.
        tpu: String, only for `"tpu"`. `"local"` on a Cloud TPU VM, otherwise the name or the
            address of the TPU.

    Returns:
        A `tf.distribute.Strategy`.

    Raises:
        ValueError: If an argument is invalid, `TF_CONFIG` is missing or the TPU is not found.
        RuntimeError: If TensorFlow has already initialized its devices.

    Example:

    >>> strategy = keras_xlnet.training.make_strategy("one_device")
    >>> strategy.num_replicas_in_sync
    1
    """
    check_choice("name", name, STRATEGIES)
    if num_replicas is not None:
        check_positive_int("num_replicas", num_replicas)
        if name != "mirrored":
            raise ValueError(
                "`num_replicas` can only be given with name='mirrored'. Received: "
                f"num_replicas={num_replicas}, name={name!r}"
            )
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_mirrored_devices(num_replicas))
    if name == "multi_worker":
        return _multi_worker_strategy()
    return _tpu_strategy(tpu) if name == "tpu" else tf.distribute.get_strategy()


def worker_directory(strategy: Any, directory: PathLike) -> str:
    """Returns the directory in which this process writes, a different one for each worker.

    Args:
        strategy: A `tf.distribute.Strategy`.
        directory: Path, the directory of the first worker (the chief).

    Returns:
        String: `directory` for the chief or the only process, `directory/worker-1` and so on for
        other workers.

    Example:

    >>> strategy = keras_xlnet.training.make_strategy("one_device")
    >>> keras_xlnet.training.worker_directory(strategy, "runs/mine")
    'runs/mine'
    """
    index = getattr(strategy.cluster_resolver, "task_id", None)
    return os.path.join(directory, f"worker-{index}") if index else os.fspath(directory)


def _multi_worker_strategy():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if not resolver.cluster_spec().as_dict():
        raise ValueError(
            "name='multi_worker' needs the environment variable TF_CONFIG: JSON that lists all "
            "workers and the index of this one (see docs/distributed.md)"
        )
    return tf.distribute.MultiWorkerMirroredStrategy()


def _tpu_strategy(tpu):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise ValueError(f"No TPU found. Received: tpu={tpu!r}: {message}") from error
    return tf.distribute.TPUStrategy(resolver)


def _mirrored_devices(num_replicas):
    """Returns device names, or `None` for all GPUs."""
    if num_replicas is None:
        return None
    if len(tf.config.list_physical_devices("GPU")) >= num_replicas:
        return [f"GPU:{i}" for i in range(num_replicas)]
    (cpu,) = tf.config.list_physical_devices("CPU")
    logical_devices = [tf.config.LogicalDeviceConfiguration()] * num_replicas
    if tf.config.get_logical_device_configuration(cpu) != logical_devices:
        tf.config.set_logical_device_configuration(cpu, logical_devices)
    return [f"CPU:{i}" for i in range(num_replicas)]

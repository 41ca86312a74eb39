"""A `tf.distribute` strategy by its name, for programs that take one as a flag."""

import os

from keras_xlnet.layers.arguments import check_choice, check_positive_int

STRATEGIES = ("one_device", "mirrored", "multi_worker", "tpu")


def make_strategy(name="one_device", num_replicas=None, tpu="local"):
    """Makes the strategy in whose `scope()` a model is made and compiled.

    Call it before anything else of TensorFlow is used: several workers, a TPU and logical devices
    can only be set up then.

    Args:
        name: `"one_device"`; `"mirrored"`: all GPUs of this machine; `"multi_worker"`: several
            machines, which `TF_CONFIG` names; `"tpu"`: all cores of a TPU.
        num_replicas: Int, only for `"mirrored"`: how many devices. On a machine without so many
            GPUs, the processor is split into as many: slower than one device, but good for trying.
        tpu: Only for `"tpu"`: `"local"` on a Cloud TPU VM, otherwise a name or an address.

    Returns:
        A `tf.distribute.Strategy`.

    Raises:
        ValueError: If there is no such strategy, or `TF_CONFIG` is missing.
        RuntimeError: If TensorFlow has been used before.

    Example:

    >>> strategy = keras_xlnet.training.make_strategy("one_device")
    >>> strategy.num_replicas_in_sync
    1
    """
    import tensorflow as tf

    check_choice("name", name, STRATEGIES)
    if num_replicas is not None:
        check_positive_int("num_replicas", num_replicas)
        if name != "mirrored":
            raise ValueError(f"`num_replicas` is for 'mirrored'. Received: name={name!r}")
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_devices(num_replicas))
    if name == "multi_worker":
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        if not resolver.cluster_spec().as_dict():
            raise ValueError(
                "name='multi_worker' needs the environment variable TF_CONFIG: JSON with all "
                "workers and which one this is (docs/distributed.md)"
            )
        return tf.distribute.MultiWorkerMirroredStrategy()
    return _tpu_strategy(tpu) if name == "tpu" else tf.distribute.get_strategy()


def worker_directory(strategy, directory):
    """Where this process writes, so that workers are not in each other's way.

    Args:
        strategy: A `tf.distribute.Strategy`.
        directory: Path for the first worker, the chief.

    Returns:
        `directory` for the chief or the only process; `directory/worker-1` and so on for others.

    Example:

    >>> strategy = keras_xlnet.training.make_strategy("one_device")
    >>> keras_xlnet.training.worker_directory(strategy, "runs/mine")
    'runs/mine'
    """
    index = getattr(strategy.cluster_resolver, "task_id", None)
    return os.path.join(directory, f"worker-{index}") if index else os.fspath(directory)


def _tpu_strategy(tpu):
    import tensorflow as tf

    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ValueError) as error:
        message = str(error).splitlines()[0]
        raise ValueError(f"There is no TPU at tpu={tpu!r}: {message}") from error
    return tf.distribute.TPUStrategy(resolver)


def _devices(num_replicas):
    """Names of devices; `None` for all GPUs."""
    import tensorflow as tf

    if num_replicas is None:
        return None
    if len(tf.config.list_physical_devices("GPU")) >= num_replicas:
        return [f"GPU:{i}" for i in range(num_replicas)]
    (processor,) = tf.config.list_physical_devices("CPU")
    parts = [tf.config.LogicalDeviceConfiguration()] * num_replicas
    if tf.config.get_logical_device_configuration(processor) != parts:
        tf.config.set_logical_device_configuration(processor, parts)
    return [f"CPU:{i}" for i in range(num_replicas)]

"""Checkpoints that several tests read."""

import shutil

import pytest
import tensorflow as tf

from keras_xlnet.checkpoints.original_files import write_checkpoint


def values_of(prefix):
    """`{name: value}` of a TensorFlow checkpoint."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.fixture
def checkpoint(tmp_path, golden_dir):
    """A copy of the original's pretraining checkpoint, to damage."""
    return shutil.copytree(golden_dir / "tiny_ckpt", tmp_path / "checkpoint")


@pytest.fixture(scope="session")
def fine_tuned(tmp_path_factory, golden_dir):
    """The encoder with all of the original's heads but that of answers, and a vocabulary."""
    directory = tmp_path_factory.mktemp("fine_tuned")
    values = values_of(golden_dir / "tiny_ckpt" / "xlnet_model.ckpt")
    values |= values_of(golden_dir / "heads_ckpt" / "xlnet_model.ckpt")
    write_checkpoint(directory / "xlnet_model.ckpt", values)
    shutil.copy(golden_dir / "tiny_ckpt" / "xlnet_config.json", directory)
    shutil.copy(golden_dir / "spiece.model", directory)
    return directory

"""The files of a checkpoint of the original: TensorFlow 1 variables and `xlnet_config.json`."""

import pathlib
from typing import Any

import keras
import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preset_files import file_in
from keras_xlnet.preset_files.files import read_json
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.types import PathLike

CONFIG, PREFIX, VOCABULARY = "xlnet_config.json", "xlnet_model.ckpt", "spiece.model"
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu"}


class OriginalCheckpoint:
    """Reads the variables of a TensorFlow 1 checkpoint.

    Args:
        path: A directory with one checkpoint in it, or with `xlnet_model.ckpt`; or the prefix of a
            checkpoint, such as `model/model.ckpt-4000`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it cannot be read, or there are several.
    """

    def __init__(self, path: PathLike) -> None:
        self.prefix = _prefix(pathlib.Path(path))
        self.directory = self.prefix.parent
        # Without TensorFlow this is an ImportError. Errors below are of the files.
        load = tf.train.load_checkpoint
        try:
            self._reader = load(str(self.prefix))
            self.shapes = self._reader.get_variable_to_shape_map()
            dtypes = self._reader.get_variable_to_dtype_map()
        except Exception as error:  # The reader raises IndexError, RuntimeError and others.
            raise ValueError(
                f"{self.prefix}.index cannot be read as a checkpoint: {error}"
            ) from error
        self.dtypes = {name: dtype.name for name, dtype in dtypes.items()}

    def __str__(self) -> str:
        return f"the checkpoint {self.prefix}"

    def file_of(self, name: str) -> str:
        """Returns what errors call the file of a variable."""
        return str(self.prefix)

    def read(self, name: str) -> np.ndarray:
        """Returns the value of a variable."""
        try:
            return self._reader.get_tensor(name)
        except Exception as error:  # As above.
            raise ValueError(f"{name!r} in {self.prefix} cannot be read: {error}") from error


def _prefix(path):
    if not path.is_dir():
        file_in(path.parent, f"{path.name}.index")
        prefix = path
    else:
        indices = sorted(file.name for file in path.glob("*.index"))
        if len(indices) > 1 and f"{PREFIX}.index" not in indices:
            raise ValueError(
                f"{path} has several checkpoints, {indices}: pass the prefix of one, such as "
                f"{path / pathlib.Path(indices[0]).stem}"
            )
        is_other = len(indices) == 1
        prefix = path / (indices[0].removesuffix(".index") if is_other else PREFIX)
        file_in(path, f"{prefix.name}.index")
    for shard in prefix.parent.glob(f"{prefix.name}.data-*"):
        file_in(prefix.parent, shard.name)
    return prefix


def write_checkpoint(prefix: PathLike, values: dict[str, np.ndarray]) -> None:
    """Writes `{name: array}` in the format of TensorFlow 1's `Saver`."""
    names = sorted(values)
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(values[name]) for name in names],
    )


def read_config(file: PathLike) -> dict[str, Any]:
    """Returns the arguments of `XLNetBackbone` that `xlnet_config.json` fixes.

    Raises:
        ValueError: If the file is not JSON, or an entry is missing or unknown.
    """
    config = read_json(file)
    try:
        return {
            "vocabulary_size": config["n_token"],
            "num_layers": config["n_layer"],
            "num_heads": config["n_head"],
            "head_dim": config["d_head"],
            "hidden_dim": config["d_model"],
            "intermediate_dim": config["d_inner"],
            "activation": _ACTIVATIONS[config["ff_activation"]],
            "tie_attention_biases": not config["untie_r"],
        }
    except (KeyError, TypeError) as error:
        raise ValueError(f"{file} has no value, or an unknown value, for {error}") from error


def config_of(backbone: keras.Model) -> dict[str, Any]:
    """Returns the entries of `xlnet_config.json` for a backbone.

    Raises:
        ValueError: If the original has no model that computes the same.
    """
    activations = {ours: theirs for theirs, ours in _ACTIVATIONS.items()}
    activation = getattr(backbone.activation, "__name__", None)
    if activation not in activations:
        raise ValueError(
            f"The original has the activations {sorted(activations)}. "
            f"Received: a model with {activation!r}"
        )
    if backbone.layer_norm_epsilon != 1e-12:
        raise ValueError(
            "The original's `layer_norm_epsilon` is 1e-12. Received: a model with "
            f"{backbone.layer_norm_epsilon}"
        )
    return {
        "d_head": backbone.head_dim,
        "d_inner": backbone.intermediate_dim,
        "d_model": backbone.hidden_dim,
        "ff_activation": activations[activation],
        "n_head": backbone.num_heads,
        "n_layer": backbone.num_layers,
        "n_token": backbone.vocabulary_size,
        "untie_r": not backbone.tie_attention_biases,
    }


def read_tokenizer(directory: pathlib.Path) -> XLNetTokenizer | None:
    """Returns the tokenizer of the original's cased models, `None` if there is no vocabulary."""
    if not (directory / VOCABULARY).exists():
        return None
    file = file_in(directory, VOCABULARY)
    try:
        # As the original's scripts prepare text for cased models.
        return XLNetTokenizer(str(file), remove_accents=True)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error

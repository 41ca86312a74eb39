"""The weights of a Hugging Face directory: `model.safetensors`, in one file or in shards."""

import pathlib

import safetensors
from safetensors.numpy import save_file

from keras_xlnet.presets import file_in
from keras_xlnet.presets.json_file import read_json

WEIGHTS, INDEX, CONFIG = "model.safetensors", "model.safetensors.index.json", "config.json"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_DTYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


class HuggingFaceCheckpoint:
    """Reads the tensors of a directory, each when it is asked for.

    Args:
        directory: Path of the directory.
        config: What `config.json` says.

    Raises:
        FileNotFoundError: If there are no weights.
        ValueError: If the weights are pickles, which can run code, or cannot be read.
    """

    def __init__(self, directory, config):
        self.directory = pathlib.Path(directory)
        # `torch_dtype` is what older releases wrote.
        self.declared_dtype = config.get("dtype") or config.get("torch_dtype")
        self.shapes, self.dtypes, self._paths = {}, {}, {}
        files, index = _weight_files(self.directory, config)
        for file in files:
            with _open(file) as tensors:
                for name in tensors.keys():
                    tensor = tensors.get_slice(name)
                    self.shapes[name] = tuple(tensor.get_shape())
                    self.dtypes[name] = _DTYPES.get(tensor.get_dtype(), tensor.get_dtype())
                    self._paths[name] = file
        _check_index(index, self._paths, self.directory)

    def __str__(self):
        return f"the checkpoint in {self.directory}"

    def file_of(self, name):
        """The file that holds a tensor."""
        return str(self._paths[name])

    def read(self, name):
        """The value of a tensor."""
        # Opened for each tensor: the file is mapped into memory, and what has been read of it
        # would stay there. (NumPy knows bfloat16 since Keras has been imported.)
        with _open(self._paths[name]) as tensors:
            return tensors.get_tensor(name)


def write_weights(directory, values):
    """Writes `{name: array}` as `model.safetensors`."""
    # transformers looks for who wrote the file.
    save_file(values, pathlib.Path(directory) / WEIGHTS, metadata={"format": "pt"})


def _weight_files(directory, config):
    """The files, and the index if they are shards."""
    if (directory / INDEX).exists() and not (directory / WEIGHTS).exists():
        index = read_json(file_in(directory, INDEX)).get("weight_map")
        if not isinstance(index, dict) or not all(isinstance(v, str) for v in index.values()):
            raise ValueError(f"{directory / INDEX} has no `weight_map` from names to files")
        return [file_in(directory, name) for name in sorted(set(index.values()))], index
    pickles = [name for name in _PICKLES if (directory / name).exists()]
    if pickles and not (directory / WEIGHTS).exists():
        (architecture, *_) = config.get("architectures") or ["XLNetModel"]
        raise ValueError(
            f"{directory / pickles[0]} is a PyTorch pickle, which can run any code when it is "
            "loaded: it is not read here. If you trust it, convert it where transformers and "
            f'torch are installed: python -c "from transformers import {architecture} as M; '
            f"M.from_pretrained('{directory}').save_pretrained('{directory}-safetensors')\""
        )
    return [file_in(directory, WEIGHTS)], None


def _open(file):
    try:
        return safetensors.safe_open(file, "np")
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{file} cannot be read as safetensors: {error}") from error


def _check_index(index, paths, directory):
    for name, file in (index or {}).items():
        if name not in paths or paths[name].name != file:
            raise ValueError(
                f"{directory / INDEX} says that {name!r} is in {file}, but it is not there"
            )

"""Converts the network of a preset to a file, in a process with the backend of the format.

KERAS_BACKEND=torch python -m keras_xlnet.serving.portable.convert onnx PRESET FILE OUTPUT [int8]

The backend for litert is tensorflow.
"""

import pathlib
import sys

import keras
from keras import ops

from keras_xlnet.models import Task
from keras_xlnet.serving.portable.litert_format import write_litert
from keras_xlnet.serving.portable.onnx_format import write_onnx
from keras_xlnet.types import PathLike


def load_network(preset: PathLike, output: str) -> keras.Model:
    """Returns the network of a task model in float32, with inputs `(batch, length)`.

    Args:
        preset: Directory of a preset of a task model.
        output: String, the name of the network's output.
    """
    model = Task.from_preset(preset, dtype="float32")
    model.trainable = False
    inputs = {
        name: keras.Input((None,), dtype=value.dtype, name=name)
        for name, value in model.input.items()
    }
    if len(model.input["token_ids"].shape) == 2:
        return keras.Model(inputs, {output: model(inputs)})
    rows = {name: ops.expand_dims(value, 1) for name, value in inputs.items()}
    return keras.Model(inputs, {output: model(rows)[:, 0]})


def main(format: str, preset: str, file: str, output: str, quantization: str = "") -> None:
    """Loads a preset and writes a file. An empty `quantization` means `None`."""
    write = {"onnx": write_onnx, "litert": write_litert}[format]
    write(load_network(preset, output), pathlib.Path(file), quantization or None)


if __name__ == "__main__":
    main(*sys.argv[1:])

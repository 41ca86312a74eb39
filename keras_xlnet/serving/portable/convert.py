"""Converts the network of a preset to a file, in a process with the backend of the format.

KERAS_BACKEND=torch python -m keras_xlnet.serving.portable.convert onnx PRESET FILE [int8]

The backend for litert is tensorflow.
"""

import pathlib
import sys

from keras_xlnet.models.base_model import BaseModel
from keras_xlnet.models.preset import class_of_preset
from keras_xlnet.serving.portable.litert_format import write_litert
from keras_xlnet.serving.portable.networks import network_of
from keras_xlnet.serving.portable.onnx_format import write_onnx


def main(format: str, preset: str, file: str, quantization: str = "") -> None:
    """Loads a preset and writes a file. An empty `quantization` means `None`."""
    write = {"onnx": write_onnx, "litert": write_litert}[format]
    found, directory = class_of_preset(preset, BaseModel)
    model = found.from_preset(directory, dtype="float32")
    model.trainable = False
    write(network_of(model), pathlib.Path(file), quantization or None)


if __name__ == "__main__":
    main(*sys.argv[1:])

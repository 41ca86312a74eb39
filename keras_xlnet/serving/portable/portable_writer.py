"""Writes a directory with an ONNX or LiteRT network and a program that makes its token ids."""

import dataclasses
import importlib.util
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from typing import Any

from keras_xlnet import models
from keras_xlnet.arguments import check_choice
from keras_xlnet.lazy_modules import install_command
from keras_xlnet.serving.portable import predict
from keras_xlnet.tokenizers.digit_comma import digit_comma_rows
from keras_xlnet.tokenizers.sentencepiece_model import load_processor, read_proto

PORTABLE_FORMATS = ("onnx", "litert")
QUANTIZATIONS = (None, "float16", "int8")
# The `signatures` of models with one output per text.
_SIGNATURES = ("texts", "classes")
_SETTINGS = "model.json"


@dataclasses.dataclass(frozen=True)
class _Format:
    """The file of a network, and the process that writes it."""

    file: str
    # The Keras backend whose graphs can be converted.
    backend: str
    modules: tuple[str, ...]
    extra: str


_FORMATS = {
    "onnx": _Format("model.onnx", "torch", ("torch", "onnx", "onnxscript", "onnxruntime"), "onnx"),
    "litert": _Format("model.tflite", "tensorflow", ("tensorflow",), "tensorflow"),
}


def names_of_models(signatures: Collection[str]) -> str:
    """Returns the names of the models that declare one of these `signatures`, for errors."""
    exported = vars(models).values()
    found = [x.__name__ for x in exported if getattr(x, "signatures", None) in signatures]
    return ", ".join(found)


def portable_writer(
    model: Any, format: str, quantization: str | None = None
) -> Callable[[pathlib.Path], None]:
    """Returns a function that writes a network and its tokenizer to a directory.

    A separate process converts the network, because a process has one Keras backend: ONNX needs
    PyTorch, and LiteRT needs TensorFlow.

    Args:
        model: As in `export`, with a preprocessor that has a vocabulary.
        format: String, `"onnx"` or `"litert"`.
        quantization: As in `export`.

    Raises:
        TypeError: If `model` has another class.
        ValueError: If an argument is not as in `export`, or the model is quantized or reads long
            documents in parts.
        ImportError: If a package that the format needs is not installed.
    """
    check_choice("quantization", quantization, QUANTIZATIONS)
    if getattr(model, "signatures", None) not in _SIGNATURES:
        raise TypeError(
            f"`model` must be one of {names_of_models(_SIGNATURES)} for format={format!r}. "
            f"Received: {type(model).__name__}. The format 'saved_model' takes it"
        )
    if model.long_document != "truncate":
        raise ValueError(
            f"`model` must have long_document='truncate' for format={format!r}, which has no loops "
            f"over parts of a text. Received: long_document={model.long_document!r}"
        )
    if any(getattr(layer, "quantization_mode", None) for layer in model._flatten_layers()):
        raise ValueError(
            f"`model` must not be quantized for format={format!r}. Export it as it was before "
            "`quantize`, with quantization='int8'"
        )
    target = _FORMATS[format]
    _check_installed(target, format)

    def write(directory):
        directory.mkdir()
        _write_network(model, target, directory / target.file, format, quantization)
        vocabulary = directory / "spiece.model"
        model.preprocessor.tokenizer.save(vocabulary)
        settings = {
            "network": target.file,
            "quantization": quantization,
            **_settings(model),
            "replaced_ids": _replaced_ids(vocabulary),
        }
        text = json.dumps(settings, indent=1, ensure_ascii=False) + "\n"
        (directory / _SETTINGS).write_text(text, encoding="utf-8")
        (directory / "predict.py").write_text(_standalone_program(), encoding="utf-8")

    return write


def _check_installed(target, format):
    missing = [name for name in target.modules if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"format={format!r} needs the package {missing[0]!r}, which is not installed: "
            f"{install_command(target.extra)}"
        )


def _write_network(model, target, file, format, quantization):
    with tempfile.TemporaryDirectory() as preset:
        model.save_to_preset(preset)
        _convert([format, preset, str(file), model.output_name, quantization or ""], target)


def _convert(arguments, target):
    environment = {
        **os.environ,
        "KERAS_BACKEND": target.backend,
        # The new process finds the packages of this one, wherever it was started.
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
    }
    command = [sys.executable, "-m", "keras_xlnet.serving.portable.convert", *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(
            f"The conversion to format={arguments[0]!r} failed, in the process "
            f"{' '.join(command)}:\n{result.stderr[-4000:]}"
        )


def _standalone_program():
    """The source of `predict.py`, with the source of the modules of this package it imports."""

    def source(match):
        module = inspect.getsource(importlib.import_module(match[1]))
        return f"# === {match[1]} ===\n\n{module}\n"

    return re.sub(
        r"^from (keras_xlnet\.\S+) import .*\n", source, inspect.getsource(predict), flags=re.M
    )


def _settings(model):
    """The settings for `predict.py`."""
    preprocessor = model.preprocessor
    tokenizer = preprocessor.tokenizer
    classes = {}
    if model.classes is not None and model.activation != "linear":
        classes = {
            "class_names": model.classes.names,
            "activation": model.activation,
            "threshold": model.threshold,
        }
    return {
        "model": type(model).__name__,
        "output": model.output_name,
        "lowercase": tokenizer.lowercase,
        "remove_space": tokenizer.remove_space,
        "remove_accents": tokenizer.remove_accents,
        **preprocessor.layout._asdict(),
        **classes,
    }


def _replaced_ids(vocabulary):
    """The ids that replace an id, for example the id of "9,": commas are not part of numbers."""
    rows = digit_comma_rows(load_processor(read_proto(vocabulary)))
    return {index: row for index, row in enumerate(rows) if row != [index]}

"""Writes a directory with an ONNX or LiteRT network and a program that makes its token ids."""

import dataclasses
import importlib.metadata
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

import keras

from keras_xlnet import models
from keras_xlnet.arguments import check_choice
from keras_xlnet.lazy_modules import install_command
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.models.scoring import check_orders
from keras_xlnet.preset_files.export_details import NETWORK_FILES, PORTABLE_FILE
from keras_xlnet.serving.model_details import write_model_details
from keras_xlnet.serving.portable.networks import NETWORKS, network_of
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.tokenizers.digit_comma import digit_comma_rows
from keras_xlnet.tokenizers.sentencepiece_model import load_processor, read_proto

PORTABLE_FORMATS = ("onnx", "litert")
QUANTIZATIONS = (None, "float16", "int8")
_SETTINGS = "model.json"
_TWO_TEXTS = '"a text" "another text"'
_PROGRAM = "keras_xlnet.serving.portable.predict"
# The folder of the modules that the program imports, in the place of this package.
_MODULES = "xlnet_text"
# Arguments of preprocessors that `encode_questions` and `encode_choices` take.
_OF_TASK = ("doc_stride", "max_question_length", "max_choice_length", "as_original")


@dataclasses.dataclass(frozen=True)
class _Format:
    """The file of a network, and the process that writes it."""

    file: str
    # The Keras backend whose graphs can be converted.
    backend: str
    modules: tuple[str, ...]
    extra: str
    # The package that runs the file.
    runtime: str


_FORMATS = {
    "onnx": _Format(
        NETWORK_FILES["onnx"],
        "torch",
        ("torch", "onnx", "onnxscript", "onnxruntime"),
        "onnx",
        "onnxruntime",
    ),
    "litert": _Format(
        NETWORK_FILES["litert"], "tensorflow", ("tensorflow",), "tensorflow", "ai-edge-litert"
    ),
}


def names_of_models(signatures: Collection[str]) -> str:
    """Returns the names of the models that declare one of these `signatures`, for errors."""
    exported = vars(models).values()
    found = [x.__name__ for x in exported if getattr(x, "signatures", None) in signatures]
    return ", ".join(found)


def portable_writer(
    model: Any, format: str, quantization: str | None = None, trained_on: str | None = None
) -> Callable[[pathlib.Path], None]:
    """Returns a function that writes a network and its tokenizer to a directory.

    A separate process converts the network, because a process has one Keras backend: ONNX needs
    PyTorch, and LiteRT needs TensorFlow.

    Args:
        model: As in `export`, with a vocabulary.
        format: String, `"onnx"` or `"litert"`.
        quantization, trained_on: As in `export`.

    Raises:
        TypeError: If `model` has another class.
        ValueError: If an argument is not as in `export`, or the model is quantized or stateful, or
            reads long documents in parts.
        ImportError: If a package that the format needs is not installed.
    """
    check_choice("quantization", quantization, QUANTIZATIONS)
    if getattr(model, "signatures", None) not in NETWORKS:
        raise TypeError(
            f"`model` must be one of {names_of_models(NETWORKS)} for format={format!r}. "
            f"Received: {type(model).__name__}"
        )
    _check_model(model, format)
    target = _FORMATS[format]
    _check_installed(target, format)

    def write(directory):
        directory.mkdir()
        _write_network(model, target, directory / target.file, format, quantization)
        vocabulary = directory / "spiece.model"
        _tokenizer_of(model).save(vocabulary)
        settings = {
            "network": target.file,
            "quantization": quantization,
            **_settings(model),
            "replaced_ids": _replaced_ids(vocabulary),
        }
        text = json.dumps(settings, indent=1, ensure_ascii=False) + "\n"
        (directory / _SETTINGS).write_text(text, encoding="utf-8")
        _write_program(directory)
        write_model_details(
            model,
            directory / PORTABLE_FILE,
            {"quantization": quantization},
            signatures={"network": _signature(network_of(model))},
            versions={name: _version(name) for name in target.modules},
            run=_run(model.signatures, target),
            trained_on=trained_on,
        )

    return write


def _check_model(model, format):
    module = type(model).__module__
    if module.partition(".")[0] != __name__.partition(".")[0]:
        raise ValueError(
            f"`model` must have a class of this package for format={format!r}, because another "
            f"process loads it. Received: {type(model).__name__} of {module}"
        )
    long_document = getattr(model, "long_document", "truncate")
    if long_document != "truncate":
        raise ValueError(
            f"`model` must have long_document='truncate' for format={format!r}, which has no loops "
            f"over parts of a text. Received: long_document={long_document!r}"
        )
    if any(getattr(layer, "quantization_mode", None) for layer in model._flatten_layers()):
        raise ValueError(
            f"`model` must not be quantized for format={format!r}. Export it as it was before "
            "`quantize`, with quantization='int8'"
        )
    if model.signatures == "permutation_lm":
        check_orders(model)
    if getattr(model, "stateful", False):
        raise ValueError(
            f"`model` must have `stateful=False` for format={format!r}: "
            "`model.with_arguments(stateful=False, batch_size=None)`"
        )
    tokenizer = _tokenizer_of(model)
    if not isinstance(tokenizer, (XLNetTokenizer, type(None))):
        raise ValueError(
            f"`model` must have an XLNetTokenizer for format={format!r}. Received: "
            f"tokenizer={tokenizer!r}"
        )


def _tokenizer_of(model):
    return getattr(getattr(model, "preprocessor", None), "tokenizer", None) or getattr(
        model, "tokenizer", None
    )


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
        _convert([format, preset, str(file), quantization or ""], target)


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


def _write_program(directory):
    """Writes `predict.py`, and the modules of this package that it imports, as they are."""
    package = __name__.partition(".")[0]
    imports = re.compile(rf"^(?:from|import) ({package}\.\S+)", re.MULTILINE)
    files, names = {_PROGRAM: directory / "predict.py"}, [_PROGRAM]
    for name in names:  # Each file adds the names of those that it imports.
        source = inspect.getsource(importlib.import_module(name))
        for found in imports.findall(source):
            if found not in files:
                names.append(found)
                parts = found.split(".")[1:]
                files[found] = directory.joinpath(_MODULES, *parts).with_suffix(".py")
        files[name].parent.mkdir(parents=True, exist_ok=True)
        # Programs can import both this package and the copies.
        source = re.sub(rf"^(from|import) {package}\.", rf"\1 {_MODULES}.", source, flags=re.M)
        files[name].write_text(source, encoding="utf-8")


def _settings(model):
    """The settings for `predict.py`."""
    tokenizer = _tokenizer_of(model)
    settings = {
        "model": type(model).__name__,
        "task": model.signatures,
        "lowercase": tokenizer.lowercase,
        "remove_space": tokenizer.remove_space,
        "remove_accents": tokenizer.remove_accents,
    }
    preprocessor = getattr(model, "preprocessor", None)
    if preprocessor is None:
        memory = getattr(model, "memory_length", None)
        return {
            **settings,
            "vocabulary_size": backbone_of(model).vocabulary_size,
            "memory_shape": [model.num_layers, memory, model.hidden_dim] if memory else None,
            "attend_to_empty_memory": getattr(model, "attend_to_empty_memory", False),
        }
    names = [name for name in _OF_TASK if hasattr(preprocessor, name)]
    settings |= {
        "output": model.output_name,
        "layout": preprocessor.layout._asdict(),
        "preprocessor": {name: getattr(preprocessor, name) for name in names},
    }
    if model.signatures == "answers":
        settings["null_threshold"] = model.null_threshold
    if model.signatures == "entities":
        settings["class_names"] = model.classes.names
    if model.signatures == "classes" and model.activation != "linear":
        settings["class_names"] = model.classes.names
        settings["activation"] = model.activation
        settings["threshold"] = model.threshold
    return settings


def _replaced_ids(vocabulary):
    """The ids that replace an id, for example the id of "9,": commas are not part of numbers."""
    rows = digit_comma_rows(load_processor(read_proto(vocabulary)))
    return {index: row for index, row in enumerate(rows) if row != [index]}


def _signature(network):
    """The inputs and outputs of a network, as `saved_model_signatures` describes them."""
    return {
        kind: {
            name: {"dtype": _dtype(x.dtype), "shape": list(x.shape)} for name, x in tensors.items()
        }
        for kind, tensors in (("inputs", network.input), ("outputs", network.output))
    }


def _version(module):
    """The version of a package, which this process need not import."""
    name, *_ = importlib.metadata.packages_distributions().get(module, [module])
    return importlib.metadata.version(name)


def _dtype(dtype):
    """The dtype in a file, which computes in float32."""
    dtype = keras.backend.standardize_dtype(dtype)
    return "float32" if "float" in dtype else dtype


def _run(task, target):
    """How to run the files in a directory."""
    given = {
        "answers": '"a question" "a context"',
        "choices": '"a text" "a choice" "another choice"',
        "ranking": '"a query" "a document" "another document"',
    }
    return {
        "install": f"pip install numpy sentencepiece {target.runtime}",
        "command": f"python predict.py {given.get(task, _TWO_TEXTS)}",
    }

"""The details of an exported model: a JSON file in its SavedModel."""

import json
import pathlib
import tempfile
from collections.abc import Collection, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tensorflow_text

import keras_xlnet
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preprocessing.labels import has_threshold
from keras_xlnet.preprocessing.tags import entity_types
from keras_xlnet.preset_files.adapter_weights import sha256_of_weights
from keras_xlnet.preset_files.export_details import FILE, FORMAT_VERSION
from keras_xlnet.preset_files.files import sha256_of
from keras_xlnet.preset_files.origin import origin_of, preset_of_vocabulary
from keras_xlnet.preset_files.weights import model_weights
from keras_xlnet.serving.saved_model_signatures import saved_model_signatures

_LENGTHS = ("sequence_length", "max_question_length", "doc_stride", "max_choice_length")
# Inputs of `serving_default`, for a request to try it.
_SAMPLES = {
    "text": "It is a fine day.",
    "question": "What is the day like?",
    "context": "It is a fine day.",
    "query": "weather",
    "documents": ["It is a fine day.", "A cat sleeps."],
    "choices": ["We stay at home.", "We go for a walk."],
}


def write_model_details(
    model: Any,
    directory: pathlib.Path,
    options: Mapping[str, Any],
    batch_size: int | None = None,
    trained_on: str | None = None,
    prefix: str = "",
) -> None:
    """Writes `assets.extra/model_details.json` into a SavedModel.

    The file depends only on the model, the arguments and the library versions: it has
    neither times nor paths.

    Args:
        model: The model that was exported.
        directory: `pathlib.Path` of the SavedModel.
        options: The options of `export` with the values that the signatures were made with.
        batch_size, trained_on: As in `export`.
        prefix: The prefix of the signatures of the model, if the SavedModel has several models. It
            is also the folder of the file in `assets.extra`.
    """
    signatures = {
        name.removeprefix(prefix): signature
        for name, signature in saved_model_signatures(directory)["signatures"].items()
        if name.startswith(prefix)
    }
    details = {
        "format_version": FORMAT_VERSION,
        "model": type(model).__name__,
        "versions": {
            "keras_xlnet": keras_xlnet.__version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "tensorflow_text": tensorflow_text.__version__,
        },
        **_classes(model),
        "options": _options(model, options),
        "lengths": _lengths(model),
        "batch_size": batch_size,
        "parameters": model.count_params(),
        "dtype_policy": model.dtype_policy.name,
        "signatures": signatures,
        "vocabulary": _vocabulary(model),
        "weights": {"sha256_as_float16": sha256_of_weights(model_weights(model))},
        "run": _run(signatures["serving_default"]["inputs"], batch_size),
        "trained_on": {"notes": trained_on, **origin_of(model)},
        "config": keras.saving.serialize_keras_object(model)["config"],
    }
    file = directory / pathlib.Path(FILE).parent / prefix / pathlib.Path(FILE).name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(details, indent=1, ensure_ascii=False, default=_plain) + "\n"
    file.write_text(text, encoding="utf-8")


def _plain(value):
    """The value of an option for JSON; it may come from NumPy."""
    return list(value) if isinstance(value, Collection) else np.asarray(value).item()


def _classes(model):
    """The meaning of the labels of a model with classes."""
    classes = getattr(model, "classes", None)
    if classes is None:
        return {}
    details: dict[str, Any] = {
        "class_names": None if classes.class_names is None else classes.names,
        "multi_label": classes.activation == "sigmoid",
    }
    if model.preprocessor_cls.has_token_labels:
        details["entity_types"] = entity_types(classes.names)
    return details


def _options(model, options):
    """The options of `export`, without those that have no effect."""
    if "threshold" in options and not has_threshold(model.num_classes, model.activation):
        options = {name: value for name, value in options.items() if name != "threshold"}
    return dict(options)


def _lengths(model):
    preprocessor = getattr(model, "preprocessor", None)
    lengths = {n: getattr(preprocessor, n) for n in _LENGTHS if hasattr(preprocessor, n)}
    return {**lengths, "memory_length": backbone_of(model).memory_length}


def _vocabulary(model):
    layer = getattr(model, "preprocessor", None) or model.tokenizer
    tokenizer = getattr(layer, "tokenizer", layer)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_assets(folder)
        (file,) = pathlib.Path(folder).iterdir()
        sha256 = sha256_of(file)
    return {
        "file": file.name,
        "size": tokenizer.vocabulary_size(),
        "sha256": sha256,
        "preset": preset_of_vocabulary(sha256),
    }


def _run(inputs, batch_size):
    """A request to `serving_default`, and the commands to serve the model and to send it."""
    request = {"instances": [{name: _SAMPLES[name] for name in inputs}] * (batch_size or 1)}
    return {
        "directory": "MODELS/NAME/1",
        "serve": "xlnet serve MODELS",
        "ask": f"curl http://127.0.0.1:8501/v1/models/NAME:predict -d '{json.dumps(request)}'",
        "request": request,
    }

"""The details of an exported model: a JSON file in its directory."""

import json
import pathlib
import tempfile
from collections.abc import Collection, Mapping
from typing import Any

import keras
import numpy as np

import keras_xlnet
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preprocessing.labels import has_threshold
from keras_xlnet.preprocessing.tags import entity_types
from keras_xlnet.preset_files.adapter_weights import sha256_of_weights
from keras_xlnet.preset_files.export_details import FORMAT_VERSION
from keras_xlnet.preset_files.files import sha256_of
from keras_xlnet.preset_files.origin import origin_of, preset_of_vocabulary
from keras_xlnet.preset_files.weights import model_weights

_LENGTHS = ("sequence_length", "max_question_length", "doc_stride", "max_choice_length")


def write_model_details(
    model: Any,
    file: pathlib.Path,
    options: Mapping[str, Any],
    signatures: Mapping[str, Any],
    versions: Mapping[str, str],
    run: Mapping[str, Any],
    batch_size: int | None = None,
    trained_on: str | None = None,
) -> None:
    """Writes the details of an export to a file.

    The file depends only on the model, the arguments and the library versions: it has
    neither times nor paths.

    Args:
        model: The model that was exported.
        file: `pathlib.Path` in the directory of the export.
        options: The options of `export` with the values that the signatures were made with.
        signatures: Dict of signatures, as `saved_model_signatures` returns it.
        versions: Dict of the versions of the packages that wrote the export.
        run: How to run the export.
        batch_size, trained_on: As in `export`.
    """
    details = {
        "format_version": FORMAT_VERSION,
        "model": type(model).__name__,
        "versions": {
            "keras_xlnet": keras_xlnet.__version__,
            "keras": keras.__version__,
            **versions,
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
        "run": run,
        "trained_on": {"notes": trained_on, **origin_of(model)},
        "config": keras.saving.serialize_keras_object(model)["config"],
    }
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

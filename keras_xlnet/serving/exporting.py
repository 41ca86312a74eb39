"""Exports models for programs that serve them."""

import pathlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_xlnet.arguments import check_choice, check_positive_int
from keras_xlnet.lazy_modules import install_command, requires_extra
from keras_xlnet.serving.portable.portable_writer import (
    PORTABLE_FORMATS,
    names_of_models,
    portable_writer,
)
from keras_xlnet.types import PathLike

# In signatures, and in the addresses of `xlnet serve`.
_NAME = re.compile("[A-Za-z0-9_-]+")
_FORMATS = ("saved_model", *PORTABLE_FORMATS)


def export(
    model: Any,
    directory: PathLike,
    format: str = "saved_model",
    batch_size: int | None = None,
    warmup: Sequence[str | bytes] | dict[str, Any] | None = None,
    quantization: str | None = None,
    trained_on: str | None = None,
    **options: Any,
) -> pathlib.Path:
    """Exports a model so that it takes text and returns answers, without this library.

    A SavedModel contains its vocabulary. To load it, a program needs TensorFlow and the kernels of
    tensorflow_text, but neither Keras nor this library. `directory` is the SavedModel itself. TF
    Serving expects numbered versions in a directory with the name of the model, so export the first
    version of a model `spam` with `export(model, "models/spam/1")`.

    The inputs of `serving_default` are strings. The first axis of all outputs is
    the batch:

    | Model | Inputs | Outputs |
    | --- | --- | --- |
    | `XLNetTextClassifier` | `text` `(batch,)` | `probabilities`, `label` |
    | `XLNetTextRegressor` | `text` `(batch,)` | `values` |
    | `XLNetTextEmbedder` | `text` `(batch,)` | `embedding` |
    | `MultiTask` | `text` `(batch,)` | those of all tasks, such as `topic_label` |
    | `XLNetTokenClassifier` | `text` `(batch,)` | `entity_text`, `entity_type`, ... |
    | `XLNetQuestionAnswering` | `question`, `context` `(batch,)` | `answer`, `answers`, ... |
    | `XLNetMultipleChoice` | `text` `(batch,)`, `choices` | `probabilities`, `index`, `choice` |
    | `XLNetRanker` | `query` `(batch,)`, `documents` | `scores`, `order` |
    | `XLNetPermutationLM` | `text` `(batch,)` | `log_prob`, `num_tokens`, `token_log_probs` |
    | `TransformerXLLanguageModel` | `text` `(batch,)` | the same |

    The page "Serving" has all signatures, shapes and types. Text is UTF-8; invalid bytes are
    replaced by U+FFFD.

    The details of the model are in `assets.extra/model_details.json`: versions, names of classes,
    signatures, checksums, its config, and the training data. `xlnet inspect` shows them.

    The rows of a request are padded to the longest one, and read in smaller batches if their
    lengths differ much. With `batch_size` all shapes are static.

    The formats `"onnx"` and `"litert"` are small files for CPUs and phones, of all these models.
    The directory has the network, `model.onnx` or `model.tflite`, which takes token ids; the
    vocabulary, `spiece.model`; `model.json`; the details, `model_details.json`; and `predict.py`,
    which makes ids of texts, runs the network and returns what `classify`, `tag`, `answer`,
    `choose`, `rank` and `score` return, with only NumPy, sentencepiece and a runtime. They are
    written in another process, with any backend: ONNX needs `pip install ".[onnx]"`, LiteRT
    TensorFlow.

    The files are written to a temporary directory, which is then renamed to `directory`. A server
    that watches the parent directory never reads a partial model, and a failed export leaves no
    files.

    A dict of models is exported as one SavedModel, whose signatures have the names of the models
    before theirs: `spam/serving_default`. Weights that models share are written and loaded once:
    see `share_with` of `Task.from_preset`. `xlnet serve` serves each by its own name.

    Args:
        model: A task model with a preprocessor, or a language model with a tokenizer, with any
            dtype policy; or, for `"saved_model"`, a dict of several by name.
        directory: Local path. It must not exist or be an empty directory. Missing parents are
            created.
        format: String, `"saved_model"`, `"onnx"` or `"litert"`.
        batch_size: Int, the exact number of rows that signatures accept. `None` for any number.
            Only for `"saved_model"`.
        warmup: Optional inputs of `serving_default`: a dict of columns, or a list for a single
            input. TF Serving reads them before it accepts requests, so that the first request is
            not slow. One row per request, or `batch_size` rows per request; at most 1000 requests.
            Needs `pip install ".[serving]"`. Only for `"saved_model"`. For several models, a dict
            of these by the name of the model.
        quantization: For ONNX and LiteRT, `"float16"` or `"int8"`. With `"float16"` weights take
            half the space, and products are computed in float32. With `"int8"` they take a
            quarter, and products of weights are computed in int8, faster and less exactly.
        trained_on: Optional string, the training data, for the model's details.
        **options: For an `XLNetTextClassifier`: `threshold`, instead of the model's. For an
            `XLNetQuestionAnswering`: `num_answers` [5], `max_answer_length` [64] and
            `null_threshold`, as in `answer`, the last instead of the model's. For language
            models: `max_new_tokens` [256], the largest number of new tokens that a request
            may ask for, `stop_token_ids` [none], which end a continuation, and, for a
            `TransformerXLLanguageModel`, `start_token_id` [none], a token before each text.

    Returns:
        `pathlib.Path` of `directory`.

    Raises:
        TypeError: If `model` is not one of these models.
        ValueError: If `model` has no preprocessor or tokenizer, its tokenizer has no vocabulary, a
            language model is stateful, or another argument is invalid for the format.
        FileExistsError: If `directory` is a file or a directory that is not empty.
        ImportError: If `warmup` is given and tensorflow-serving-api is not installed, or a package
            that the format needs.
        RuntimeError: If the backend of Keras is not TensorFlow, which a SavedModel needs for a
            graph that contains both the text ops and the model, or a conversion fails.

    Example:

    >>> import tempfile
    >>> import tensorflow as tf
    >>> from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts = ["win a free prize now", "see you at lunch", "free cash, call now", "ok, at six"]
    >>> tokenizer = XLNetTokenizer.train(iter(texts * 20), vocabulary_size=40)
    >>> classifier = keras_xlnet.models.XLNetTextClassifier(
    ...     keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32),
    ...     num_classes=2,
    ...     preprocessor=XLNetTextClassifierPreprocessor(tokenizer, sequence_length=16),
    ...     class_names=["ham", "spam"],
    ... )
    >>> path = keras_xlnet.serving.export(
    ...     classifier, tempfile.mkdtemp() + "/spam/1", threshold=0.0
    ... )
    >>> served = tf.saved_model.load(path).signatures["serving_default"]
    >>> outputs = served(text=tf.constant(["a free lunch", ""]))
    >>> outputs["probabilities"].shape, outputs["label"].numpy().tolist()
    (TensorShape([2, 2]), [b'spam', b'spam'])

    Source: "SavedModel Warmup" and "RESTful API" in the documentation of TF Serving.
    """
    check_choice("format", format, _FORMATS)
    if batch_size is not None:
        check_positive_int("batch_size", batch_size)
    if not isinstance(trained_on, (str, type(None))):
        raise ValueError(f"`trained_on` must be a string. Received: trained_on={trained_on!r}")
    directory = _check_directory(directory)
    if format == "saved_model":
        _check_not_given(format, quantization=quantization)
        write = _saved_model_writer(model, batch_size, warmup, trained_on, **options)
    else:
        _check_not_given(format, batch_size=batch_size, warmup=warmup, **options)
        write = portable_writer(model, format, quantization, trained_on)
        _check_text_layer(model)

    directory.parent.mkdir(parents=True, exist_ok=True)
    # TF Serving reads only directories named by a number, so it ignores this one.
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.") as staging:
        # A directory in `staging`, because `staging` itself is not readable by other users, and a
        # server often runs as another user.
        written = pathlib.Path(staging) / "export"
        write(written)
        written.rename(directory)
    return directory


def _check_not_given(format, **arguments):
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"`{name}` is no argument for format={format!r}. Received: {name}={value!r}"
            )


def _saved_model_writer(model, batch_size, warmup, trained_on, **options):
    _check_backend()
    models = {"": model}
    if isinstance(model, Mapping):
        models = {f"{name}/": each for name, each in _checked_names(model).items()}
        warmup = _by_prefix(warmup, models)
    elif warmup is not None:
        warmup = {"": warmup}
    # The other formats need no TensorFlow in this process.
    with requires_extra("tensorflow", "`export`"):
        from keras_xlnet.serving.saved_model import SIGNATURES, saved_model_writer

    for each in models.values():
        if getattr(each, "signatures", None) not in SIGNATURES:
            names = names_of_models(SIGNATURES)
            raise TypeError(f"`model` must be one of {names}. Received: {type(each).__name__}")
        _check_text_layer(each)
    return saved_model_writer(models, batch_size, warmup, trained_on, **options)


def _checked_names(models):
    is_valid = all(isinstance(name, str) and _NAME.fullmatch(name) for name in models)
    if not models or not is_valid:
        raise ValueError(
            "`model` must be a model or a dict of models by name, which has letters, digits, '_' "
            f"and '-'. Received the names: {list(models)}"
        )
    return models


def _by_prefix(warmup, models):
    unknown = set(warmup or ()) - {prefix[:-1] for prefix in models}
    if unknown or not isinstance(warmup, (Mapping, type(None))):
        raise ValueError(
            f"`warmup` of several models must be a dict by their names. Received: {warmup!r}"
        )
    return {f"{name}/": inputs for name, inputs in (warmup or {}).items()}


def _check_backend():
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(
            "`export` needs the TensorFlow backend, because only TensorFlow graphs can process "
            f"text. Received: the backend {backend!r}. Save the model with "
            "`model.save('model.keras')`, then load and export it in a process with "
            f"KERAS_BACKEND=tensorflow. TensorFlow: {install_command('tensorflow')}"
        )


def _check_text_layer(model):
    name = "preprocessor" if hasattr(model, "preprocessor") else "tokenizer"
    layer = getattr(model, name)
    if layer is None:
        raise ValueError(
            f"`model` must have a {name}, which converts text to ids. Received: "
            f"{type(model).__name__} with {name}=None"
        )
    if not getattr(layer, "tokenizer", layer).has_vocabulary:
        raise ValueError(
            "`model` must have a tokenizer with a vocabulary. Received: a tokenizer without one; "
            "call its load_assets(directory)"
        )


def _check_directory(directory):
    directory = pathlib.Path(directory)
    if directory.is_dir() and not any(directory.iterdir()):
        return directory
    if directory.exists():
        raise FileExistsError(
            "`directory` must not exist or be an empty directory. Received: "
            f"{directory}, which is {'not empty' if directory.is_dir() else 'a file'}"
        )
    return directory

"""Tokenizers of models: their origin, their match with the model, other vocabulary sizes."""

from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import check_positive_int


def check_vocabulary(
    tokenizer: keras.layers.Layer, model: keras.Model, owner: str = "model"
) -> None:
    """Raises `ValueError` if a tokenizer has more ids than a model, or another vocabulary.

    Args:
        tokenizer: A tokenizer. The vocabulary of an `XLNetTokenizer` is compared by its sha256.
        model: A backbone, or a model that has one.
        owner: The name of the model in errors.
    """
    size = tokenizer.vocabulary_size()
    backbone = getattr(model, "backbone", model)
    expected = backbone.vocabulary_size
    if size > expected:
        raise ValueError(
            f"The tokenizer has {size} ids, but the {owner} knows only vocabulary_size={expected}"
        )
    recorded = recorded_vocabulary(model)
    digest = getattr(tokenizer, "vocabulary_sha256", None)
    if None not in (digest, recorded) and digest != recorded:
        raise ValueError(
            f"The tokenizer is of another model: the sha256 of its vocabulary is "
            f"{digest}, and the {owner} was loaded with {recorded}. To train "
            "it for another vocabulary, set `backbone.vocabulary_sha256 = None`"
        )


def recorded_vocabulary(model: keras.Model) -> str | None:
    """Returns the SHA-256 of the vocabulary that a model was loaded with, `None` if unknown."""
    return getattr(getattr(model, "backbone", model), "vocabulary_sha256", None)


def with_vocabulary(model: Any, vocabulary: int | keras.layers.Layer) -> Any:
    """Returns a copy of a model for another vocabulary, as `BaseModel.with_vocabulary` says."""
    if isinstance(vocabulary, (int, np.integer)):
        tokenizer, size = None, check_positive_int("vocabulary", int(vocabulary))
    elif hasattr(vocabulary, "vocabulary_size"):
        tokenizer, size = vocabulary, int(vocabulary.vocabulary_size())
    else:
        raise ValueError(
            "`vocabulary` must be a tokenizer or a number of tokens. Received: "
            f"vocabulary={vocabulary!r}"
        )
    config = model.get_config()
    if _is_quantized(config) or _is_quantized(config.get("backbone", {}).get("config", {})):
        raise ValueError("A quantized model keeps its vocabulary: quantize the copy instead")
    entry = config["backbone"]["config"] if "backbone" in config else config
    entry["vocabulary_size"] = size
    if model._text_argument is not None:
        config[model._text_argument] = None
    new = type(model).from_config(config)
    _copy_rows(model, new)
    new.trained_from = model.trained_from
    preprocessor = getattr(model, "preprocessor", None)
    if preprocessor is not None:
        new.preprocessor = _with_tokenizer(preprocessor, tokenizer or preprocessor.tokenizer)
    elif model._text_argument == "tokenizer":
        new.tokenizer = tokenizer or model.tokenizer
    digest = getattr(tokenizer, "vocabulary_sha256", None)
    getattr(new, "backbone", new).vocabulary_sha256 = digest
    return new


def _is_quantized(config):
    return "quantization" in config


def _copy_rows(model, new):
    old = {model.weight_path(weight): weight for weight in model.weights}
    for weight in new.weights:
        source = old[new.weight_path(weight)]
        if source.shape == weight.shape:
            weight.assign(source)
            continue
        values = keras.ops.convert_to_numpy(source).astype("float32")
        # The rows of tokens that the model does not know are near the mean of all others.
        rows = keras.ops.convert_to_numpy(weight).astype("float32") + values.mean(axis=0)
        count = min(len(rows), len(values))
        rows[:count] = values[:count]
        weight.assign(rows)


def _with_tokenizer(preprocessor, tokenizer):
    config = {**preprocessor.get_config(), "tokenizer": tokenizer}
    return type(preprocessor)(**config)

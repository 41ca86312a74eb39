"""Presets: directories with the config, the weights and the tokenizer of a model."""

import inspect
import json

import keras

from keras_xlnet.models.vocabulary import check_vocabulary
from keras_xlnet.preset_files import file_in, local_directory, replace_files
from keras_xlnet.preset_files.trusted_config import read_config, trusted
from keras_xlnet.preset_files.weights import load_weights, save_weights

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_TOKENIZER, _VOCABULARY = "tokenizer.json", "assets/spiece.model"


def save_preset(model, directory, tokenizer=None):
    """Writes a model to a directory, as `BaseModel.save_to_preset` describes."""
    config = trusted(keras.saving.serialize_keras_object(model), type(model).__name__)
    preprocessor = getattr(model, "preprocessor", None)
    if preprocessor is not None:
        if tokenizer is not None:
            raise ValueError(
                "`tokenizer` is for models without a preprocessor. The preprocessor of this "
                "model has a tokenizer, which is saved"
            )
        tokenizer = preprocessor.tokenizer
    if tokenizer is not None:
        check_vocabulary(tokenizer, model)
    with replace_files(directory, (_CONFIG, _WEIGHTS, _TOKENIZER, _VOCABULARY)) as folder:
        text = json.dumps(config, indent=2) + "\n"
        (folder / _CONFIG).write_text(text, encoding="utf-8")
        save_weights(model, folder / _WEIGHTS)
        if tokenizer is not None:
            tokenizer.save_to_preset(folder)


def load_preset(cls, location, overrides):
    """Loads a model of a class from a preset, as `BaseModel.from_preset` describes."""
    directory = local_directory(location, (_CONFIG, _WEIGHTS), (_TOKENIZER, _VOCABULARY))
    config_file, weights_file = (file_in(directory, name) for name in (_CONFIG, _WEIGHTS))
    config = read_config(config_file, cls)
    unknown = sorted(set(overrides) - set(config["config"]) - set(_arguments(cls)))
    if unknown:
        raise ValueError(f"{cls.__name__} has no arguments {unknown} to override")
    config["config"] |= overrides
    try:
        model = keras.saving.deserialize_keras_object(config)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        given = f" with {overrides}" if overrides else ""
        raise ValueError(
            f"{config_file}{given} does not describe a model: {_first(error)}"
        ) from error
    preprocessor = getattr(model, "preprocessor", None)
    if preprocessor is not None:
        file = file_in(directory, _VOCABULARY)
        try:
            preprocessor.tokenizer.load_assets(str(file.parent))
            check_vocabulary(preprocessor.tokenizer, model)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
    load_weights(model, weights_file, cast="dtype" in overrides)
    return model


def _first(error):
    """Returns the error that Keras wrapped into others with all of the config in them."""
    while error.__context__ is not None:
        error = error.__context__
    return error


def _arguments(cls):
    return [name for name in inspect.signature(cls).parameters if name != "kwargs"]

"""Loads tokenizers from presets and saves them to presets."""

import pathlib
from typing import Any

import keras

from keras_xlnet.preset_files import file_in, preset_directory
from keras_xlnet.preset_files.files import CONFIG, TOKENIZER, VOCABULARY, write_json
from keras_xlnet.preset_files.recorded_vocabulary import read_vocabulary_sha256
from keras_xlnet.preset_files.trusted_config import read_config, trusted
from keras_xlnet.types import PathLike


def load_tokenizer(location: PathLike, cls: type) -> Any:
    """Loads a tokenizer; see `XLNetTokenizer.from_preset`."""
    directory = preset_directory(location, (TOKENIZER, VOCABULARY), (CONFIG,))
    config = read_config(file_in(directory, TOKENIZER), cls)
    asset = file_in(directory, VOCABULARY)
    if (directory / CONFIG).exists():
        read_vocabulary_sha256(directory)
    try:
        tokenizer = keras.saving.deserialize_keras_object(config)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{directory / TOKENIZER}: {error}") from error
    try:
        tokenizer.load_assets(str(asset.parent))
    except ValueError as error:
        raise ValueError(f"{asset}: {error}") from error
    return tokenizer


def save_tokenizer(tokenizer: keras.layers.Layer, directory: PathLike) -> None:
    """Saves a tokenizer; see `XLNetTokenizer.save_to_preset`."""
    directory = pathlib.Path(directory)
    assets = (directory / VOCABULARY).parent
    assets.mkdir(parents=True, exist_ok=True)
    tokenizer.save_assets(str(assets))
    config = trusted(keras.saving.serialize_keras_object(tokenizer), TOKENIZER)
    write_json(directory / TOKENIZER, config)

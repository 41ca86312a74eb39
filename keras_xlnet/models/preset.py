import inspect
import json

import keras

from keras_xlnet.models.vocabulary import check_vocabulary
from keras_xlnet.presets import file_in, local_directory, replace_files
from keras_xlnet.presets.trusted_config import read_config, trusted
from keras_xlnet.presets.weights import load_weights, save_weights

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_TOKENIZER, _VOCABULARY = "tokenizer.json", "assets/spiece.model"


class Preset:
    """Mixin of models that are saved to, and loaded from, a directory of plain files.

    The directory holds `config.json` (class and constructor arguments), `model.safetensors` and,
    with a tokenizer, `tokenizer.json` and `assets/spiece.model`.
    """

    def save_to_preset(self, directory, tokenizer=None):
        """Writes the model to a directory.

        The state of the optimizer and the memory of a stateful model are not saved. If the
        directory holds a preset, its files are replaced when all of the new ones are written;
        other files stay. A save that fails leaves the old preset, or a directory without
        `config.json`.

        Args:
            directory: Path of the preset. It is created if it does not exist.
            tokenizer: An `XLNetTokenizer` to save with a model that has no preprocessor:
                `XLNetTokenizer.from_preset` loads it.

        Raises:
            ValueError: If the tokenizer has more ids than the model, the model has a tokenizer
                already, or has parts (an activation, an initializer) that are not registered.
        """
        config = trusted(keras.saving.serialize_keras_object(self), type(self).__name__)
        preprocessor = getattr(self, "preprocessor", None)
        if preprocessor is not None:
            if tokenizer is not None:
                raise ValueError(
                    "`tokenizer` is for models without a preprocessor. The preprocessor of this "
                    "model has a tokenizer, which is saved"
                )
            tokenizer = preprocessor.tokenizer
        if tokenizer is not None:
            check_vocabulary(tokenizer, self)
        with replace_files(directory, (_CONFIG, _WEIGHTS, _TOKENIZER, _VOCABULARY)) as folder:
            text = json.dumps(config, indent=2) + "\n"
            (folder / _CONFIG).write_text(text, encoding="utf-8")
            save_weights(self, folder / _WEIGHTS)
            if tokenizer is not None:
                tokenizer.save_to_preset(folder)

    @classmethod
    def from_preset(cls, location, **overrides):
        """Loads a model that `save_to_preset` wrote.

        Nothing that a preset names is imported or executed: presets of others are safe to load.

        Args:
            location: Path of the preset; `"hf://owner/name"` or `"hf://owner/name@revision"` on
                the Hugging Face Hub (needs `pip install "xlnet-keras[hub]"`); or the URL of a
                folder.
            **overrides: Arguments of the class that replace those in the preset, such as
                `dropout`, or `bidirectional_data=False` to fine-tune a model that was pretrained
                in both directions. With `dtype`, weights are converted.

        Returns:
            A model of this class.

        Raises:
            FileNotFoundError: If `location` is not a preset.
            ConnectionError: If `location` does not answer and nothing was downloaded before.
            ValueError: If `location` holds a model of another class, an override is not an
                argument of the class, or a file is damaged or does not fit the others. The message
                names the file and the weight.
        """
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

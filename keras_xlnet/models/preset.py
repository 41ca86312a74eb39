import json
import pathlib

import keras

_CONFIG, _WEIGHTS, _ASSETS = "config.json", "model.weights.h5", "assets"


class Preset:
    """Saves a model to, and loads it from, a directory of plain files.

    The directory holds `config.json` (class and constructor arguments), `model.weights.h5` and,
    for a model with a preprocessor, `assets/spiece.model`.
    """

    def save_to_preset(self, directory):
        """Writes the model to `directory`, which is made if it does not exist.

        Args:
            directory: Path of the preset.
        """
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        config = keras.saving.serialize_keras_object(self)
        config.pop("build_config", None)
        config.pop("compile_config", None)
        (directory / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        self.save_weights(directory / _WEIGHTS)
        preprocessor = getattr(self, "preprocessor", None)
        if preprocessor is not None:
            (directory / _ASSETS).mkdir(exist_ok=True)
            preprocessor.tokenizer.save_assets(str(directory / _ASSETS))

    @classmethod
    def from_preset(cls, directory, **overrides):
        """Loads the model that `save_to_preset` wrote.

        Args:
            directory: Path of the preset.
            **overrides: Arguments of the class that are to be others than those in the preset,
                such as `dropout`, or `bidirectional_data=False` to fine-tune what was pretrained
                in both directions.

        Returns:
            A model of this class.

        Raises:
            FileNotFoundError: If `directory` is not a preset.
            ValueError: If `directory` holds a model of another class, or has no such argument.
        """
        directory = pathlib.Path(directory)
        for name in (_CONFIG, _WEIGHTS):
            if not (directory / name).is_file():
                raise FileNotFoundError(
                    f"`directory` is not a preset: {directory / name} is missing"
                )
        config = json.loads((directory / _CONFIG).read_text(encoding="utf-8"))
        expected = keras.saving.get_registered_name(cls)
        if config.get("registered_name") != expected:
            raise ValueError(
                f"{directory / _CONFIG} holds a {config.get('registered_name')!r}, "
                f"not the {expected!r} that was asked for"
            )
        unknown = sorted(set(overrides) - set(config["config"]))
        if unknown:
            raise ValueError(f"{cls.__name__} has no arguments {unknown} to override")
        config["config"] |= overrides
        model = keras.saving.deserialize_keras_object(config)
        preprocessor = getattr(model, "preprocessor", None)
        if preprocessor is not None:
            preprocessor.tokenizer.load_assets(str(directory / _ASSETS))
        model.load_weights(directory / _WEIGHTS)
        return model

"""Presets: directories with the config, the weights and the tokenizer of a model."""

import inspect
import pathlib
from typing import Any

import keras

from keras_xlnet.arguments import check_choice
from keras_xlnet.models.shared_weights import with_shared_weights
from keras_xlnet.models.vocabulary import check_vocabulary, recorded_vocabulary
from keras_xlnet.preset_files import file_in, preset_directory, presets, replace_files
from keras_xlnet.preset_files.adapter import OF_LAYERS, Adapter, without
from keras_xlnet.preset_files.files import (
    CONFIG,
    TOKENIZER,
    VOCABULARY,
    WEIGHTS,
    quoted,
    read_json,
    write_json,
)
from keras_xlnet.preset_files.model_card import check_card, format_card
from keras_xlnet.preset_files.recorded_vocabulary import KEY, read_vocabulary_sha256
from keras_xlnet.preset_files.shipped import recommended_arguments
from keras_xlnet.preset_files.trusted_config import (
    check_class,
    errors_named,
    read_config,
    trusted,
)
from keras_xlnet.preset_files.weights import load_weights, save_weights
from keras_xlnet.registration import suggestion
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.types import PathLike

_CARD = "README.md"
# Arguments of a backbone that is taken from another model.
_FOR_FINE_TUNING = {
    "bidirectional_data": False,
    "memory_length": None,
    "reuse_length": None,
    "remember_segment_ids": False,
}
# Memory arguments, which are dropped when only the backbone is loaded.
_WITHOUT_STATE = {"stateful": False, "batch_size": None, "attend_to_empty_memory": False}


def save_preset(
    model: keras.Model,
    directory: PathLike,
    tokenizer: keras.layers.Layer | None = None,
    dtype: str | None = None,
    card: dict[str, Any] | None = None,
) -> None:
    """Writes a model to a directory, as `BaseModel.save_to_preset` describes."""
    check_choice("dtype", dtype, (None, "float16", "bfloat16", "float32"))
    check_card(card)
    config = trusted(keras.saving.serialize_keras_object(model), type(model).__name__)
    preprocessor = getattr(model, "preprocessor", None)
    if preprocessor is not None:
        if tokenizer is not None:
            raise ValueError(
                "`tokenizer` is for models without a preprocessor. The preprocessor of this "
                "model has a tokenizer, which is saved"
            )
        tokenizer = preprocessor.tokenizer
    elif tokenizer is None:
        tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is not None:
        _check_tokenizer(tokenizer, model)
    recorded = recorded_vocabulary(model) if tokenizer is None else tokenizer.vocabulary_sha256
    if recorded is not None:
        config[KEY] = recorded
    names = [CONFIG, WEIGHTS, TOKENIZER, VOCABULARY]
    directory = pathlib.Path(directory)
    # A card may have been edited: it is replaced only if another one is passed.
    writes_card = card is not None or not (directory / _CARD).exists()
    with replace_files(directory, names + [_CARD] * writes_card) as folder:
        write_json(folder / CONFIG, config)
        save_weights(model, folder / WEIGHTS, dtype)
        if tokenizer is not None:
            tokenizer.save_to_preset(folder)
        if writes_card:
            text = format_card(model, directory.resolve().name, card)
            (folder / _CARD).write_text(text, encoding="utf-8")


def _check_tokenizer(tokenizer, model):
    if not isinstance(tokenizer, XLNetTokenizer):
        raise ValueError(
            "A preset holds an `XLNetTokenizer`. Save other tokenizers by themselves, and the "
            f"model with `model.tokenizer = None`. Received: tokenizer={tokenizer!r}"
        )
    check_vocabulary(tokenizer, model)


def load_preset(
    cls: type,
    family: type,
    location: PathLike,
    overrides: dict[str, Any],
    load_weights: bool = True,
) -> Any:
    """Loads a model of a class from a preset, as `BaseModel.from_preset` describes.

    Args:
        cls: The class of the model.
        family: The base class of all models that presets hold.
        location, overrides, load_weights: As in `BaseModel.from_preset`.
    """
    directory, config, given = _open_preset(cls, family, location, overrides)
    config_file = directory / CONFIG
    given["load_weights"] = load_weights
    trainable = _take_trainable(given)
    _add_tokenizer(cls, directory, given)
    if config["registered_name"] == keras.saving.get_registered_name(cls):
        model = _load_same(directory, config, given)
    elif _has_backbone(cls):
        entry = config["config"].get("preprocessor")
        model = _load_around_backbone(cls, directory, config, given, entry)
    else:
        check_class(_backbone_entry(config), cls, config_file)
        model = _load_backbone(cls, directory, config, given)
    _set_trainable(model, trainable)
    return model


def load_with_adapter(
    cls: type,
    family: type,
    location: PathLike | None,
    name: PathLike,
    overrides: dict[str, Any],
) -> Any:
    """Loads a task model from a preset and an adapter, as `Task.from_preset` describes.

    Args:
        cls: The class of the model, or a base class of it.
        family: The base class of all models that presets hold.
        location: As in `Task.from_preset`.
        name: The `adapter` of `Task.from_preset`.
        overrides: As in `Task.from_preset`.
    """
    adapter = Adapter.open(name, family)
    adapter.check_class(cls)
    cls = adapter.model_class
    location = _location_of_base(adapter) if location is None else location
    directory, config, given = _open_preset(cls, family, location, overrides)
    adapter.check_sizes(_backbone_entry(config)["config"], f"that of {directory}")
    given["load_weights"] = True
    trainable = _take_trainable(given)
    given["model"] = adapter.arguments | given["model"]
    given["backbone"] = adapter.backbone_arguments | given["backbone"]
    model = _load_around_backbone(cls, directory, config, given, adapter.preprocessor)
    adapter.load_into(model)
    _set_trainable(model, trainable)
    return model


def load_sharing_weights(
    cls: type, model: Any, name: PathLike, overrides: dict[str, Any], family: type
) -> Any:
    """Loads a task model from an adapter and the weights of a model, as `Task.from_preset` does.

    Args:
        cls: The class of the model, or a base class of it.
        model: The model whose weights and whose tokenizer the new one shares.
        name: The `adapter` of `Task.from_preset`.
        overrides: As in `Task.from_preset`, without arguments of a backbone.
        family: The base class of all models that presets hold.
    """
    adapter = Adapter.open(name, family)
    adapter.check_class(cls)
    cls, backbone = adapter.model_class, getattr(model, "backbone", model)
    given = _split(overrides, cls, type(backbone))
    trainable = _take_trainable(given)
    if trainable["backbone"]:
        raise ValueError("`backbone_trainable` must be False: other models have these weights")
    arguments = adapter.arguments | given["model"]
    tokenizer = getattr(getattr(model, "preprocessor", model), "tokenizer", None)
    if tokenizer is not None and "preprocessor" not in arguments:
        entry = _entry_for(cls.preprocessor_cls, adapter.preprocessor)
        of_text = {} if entry is None else without(entry["config"], ("tokenizer", *OF_LAYERS))
        with errors_named(adapter.directory, given["preprocessor"]):
            arguments["preprocessor"] = _class_of_text(cls, entry)(
                tokenizer, **of_text | given["preprocessor"]
            )
    adapter.check_sizes(backbone.get_config(), "that of the model")
    of_backbone = adapter.backbone_arguments | given["backbone"]
    shared = cls(with_shared_weights(backbone, **of_backbone), **arguments)
    adapter.load_into(shared, merge=False)
    _set_trainable(shared, trainable)
    return shared


def _class_of_text(cls, entry):
    if entry is None:
        return cls.preprocessor_cls
    return keras.saving.get_registered_object(entry["registered_name"])


def _location_of_base(adapter):
    """The base of an adapter: only a preset of the package, since an adapter may name any place."""
    preset = adapter.base["preset"]
    if preset not in presets():
        raise ValueError(
            f"{adapter.directory} belongs to no preset that comes with the package: pass "
            "`location`, the preset that it was trained on"
        )
    return preset


def class_of_preset(location: PathLike, family: type) -> tuple[Any, pathlib.Path]:
    """Returns the class of the model that a preset holds, and the directory of its files.

    Args:
        location: As in `Task.from_preset`.
        family: A base class.

    Raises:
        ValueError: If it is not a class below `family`.
    """
    directory = preset_directory(location, (CONFIG, WEIGHTS), (TOKENIZER, VOCABULARY))
    name = str(read_json(file_in(directory, CONFIG)).get("registered_name"))
    cls = keras.saving.get_registered_object(name)
    if not (isinstance(cls, type) and issubclass(cls, family)):
        raise ValueError(
            f"`location` must hold a task model. Received: {directory}, which holds a "
            f"{quoted(name)}. Call `from_preset` of the class of a task, such as "
            "`XLNetTextClassifier`, or pass an `adapter`"
        )
    return cls, directory


def _open_preset(cls, family, location, overrides):
    """Returns the directory, the config and the arguments for its parts."""
    directory = preset_directory(location, (CONFIG, WEIGHTS), (TOKENIZER, VOCABULARY))
    config_file = file_in(directory, CONFIG)
    config = read_config(config_file, cls, family)
    config[KEY] = read_vocabulary_sha256(directory)
    given = _split(overrides, cls, _class_of_backbone(config, family, config_file))
    return directory, config, given


def _take_trainable(given):
    # The arguments apply to all layers inside, whatever the config says about them.
    return {part: given[part].pop("trainable", None) for part in ("model", "backbone")}


def _set_trainable(model, trainable):
    for part, layer in (("model", model), ("backbone", getattr(model, "backbone", model))):
        if trainable[part] is not None:
            layer.trainable = check_choice("trainable", trainable[part], (True, False))


def _add_tokenizer(cls, directory, given):
    """Adds the tokenizer of the preset to the arguments of a language model."""
    if cls._text_argument != "tokenizer" or not (directory / TOKENIZER).exists():
        return
    arguments = given["model" if _has_backbone(cls) else "backbone"]
    if "tokenizer" not in arguments:
        arguments["tokenizer"] = XLNetTokenizer.from_preset(directory)


def _load_same(directory, config, given):
    """Returns the model that a preset holds."""
    entry = config["config"].get("preprocessor")
    has_other = "preprocessor" in given["model"]
    preprocessor = given["model"].pop("preprocessor", None)
    model = _make(directory, config, given)
    if not has_other and (entry is not None or given["preprocessor"]):
        preprocessor = _preprocessor(type(model), directory, entry, given["preprocessor"])
    if preprocessor is not None:
        _check_vocabulary(
            preprocessor.tokenizer, model, None if has_other else directory / VOCABULARY
        )
        model.preprocessor = preprocessor
    _load_weights(model, directory, given)
    return model


def _load_around_backbone(cls, directory, config, given, entry):
    """Returns a new model of a class around the backbone of the model that a preset holds.

    `entry` is the config of a preprocessor, which is used if it is one for the class, or `None`.
    """
    of_model = given["model"]
    needed = [name for name in _required(cls) if name not in of_model]
    if needed:
        raise TypeError(
            f"{cls.__name__}.from_preset needs {needed}: {directory} holds a "
            f"{config['class_name']}, and only its backbone is used"
        )
    if _takes_text(cls) and "preprocessor" not in of_model:
        entry = _entry_for(cls.preprocessor_cls, entry)
        of_model["preprocessor"] = _preprocessor(cls, directory, entry, given["preprocessor"])
    for name, value in recommended_arguments(directory).items():
        if name in _argument_names(cls):
            of_model.setdefault(name, value)
    return cls(backbone=_load_backbone(cls, directory, config, given), **of_model)


def _load_backbone(cls, directory, config, given):
    """Returns the backbone of the model that a preset holds."""
    entry = config["config"]
    entry |= {key: value for key, value in _WITHOUT_STATE.items() if key in entry}
    of_backbone = _FOR_FINE_TUNING if cls._is_fine_tuned else {}
    of_backbone = {**of_backbone, **given["backbone"]}
    given = {"model": {}, "backbone": of_backbone, "load_weights": given["load_weights"]}
    # The whole model is made and loaded, so that the whole file is checked.
    model = _make(directory, config, given)
    _load_weights(model, directory, given)
    return getattr(model, "backbone", model)


def _make(directory, config, given):
    """Returns the model of a config with other arguments, without a preprocessor."""
    config_file = directory / CONFIG
    with errors_named(config_file, given["model"] | given["backbone"]):
        for key in {"preprocessor", "tokenizer"} & config["config"].keys():
            config["config"][key] = None
        config["config"] |= given["model"]
        _backbone_entry(config)["config"] |= given["backbone"]
        model = keras.saving.deserialize_keras_object(config)
    getattr(model, "backbone", model).vocabulary_sha256 = config[KEY]
    if getattr(model, "tokenizer", None) is not None:
        _check_vocabulary(model.tokenizer, model, directory / VOCABULARY)
    return model


def _load_weights(model, directory, given):
    if given["load_weights"]:
        load_weights(model, file_in(directory, WEIGHTS), cast="dtype" in given["backbone"])


def _preprocessor(cls, directory, entry, overrides):
    """Returns the preprocessor of a config, or a new one for a model with a tokenizer.

    Args:
        cls: The class of the model.
        directory: Path of the preset.
        entry: Config of a preprocessor, or `None`.
        overrides: Other arguments of the preprocessor.
    """
    if entry is None and not (directory / TOKENIZER).exists():
        if overrides:
            raise ValueError(
                f"{directory} has no tokenizer, and so no preprocessor for {sorted(overrides)}"
            )
        return None
    if entry is None:
        return cls.preprocessor_cls(XLNetTokenizer.from_preset(directory), **overrides)
    with errors_named(directory / CONFIG, overrides):
        entry["config"] |= overrides
        preprocessor = keras.saving.deserialize_keras_object(entry)
        tokenizer = preprocessor.tokenizer
    file = file_in(directory, VOCABULARY)
    try:
        tokenizer.load_assets(str(file.parent))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    return preprocessor


def _entry_for(preprocessor_cls, entry):
    """The config of a preprocessor, or `None` without one or if it belongs to another task."""
    if entry is None:
        return None
    found = keras.saving.get_registered_object(entry["registered_name"])
    return entry if preprocessor_cls.accepts(found) else None


def _check_vocabulary(tokenizer, model, file):
    try:
        check_vocabulary(tokenizer, model)
    except ValueError as error:
        raise ValueError(f"{file}: {error}" if file else str(error)) from error


# === Configs and overrides ===


def _backbone_entry(config):
    """Returns the part of a model's config that describes its backbone."""
    return config["config"].get("backbone", config)


def _class_of_backbone(config, family, file):
    entry = _backbone_entry(config)
    cls = None
    if isinstance(entry, dict) and isinstance(entry.get("config"), dict):
        cls = keras.saving.get_registered_object(str(entry.get("registered_name")))
    if not (isinstance(cls, type) and issubclass(cls, family)):
        raise ValueError(f"{file} does not describe a model: its backbone is {quoted(entry)}")
    return cls


def _split(overrides, cls, backbone_cls):
    """Returns the arguments of a model, of its backbone and of its preprocessor.

    An argument of both a model and its backbone goes to the model, with the prefix `backbone_`
    to the backbone.
    """
    of_model = _argument_names(cls) - {"backbone"}
    places: dict[str, tuple[str, str]] = {}
    if _takes_text(cls):
        names = _argument_names(cls.preprocessor_cls) - {"tokenizer", "trainable"}
        places |= {name: ("preprocessor", name) for name in names}
    if _has_backbone(cls):
        names = _argument_names(backbone_cls)
        places |= {f"backbone_{n}" if n in of_model else n: ("backbone", n) for n in names}
        places |= {name: ("model", name) for name in of_model}
    else:
        places |= {name: ("backbone", name) for name in of_model}
    unknown, known = sorted(set(overrides) - set(places)), sorted(places)
    if unknown:
        hints = "".join(suggestion(name, known) for name in unknown)
        raise ValueError(
            f"{cls.__name__} has no arguments {unknown} to override.{hints} Those that it has, "
            f"with its backbone and preprocessor: {', '.join(known)}"
        )
    given: dict[str, dict[str, Any]] = {"model": {}, "backbone": {}, "preprocessor": {}}
    for name, value in overrides.items():
        part, argument = places[name]
        given[part][argument] = value
    if given["preprocessor"] and "preprocessor" in given["model"]:
        raise ValueError(
            f"{sorted(given['preprocessor'])} are arguments of the preprocessor of the preset, and "
            "`preprocessor` takes its place: pass one or the other"
        )
    return given


def _argument_names(cls):
    return {name for name in inspect.signature(cls).parameters if name != "kwargs"} | {"trainable"}


def _required(cls):
    """Returns the names of the arguments without a default, besides the backbone."""
    parameters = inspect.signature(cls).parameters.values()
    named = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    return [p.name for p in named if p.name != "backbone"]


def _has_backbone(cls):
    return "backbone" in _argument_names(cls)


def _takes_text(cls):
    return "preprocessor" in _argument_names(cls)

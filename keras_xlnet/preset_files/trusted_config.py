"""Configs of presets: which classes and functions they may name, so that reading one is safe."""

import contextlib
import inspect
import pathlib
from collections.abc import Iterator
from typing import Any

import keras

from keras_xlnet.preset_files.files import quoted, read_json

# What JSON has for arguments with these annotations. Constructors check the values.
_TYPES: dict[Any, Any] = {
    bool: int,
    int: int,
    int | None: (int, type(None)),
    float: (int, float),
    str: str,
}
_MAX_BYTES = 1 << 24
_MAX_DEPTH = 64
_OF_ALL_LAYERS = {"name", "trainable", "dtype", "quantization", "lora", "trainability"}
# Keras' own classes that configs of this package contain. Not its layers: some of them load files
# or run code that they are given.
_BUILT_IN = {
    "keras": keras.DTypePolicy,
    "keras.dtype_policies": keras.DTypePolicy,
    "keras.initializers": keras.Initializer,
}


def read_config(file: pathlib.Path, cls: type, family: type | None = None) -> dict[str, Any]:
    """Reads the config of an object from a JSON file that need not be trusted.

    Everything that the config names must be registered with Keras, by this package or by the
    user, or be one of Keras' initializers or dtype policies. Nothing is imported.

    Args:
        file: `pathlib.Path` of the file.
        cls: The registered class that the config must be of.
        family: Optional base class. Registered classes with this base are accepted too.

    Returns:
        A dict for `keras.saving.deserialize_keras_object`.

    Raises:
        ValueError: If the file is not JSON, is of another class, or names anything else.
    """
    if file.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{file} is larger than {_MAX_BYTES} bytes, the limit for a config")
    config = read_json(file)
    found = _registered_object(config.get("registered_name"))
    if not (family and isinstance(found, type) and issubclass(found, family)):
        check_class(config, cls, file)
    if not isinstance(config.get("config"), dict):
        raise ValueError(f"{file}: 'config' must be an object, not {quoted(config.get('config'))}")
    return trusted(config, file)


def check_class(config: dict[str, Any], cls: type, file: Any) -> None:
    """Raises `ValueError` if a config is of another class than `cls`.

    Args:
        config: Dict with `registered_name`.
        cls: A registered class.
        file: What the error calls the place that the config came from.
    """
    expected = keras.saving.get_registered_name(cls)
    if config.get("registered_name") != expected:
        raise ValueError(
            f"{file} holds a {quoted(config.get('registered_name'))}, not the {expected!r} that "
            f"was asked for{_hint(config)}"
        )


def trusted(config: dict[str, Any], source: Any) -> dict[str, Any]:
    """Checks everything that a serialized object names.

    Args:
        config: Return value of `keras.saving.serialize_keras_object`.
        source: What errors call the place it came from.

    Returns:
        `config` without the entries that Keras adds for building and compiling.

    Raises:
        ValueError: If it names something that is not registered, or is nested too deeply.
    """
    return _checked(config, source, ())


@contextlib.contextmanager
def errors_named(
    config_file: pathlib.Path, overrides: dict[str, Any] | None = None
) -> Iterator[None]:
    """A context that raises `ValueError` with the name of the file if a config is invalid.

    Args:
        config_file: Path of the file.
        overrides: Optional arguments that replace those in the file.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        given = f" with {overrides}" if overrides else ""
        raise ValueError(
            f"{config_file}{given} does not describe a model: {_first_line(error)}"
        ) from error


def _first_line(error):
    """Returns what the error says that Keras wrapped into others with all of the config in them."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).partition("\n")[0]


def _checked(entry, source, path):
    if len(path) > _MAX_DEPTH:
        raise ValueError(f"{source} is nested more than {_MAX_DEPTH} deep")
    if isinstance(entry, (list, tuple)):
        return [_checked(value, source, (*path, str(i))) for i, value in enumerate(entry)]
    if not isinstance(entry, dict):
        return entry
    if "class_name" in entry:
        if not _is_known(entry):
            raise ValueError(
                f"{source}: entry {'/'.join(path) or 'config'} names {_name(entry)}, which is "
                "neither registered with `keras.saving.register_keras_serializable` nor one of "
                "Keras' initializers or dtype policies"
            )
        keys = ("module", "class_name", "config", "registered_name")
        entry = _without_new_arguments({key: entry.get(key) for key in keys})
    result = {key: _checked(value, source, (*path, str(key))) for key, value in entry.items()}
    _check_arguments(entry, source, path)
    return result


def _without_new_arguments(entry):
    """Drops unset arguments of Keras' initializers that this release of Keras does not have."""
    config = entry["config"]
    cls = vars(keras.initializers).get(entry["class_name"])
    if entry["module"] != "keras.initializers" or cls is None or not isinstance(config, dict):
        return entry
    known = inspect.signature(cls).parameters
    config = {key: v for key, v in config.items() if key in known or v is not None}
    return {**entry, "config": config}


def _check_arguments(entry, source, path):
    """Raises `ValueError` for unknown arguments of a class of this package."""
    config = entry.get("config")
    is_ours = "class_name" in entry and str(entry["registered_name"]).startswith("keras_xlnet>")
    if not is_ours or not isinstance(config, dict):
        return
    cls = keras.saving.get_registered_object(entry["registered_name"])
    parameters = inspect.signature(cls).parameters
    unknown = sorted(set(config) - set(parameters) - _OF_ALL_LAYERS)
    if unknown:
        raise ValueError(
            f"{source}: entry {'/'.join(path) or 'config'} has arguments that {cls.__name__} does "
            f"not have: {unknown}. A newer version may have written it"
        )
    for name in config.keys() & parameters.keys():
        expected = _TYPES.get(parameters[name].annotation, object)
        if not isinstance(config[name], expected):
            raise ValueError(
                f"{source}: entry {'/'.join((*path, name))} must be a value for `{name}` of "
                f"{cls.__name__}. Received: {quoted(config[name])}"
            )


def _is_known(entry):
    """Whether Keras finds the object without an import, by the same keys that Keras looks at."""
    class_name, module = entry["class_name"], entry.get("module")
    if not isinstance(class_name, str) or class_name.startswith("__"):
        return False  # Lambdas, types, tensors.
    if not isinstance(entry.get("module"), (str, type(None))):
        return False
    if class_name == "function":
        return _is_registered(entry.get("config"))  # Keras' own are plain names.
    if _is_registered(entry.get("registered_name")):
        return True
    kind = _BUILT_IN.get(module) if isinstance(module, str) else None
    if kind is None or entry.get("registered_name") not in (None, class_name):
        return False
    namespace = keras if module == "keras" else getattr(keras, module.split(".")[1])
    cls = vars(namespace).get(class_name)
    return isinstance(cls, type) and issubclass(cls, kind)


def _is_registered(name):
    return _registered_object(name) is not None


def _registered_object(name):
    return keras.saving.get_registered_object(name) if isinstance(name, str) else None


def _name(entry):
    named = entry.get("registered_name") or entry["class_name"]
    if entry["class_name"] == "function":
        named = entry.get("config")
    return f"{quoted(named)} of module {quoted(entry.get('module'))}"


def _hint(config):
    if "model_type" in config:
        return " (it looks like Hugging Face's: see `keras_xlnet.checkpoints.load_huggingface`)"
    if str(config.get("registered_name")).startswith("keras_hub>"):
        return " (it is KerasHub's: see `keras_xlnet.checkpoints.load_keras_hub`)"
    return ""

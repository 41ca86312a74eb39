"""All formats alike: which one a directory is in, what is in it, and how to write it."""

import pathlib

import keras

from keras_xlnet.checkpoints import (
    huggingface_config,
    huggingface_tokenizer,
    original_files,
    original_names,
)
from keras_xlnet.checkpoints.huggingface import load_huggingface, save_huggingface
from keras_xlnet.checkpoints.huggingface_files import CONFIG
from keras_xlnet.checkpoints.original import load_original, save_original
from keras_xlnet.checkpoints.tasks import TASKS
from keras_xlnet.layers.arguments import check_choice
from keras_xlnet.models import XLNetBackbone
from keras_xlnet.presets import file_in
from keras_xlnet.presets.json_file import read_json
from keras_xlnet.text import XLNetTokenizer

FORMATS = ("original", "huggingface", "preset")
_SAVERS = {"original": save_original, "huggingface": save_huggingface}


def detect_format(path):
    """Which of `FORMATS` a directory (or the prefix of an original checkpoint) is in.

    Raises:
        ValueError: If it is in none.
    """
    path = pathlib.Path(path)
    if not path.exists() and not pathlib.Path(f"{path}.index").exists():
        raise FileNotFoundError(f"There is nothing at {path}")
    if not path.is_dir() or (path / original_files.CONFIG).exists() or any(path.glob("*.index")):
        return "original"
    if (path / CONFIG).exists():
        config = read_json(file_in(path, CONFIG))
        if "model_type" in config:
            return "huggingface"
        if "registered_name" in config:
            return "preset"
    raise ValueError(
        f"{path} holds no model: neither an original checkpoint (xlnet_config.json and "
        "xlnet_model.ckpt.*), nor config.json of transformers or of a preset"
    )


def detect_task(path, format):
    """The task that the files were written for, `None` for an encoder alone."""
    if format == "original":
        return original_names.task_of(original_files.OriginalCheckpoint(path).shapes)
    file = file_in(path, CONFIG)
    if format == "huggingface":
        return huggingface_config.task_of(huggingface_config.read_config(file))
    names = {keras.saving.get_registered_name(model): task for task, model in TASKS.items()}
    return names.get(str(read_json(file).get("registered_name")))


def load(path, format, task, **overrides):
    """Loads a model of any format.

    Args:
        path: Path of a directory, or prefix of an original checkpoint.
        format: One of `FORMATS`.
        task: One of `TASKS`, or `None` for the encoder alone.
        **overrides: As for the function of the format.
    """
    check_choice("format", format, FORMATS)
    if format == "original":
        return load_original(path, task, **overrides)
    if format == "huggingface":
        return load_huggingface(path, task, **overrides)
    found = detect_task(path, format)
    model = (TASKS[found] if found else XLNetBackbone).from_preset(path, **overrides)
    if task == found:
        return model
    if task is None:
        return model.backbone
    raise ValueError(f"{path} is a preset for the task {found!r}, not {task!r}")


def save(model, directory, format, tokenizer=None):
    """Writes a model, with the tokenizer of its preprocessor or else the given one."""
    check_choice("format", format, FORMATS)
    if getattr(model, "preprocessor", None) is not None:
        tokenizer = None
    if format == "preset":
        model.save_to_preset(directory, tokenizer=tokenizer)
    else:
        _SAVERS[format](model, directory, tokenizer=tokenizer)


def load_tokenizer(path, format):
    """The `XLNetTokenizer` beside a model, or `None`."""
    path = pathlib.Path(path)
    directory = path if path.is_dir() else path.parent
    if format == "huggingface":
        return huggingface_tokenizer.read_tokenizer(directory)
    if format == "original":
        return original_files.read_tokenizer(directory)
    if not (directory / "assets" / original_files.VOCABULARY).exists():
        return None
    return XLNetTokenizer.from_preset(directory)

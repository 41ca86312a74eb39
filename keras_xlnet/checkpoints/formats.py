"""Functions for checkpoints of any format: detect, load and save."""

import inspect
import pathlib
from collections.abc import Callable
from typing import Any

import keras

from keras_xlnet.arguments import check_choice
from keras_xlnet.checkpoints import (
    bert_files,
    huggingface_tokenizer,
    keras_hub,
    keras_xlnet_h5,
    original_files,
)
from keras_xlnet.checkpoints.bert import load_bert
from keras_xlnet.checkpoints.huggingface import CONFIG, load_huggingface, save_huggingface
from keras_xlnet.checkpoints.huggingface_config import read_config
from keras_xlnet.checkpoints.keras_hub import load_keras_hub
from keras_xlnet.checkpoints.keras_xlnet_h5 import load_keras_xlnet_h5
from keras_xlnet.checkpoints.original import load_original, save_original
from keras_xlnet.checkpoints.tasks import (
    BACKBONE,
    TASKS,
    get_task,
    task_of_config,
    task_of_model,
    task_of_variables,
)
from keras_xlnet.models import TransformerXLLanguageModel
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preset_files import file_in, shipped_directory
from keras_xlnet.preset_files.files import read_json
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.types import PathLike

#: Names of the formats of `load_checkpoint` and `save_checkpoint`.
FORMATS = ("original", "huggingface", "preset")
#: Names of the formats of `load_checkpoint`: `FORMATS`, and three that can only be read.
READABLE_FORMATS = (*FORMATS, "keras_hub", "keras_xlnet_h5", "bert")
_LOADERS: dict[str, Callable[..., Any]] = {
    "original": load_original,
    "huggingface": load_huggingface,
    "keras_hub": load_keras_hub,
    "keras_xlnet_h5": load_keras_xlnet_h5,
    "bert": load_bert,
}
# Arguments that change the outputs but are in no file: flags of the original's scripts.
_UNSTATED: dict[str, tuple[str, ...]] = {
    "original": (
        *"attention_type memory_length reuse_length clamp_length same_length".split(),
        *"bidirectional_data remember_segment_ids".split(),
    ),
    "huggingface": ("remember_segment_ids",),
}
# Those of XLNet are in its file, or refused.
_UNSTATED_OF_TRANSFORMER_XL = ("normalize_first", "layer_norm_epsilon", "activation")
_SAVERS: dict[str, Callable[..., None]] = {
    "original": save_original,
    "huggingface": save_huggingface,
}


def detect_format(path: PathLike) -> str:
    """Returns the format of a directory, of a file or of the prefix of an original checkpoint.

    Args:
        path: Path of a directory or of an `.h5` file, prefix of an original checkpoint, or name of
            a preset that comes with the package.

    Returns:
        `"original"`, `"huggingface"`, `"preset"`, `"keras_hub"`, `"keras_xlnet_h5"` or `"bert"`.

    Raises:
        FileNotFoundError: If there is no such path.
        ValueError: If it has none of these formats.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32).save_to_preset(directory)
    >>> keras_xlnet.checkpoints.detect_format(directory)
    'preset'
    """
    path = _located(path)
    if not path.exists() and not pathlib.Path(f"{path}.index").exists():
        raise FileNotFoundError(f"There is no {path}")
    if path.is_file() and path.suffix in keras_xlnet_h5.SUFFIXES:
        return "keras_xlnet_h5"
    if not path.is_dir() or (path / original_files.CONFIG).exists() or any(path.glob("*.index")):
        return "original"
    if (path / CONFIG).exists():
        config = read_json(file_in(path, CONFIG))
        if "model_type" in config:
            return "bert" if config["model_type"] == bert_files.MODEL_TYPE else "huggingface"
        if "registered_name" in config:
            is_keras_hub = str(config["registered_name"]).startswith(keras_hub.PACKAGE)
            return "keras_hub" if is_keras_hub else "preset"
    raise ValueError(
        f"{path} contains no model: neither an original checkpoint (xlnet_config.json and "
        "xlnet_model.ckpt.*), nor the config.json of transformers, of a preset or of KerasHub"
    )


def detect_task(path: PathLike, format: str | None = None) -> str | None:
    """Returns the task that a checkpoint is for, or `None` for an encoder without a head.

    Args:
        path: Path of a directory or of an `.h5` file, prefix of an original checkpoint, or name of
            a preset that comes with the package.
        format: One of `keras_xlnet.checkpoints.READABLE_FORMATS`. `None`: as `detect_format` finds.

    Returns:
        A name in `keras_xlnet.checkpoints.TASKS`, or `None`.

    Raises:
        ValueError: If a file is damaged or the format unknown.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> keras_xlnet.models.XLNetMultipleChoice(backbone).save_to_preset(directory)
    >>> keras_xlnet.checkpoints.detect_task(directory)
    'multiple_choice'
    """
    format, path = _checked(format, path), _located(path)
    if format in ("keras_hub", "bert"):
        return None
    if format == "original":
        return task_of_variables(original_files.OriginalCheckpoint(path).shapes)
    if format == "keras_xlnet_h5":
        names = keras_xlnet_h5.open_file(path).shapes
        return "permutation_lm" if keras_xlnet_h5.LOGIT_BIAS in names else None
    file = file_in(path, CONFIG)
    if format == "huggingface":
        return task_of_config(read_config(file))
    name, tasks = str(read_json(file).get("registered_name")), _tasks_by_class()
    if name not in tasks:
        raise ValueError(
            f"{file} holds a {name!r}, expected one of {sorted(tasks)}. Its backbone can be loaded "
            "without a head, with `task=None` (`--task backbone` of the command)"
        )
    return tasks[name]


def load_checkpoint(
    path: PathLike, format: str | None = None, task: str | None = None, **overrides: Any
) -> Any:
    """Loads a model of any format.

    Args:
        path: Path of a directory or of an `.h5` file, prefix of an original checkpoint, or name of
            a preset that comes with the package.
        format: One of `keras_xlnet.checkpoints.READABLE_FORMATS`. `None`: as `detect_format` finds.
        task: A name in `keras_xlnet.checkpoints.TASKS`, or `None` for the encoder.
        **overrides: As for `load_original`, `load_huggingface`, `load_keras_hub`,
            `load_keras_xlnet_h5`, `load_bert` or `from_preset`.

    Returns:
        An `XLNetBackbone`, or the task's model.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files are damaged, or an argument is invalid.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32).save_to_preset(directory)
    >>> keras_xlnet.checkpoints.load_checkpoint(directory).hidden_dim
    16
    """
    format = _checked(format, path)
    if format != "preset":
        return _LOADERS[format](path, task, **overrides)
    get_task(task)
    if task is None:
        # Also for classes that are not in the table.
        name = read_json(file_in(_located(path), CONFIG)).get("registered_name")
        found = _tasks_by_class().get(str(name))
    else:
        found = detect_task(path, format)
    model = (TASKS[found] if found else BACKBONE).model.from_preset(path, **overrides)
    if task == found:
        return model
    if task is None:
        return backbone_of(model)
    raise ValueError(f"{path} is a preset for the task {found!r}, not {task!r}")


def save_checkpoint(
    model: keras.Model, directory: PathLike, format: str, tokenizer: XLNetTokenizer | None = None
) -> None:
    """Writes a model in any format, with its tokenizer.

    Args:
        model: An `XLNetBackbone` or a task model.
        directory: Where to write. It is created if it does not exist.
        format: `"original"`, `"huggingface"` or `"preset"`.
        tokenizer: An `XLNetTokenizer` for a model without a preprocessor; otherwise it is ignored,
            and the tokenizer of the preprocessor is written.

    Raises:
        ValueError: If the format is unknown or has no such model.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> keras_xlnet.checkpoints.save_checkpoint(backbone, directory, "original")
    >>> keras_xlnet.checkpoints.detect_format(directory)
    'original'
    """
    check_choice("format", format, FORMATS)
    if getattr(model, "preprocessor", None) is not None:
        tokenizer = None
    if format == "preset":
        model.save_to_preset(directory, tokenizer=tokenizer)
    else:
        _SAVERS[format](model, directory, tokenizer=tokenizer)


def load_tokenizer(path: PathLike, format: str | None = None) -> XLNetTokenizer | None:
    """Loads the tokenizer that is saved with a model.

    Args:
        path: Path of a directory or of an `.h5` file, prefix of an original checkpoint, or name of
            a preset that comes with the package.
        format: One of `keras_xlnet.checkpoints.READABLE_FORMATS`. `None`: as `detect_format` finds.

    Returns:
        An `XLNetTokenizer`, or `None` if there is no vocabulary.

    Raises:
        ValueError: If a file of the tokenizer is damaged.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32).save_to_preset(directory)
    >>> keras_xlnet.checkpoints.load_tokenizer(directory) is None
    True
    """
    format, path = _checked(format, path), _located(path)
    directory = path if path.is_dir() else path.parent
    if format == "huggingface":
        return huggingface_tokenizer.read_tokenizer(directory)
    if format == "original":
        return original_files.read_tokenizer(directory)
    if format == "bert":
        return XLNetTokenizer(bert_files.read_vocabulary(directory).to_sentencepiece())
    if format != "preset":
        return None  # KerasHub and the old keras-xlnet save none with a model.
    if not (directory / "assets" / original_files.VOCABULARY).exists():
        return None
    return XLNetTokenizer.from_preset(directory)


def not_in_format(model: keras.Model, format: str) -> list[str]:
    """Returns the properties of a model that a format cannot record.

    `save_checkpoint` leaves them out.

    Args:
        model: An `XLNetBackbone` or a task model.
        format: `"original"`, `"huggingface"` or `"preset"`.

    Returns:
        A list of strings: arguments that are not the defaults, such as `"memory_length=384"` or
        `"long_document='windows'"`, `"preprocessor (its tokenizer is kept)"`, `"trainability"`.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> model = keras_xlnet.models.XLNetTextClassifier(backbone, 2, class_names=["no", "yes"])
    >>> keras_xlnet.checkpoints.formats.not_in_format(model, "original")
    ["class_names=['no', 'yes']"]
    """
    if format == "preset":
        return []
    task = task_of_model(model)
    entry = get_task(task)
    names = _UNSTATED[format]
    if format == "original" and not entry.has_backbone:
        names += _UNSTATED_OF_TRANSFORMER_XL
    lost = _unlike_defaults(backbone_of(model), names)
    if task and entry.has_backbone:
        stated = set(entry.sizes)
        if format == "huggingface":
            if getattr(model, "pooling", None) == "mean":
                lost.append("pooling='mean' over real tokens only")
            config: dict[str, Any] = {}
            for group in entry.config:
                config |= group.write(model)
            for group in entry.config:
                stated |= set(group.read(config, CONFIG))
        lost += _unlike_defaults(model, sorted(entry.arguments - stated - {"name", "preprocessor"}))
        if getattr(model, "preprocessor", None) is not None:
            lost.append("preprocessor (its tokenizer is kept)")
    if not model.trainable or "trainability" in model.get_config():
        lost.append("trainability")
    return lost


def _unlike_defaults(model, names):
    parameters, config = inspect.signature(type(model)).parameters, model.get_config()
    defaults = {name: parameters[name].default for name in names if name in parameters}
    if isinstance(model, TransformerXLLanguageModel):
        defaults |= {name: 1e-12 for name in names if name == "layer_norm_epsilon"}
    return [f"{k}={config[k]!r}" for k, default in defaults.items() if config[k] != default]


def _tasks_by_class():
    """Returns the names of tasks by the names of classes in presets."""
    tasks = ((None, BACKBONE), *TASKS.items())
    return {keras.saving.get_registered_name(task.model): name for name, task in tasks}


def _located(path):
    """Returns the directory of a preset that comes with the package; other paths unchanged."""
    return shipped_directory(path) or pathlib.Path(path)


def _checked(format, path):
    if format is None:
        return detect_format(path)
    check_choice("format", format, READABLE_FORMATS)
    return format

"""Functions for checkpoints of any format: detect, load and save."""

import pathlib
from typing import Any

import keras

from keras_xlnet.arguments import check_choice
from keras_xlnet.checkpoints.bert import BERT
from keras_xlnet.checkpoints.huggingface import HUGGINGFACE
from keras_xlnet.checkpoints.keras_hub import KERAS_HUB
from keras_xlnet.checkpoints.keras_xlnet_h5 import KERAS_XLNET_H5
from keras_xlnet.checkpoints.original import ORIGINAL
from keras_xlnet.checkpoints.presets import PRESET, located
from keras_xlnet.checkpoints.roberta import ROBERTA
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.types import PathLike

#: The record of each format, by its name. The first that detects its files in a path is its format.
FAMILIES = {
    family.name: family
    for family in (
        KERAS_XLNET_H5,
        ORIGINAL,
        BERT,
        ROBERTA,
        HUGGINGFACE,
        KERAS_HUB,
        PRESET,
    )
}
#: Names of the formats of `load_checkpoint` and `save_checkpoint`.
FORMATS = tuple(name for name, family in FAMILIES.items() if family.save)
#: Names of the formats of `load_checkpoint`: `FORMATS`, and others that can only be read.
READABLE_FORMATS = (*FORMATS, *(name for name in FAMILIES if name not in FORMATS))


def detect_format(path: PathLike) -> str:
    """Returns the format of a directory, of a file or of the prefix of an original checkpoint.

    Args:
        path: Path of a directory or of an `.h5` file, prefix of an original checkpoint, or name of
            a preset that comes with the package.

    Returns:
        One of `keras_xlnet.checkpoints.READABLE_FORMATS`.

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
    path = located(path)
    if not path.exists() and not pathlib.Path(f"{path}.index").exists():
        raise FileNotFoundError(f"There is no {path}")
    for name, family in FAMILIES.items():
        if family.detect(path):
            return name
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
    return _family(format, path).detect_task(located(path))


def load_checkpoint(
    path: PathLike, format: str | None = None, task: str | None = None, **overrides: Any
) -> Any:
    """Loads a model of any format.

    Args:
        path: Path of a directory or of an `.h5` file, prefix of an original checkpoint, or name of
            a preset that comes with the package.
        format: One of `keras_xlnet.checkpoints.READABLE_FORMATS`. `None`: as `detect_format` finds.
        task: A name in `keras_xlnet.checkpoints.TASKS`, or `None` for the encoder.
        **overrides: As for the function of the format, such as `load_huggingface`, or for
            `from_preset`.

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
    return _family(format, path).load(path, task, **overrides)


def save_checkpoint(
    model: keras.Model, directory: PathLike, format: str, tokenizer: XLNetTokenizer | None = None
) -> None:
    """Writes a model in any format, with its tokenizer.

    Args:
        model: An `XLNetBackbone` or a task model.
        directory: Where to write. It is created if it does not exist.
        format: One of `keras_xlnet.checkpoints.FORMATS`.
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
    FAMILIES[format].save(model, directory, tokenizer=tokenizer)  # type: ignore[misc]  # Checked.


def load_tokenizer(path: PathLike, format: str | None = None) -> XLNetTokenizer | None:
    """Loads the tokenizer that is saved with a model.

    Args:
        path: Path of a directory or of an `.h5` file, prefix of an original checkpoint, or name of
            a preset that comes with the package.
        format: One of `keras_xlnet.checkpoints.READABLE_FORMATS`. `None`: as `detect_format` finds.

    Returns:
        An `XLNetTokenizer`, or `None` if there is no vocabulary.

    Raises:
        ValueError: If a file of the tokenizer is damaged, or the tokenizer cannot be converted.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32).save_to_preset(directory)
    >>> keras_xlnet.checkpoints.load_tokenizer(directory) is None
    True
    """
    family, path = _family(format, path), located(path)
    if family.tokenizer is None:
        if family.no_tokenizer:
            raise ValueError(f"{path}: {family.no_tokenizer}")
        return None
    return family.tokenizer(path if path.is_dir() else path.parent)


def not_in_format(model: keras.Model, format: str) -> list[str]:
    """Returns the properties of a model that a format cannot record.

    `save_checkpoint` leaves them out.

    Args:
        model: An `XLNetBackbone` or a task model.
        format: One of `keras_xlnet.checkpoints.FORMATS`.

    Returns:
        A list of strings: arguments that are not the defaults, such as `"memory_length=384"` or
        `"long_document='windows'"`, `"preprocessor (its tokenizer is kept)"`, `"trainability"`.

    Example:

    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> model = keras_xlnet.models.XLNetTextClassifier(backbone, 2, class_names=["no", "yes"])
    >>> keras_xlnet.checkpoints.formats.not_in_format(model, "original")
    ["class_names=['no', 'yes']"]
    """
    return FAMILIES[format].left_out(model)


def _family(format, path):
    return FAMILIES[detect_format(path) if format is None else check_format(format)]


def check_format(format: str) -> str:
    """Returns the name of a format that can be read, otherwise raises `ValueError`."""
    return check_choice("format", format, READABLE_FORMATS)

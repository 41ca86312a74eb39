"""The details of an exported model: the JSON file in its directory."""

import pathlib
from typing import Any

from keras_xlnet.preset_files.files import file_in, quoted, read_json
from keras_xlnet.types import PathLike

#: TF Serving ignores other files in this folder than its own.
FILE = "assets.extra/model_details.json"
#: The file in a directory with an ONNX or LiteRT network.
PORTABLE_FILE = "model_details.json"
#: The files of networks, by format.
NETWORK_FILES = {"onnx": "model.onnx", "litert": "model.tflite"}
#: It changes when a key gets another meaning, and not when one is added.
FORMAT_VERSION = 1


def read_export_details(directory: PathLike) -> dict[str, Any] | None:
    """Returns the details that `export` wrote into a directory, or `None` without any.

    Args:
        directory: Path of the export.

    Raises:
        ValueError: If the file is damaged, or has the format of another version.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.preset_files.export_details import read_export_details
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> read_export_details(directory) is None
    True
    >>> (directory / "assets.extra").mkdir()
    >>> file = directory / "assets.extra" / "model_details.json"
    >>> _ = file.write_text('{"format_version": 1, "model": "XLNetRanker"}')
    >>> read_export_details(directory)["model"]
    'XLNetRanker'
    """
    names = [name for name in (FILE, PORTABLE_FILE) if (pathlib.Path(directory) / name).exists()]
    if not names:
        return None
    file = file_in(directory, names[0])
    details = read_json(file)
    version = details.get("format_version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{file} has format_version={quoted(version)}, and this version of keras_xlnet reads "
            f"{FORMAT_VERSION}"
        )
    return details

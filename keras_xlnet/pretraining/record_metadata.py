"""The files that accompany shards of token records: their description and their vocabulary.

`files` is `TensorFlowFiles` or `BeamFiles`, with which files are read and written.
"""

import hashlib
import json
import os
import tempfile
from typing import Any

import tensorflow as tf

from keras_xlnet.pretraining.file_systems import TENSORFLOW_FILES, Files
from keras_xlnet.tokenizers import XLNetTokenizer

FORMAT_VERSION = 1
INFO_FILE = "records.json"
VOCABULARY_FILE = "spiece.model"
_UNFINISHED_FILE = "unfinished.json"
_TEMPORARY_FILES = (_UNFINISHED_FILE, "tokens-*.counts.json", "*.tmp")
_FLAGS = ("lowercase", "remove_accents", "remove_space")


def begin_records(
    directory: str, settings: dict[str, Any], tokenizer: XLNetTokenizer, files: Files
) -> bool:
    """Creates a directory with the vocabulary, or checks what an earlier call wrote there.

    Args:
        directory: String.
        settings: Dict of everything that determines the records.
        tokenizer: An `XLNetTokenizer`.
        files: See above.

    Returns:
        Bool, whether the records are finished.

    Raises:
        ValueError: If the directory has records of other settings.
    """
    files.make_directory(directory)
    for name in (INFO_FILE, _UNFINISHED_FILE):
        path = os.path.join(directory, name)
        if files.exists(path):
            _check_same_settings(path, settings, files)
            return name == INFO_FILE
    _write_vocabulary(directory, tokenizer, files)
    write_json(os.path.join(directory, _UNFINISHED_FILE), settings, files)
    return False


def finish_records(
    directory: str, settings: dict[str, Any], shards: list[dict[str, Any]], files: Files
) -> None:
    """Writes `records.json`.

    Args:
        directory: String.
        settings: Dict, as for `begin_records`.
        shards: List of a dict for each shard that has tokens.
        files: See above.

    Raises:
        ValueError: If there are no shards.
    """
    if not shards:
        raise ValueError(
            f"`files` must contain text. Received: {len(settings['files'])} files without a "
            f"token, the first of them {settings['files'][0][0]!r}"
        )
    write_json(os.path.join(directory, INFO_FILE), {**settings, "shards": shards}, files)


def remove_temporary_files(directory: str, files: Files) -> None:
    """Removes the files that only an interrupted call needs."""
    for pattern in _TEMPORARY_FILES:
        files.delete(directory, pattern)


def fingerprint(tokenizer: XLNetTokenizer) -> dict[str, Any]:
    """Returns everything that determines a tokenizer's ids: flags and the SHA-256 of its model."""
    flags = {flag: getattr(tokenizer, flag) for flag in _FLAGS}
    return {**flags, "sha256": tokenizer.vocabulary_sha256}


def load_tokenizer(
    directory: str, expected: dict[str, Any], files: Files = TENSORFLOW_FILES
) -> XLNetTokenizer:
    """Loads the tokenizer with which the records in a directory were made.

    Args:
        directory: String, the directory with `spiece.model`.
        expected: Dict, the `fingerprint` of the tokenizer.
        files: See above.

    Returns:
        An `XLNetTokenizer`.

    Raises:
        FileNotFoundError: If there is no `spiece.model`.
        ValueError: If `expected` is incomplete, or `spiece.model` is a different vocabulary.
    """
    path = os.path.join(directory, VOCABULARY_FILE)
    missing = {"sha256", *_FLAGS} - expected.keys()
    if missing:
        raise ValueError(
            f"{os.path.join(directory, INFO_FILE)!r} is damaged: the description of the tokenizer "
            f"lacks {sorted(missing)}."
        )
    if not files.exists(path):
        raise FileNotFoundError(f"The vocabulary {path!r} does not exist.")
    with files.open(path) as file:
        proto = file.read()
    digest = hashlib.sha256(proto).hexdigest()
    if digest != expected["sha256"]:
        raise ValueError(
            f"{path!r} is not the vocabulary with which the records were made: its SHA-256 must "
            f"be {expected['sha256']}. Received: {digest}"
        )
    return XLNetTokenizer(proto, **{flag: expected[flag] for flag in _FLAGS})


def read_json(path: str, files: Files = TENSORFLOW_FILES) -> dict[str, Any]:
    """Reads a JSON object.

    Raises:
        ValueError: If the file does not contain a JSON object.
    """
    with files.open(path) as file:
        content = file.read()
    try:
        value = json.loads(content)
    except ValueError as error:
        raise ValueError(f"{path!r} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path!r} is damaged: it does not contain a JSON object.")
    return value


def write_json(path: str, value: dict[str, Any], files: Files) -> None:
    """Writes a JSON object. `path` never holds a partial file."""
    with files.replacing(path) as temporary, tf.io.gfile.GFile(temporary, "w") as file:
        file.write(json.dumps(value, indent=1, ensure_ascii=False))


def _write_vocabulary(directory, tokenizer, files):
    with (
        tempfile.TemporaryDirectory() as scratch,
        files.replacing(os.path.join(directory, VOCABULARY_FILE)) as temporary,
    ):
        tokenizer.save_assets(scratch)
        tf.io.gfile.copy(os.path.join(scratch, VOCABULARY_FILE), temporary, overwrite=True)


def _check_same_settings(path, settings, files):
    found = read_json(path, files)
    names = [*settings, *sorted(found.keys() - settings.keys() - {"shards"})]
    different = [name for name in names if found.get(name) != settings.get(name)]
    if different:
        name = different[0]
        raise ValueError(
            f"{path!r} belongs to records with another value of {name}: {found.get(name)!r}. "
            f"Received: {settings.get(name)!r}. Delete the directory or choose another one."
        )

"""The files beside the shards of token records: their description and their vocabulary."""

import hashlib
import json
import os
import tempfile

import tensorflow as tf

from keras_xlnet.text import XLNetTokenizer

FORMAT_VERSION = 1
INFO_FILE = "records.json"
VOCABULARY_FILE = "spiece.model"
_FLAGS = ("lowercase", "remove_accents", "remove_space")


def fingerprint(tokenizer):
    """Returns what determines the ids of a tokenizer: its flags and the SHA-256 of its model."""
    with tempfile.TemporaryDirectory() as directory:
        tokenizer.save_assets(directory)
        digest = _sha256(os.path.join(directory, VOCABULARY_FILE))
    return {**{flag: getattr(tokenizer, flag) for flag in _FLAGS}, "sha256": digest}


def load_tokenizer(directory, expected):
    """Loads the tokenizer with which the records in a directory were made.

    Args:
        directory: String, the directory with `spiece.model`.
        expected: Dict, the `fingerprint` of the tokenizer.

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
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(f"The vocabulary {path!r} does not exist.")
    digest = _sha256(path)
    if digest != expected["sha256"]:
        raise ValueError(
            f"{path!r} is not the vocabulary with which the records were made: its SHA-256 must "
            f"be {expected['sha256']}. Received: {digest}"
        )
    return XLNetTokenizer(path, **{flag: expected[flag] for flag in _FLAGS})


def read_json(path):
    """Reads a JSON object.

    Raises:
        ValueError: If the file does not contain a JSON object.
    """
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        value = json.loads(content)
    except ValueError as error:
        raise ValueError(f"{path!r} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path!r} is damaged: it does not contain a JSON object.")
    return value


def write_json(path, value):
    """Writes a JSON object to a temporary file and renames it, so that `path` is never partial."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with tf.io.gfile.GFile(temporary, "w") as file:
        file.write(json.dumps(value, indent=1, ensure_ascii=False))
    tf.io.gfile.rename(temporary, path, overwrite=True)


def _sha256(path):
    with tf.io.gfile.GFile(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()

"""What lies beside the shards of token records: their description and their vocabulary."""

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
    """Returns what decides a tokenizer's ids: its flags and the SHA-256 of its model."""
    with tempfile.TemporaryDirectory() as directory:
        tokenizer.save_assets(directory)
        digest = _sha256(os.path.join(directory, VOCABULARY_FILE))
    return {**{flag: getattr(tokenizer, flag) for flag in _FLAGS}, "sha256": digest}


def load_tokenizer(directory, expected):
    """Returns the tokenizer that the records in a directory were made with.

    Args:
        directory: str, where `spiece.model` lies.
        expected: the tokenizer's `fingerprint`.

    Raises:
        FileNotFoundError: there is no `spiece.model`.
        ValueError: it is another one.
    """
    path = os.path.join(directory, VOCABULARY_FILE)
    missing = {"sha256", *_FLAGS} - expected.keys()
    if missing:
        raise ValueError(
            f"directory: the description of the tokenizer in {directory!r} lacks {sorted(missing)}."
        )
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(f"directory: there is no vocabulary at {path!r}.")
    digest = _sha256(path)
    if digest != expected["sha256"]:
        raise ValueError(
            f"directory: {path!r} is not the vocabulary that the records were made with: its "
            f"SHA-256 is {digest}, expected {expected['sha256']}."
        )
    return XLNetTokenizer(path, **{flag: expected[flag] for flag in _FLAGS})


def read_json(path):
    """Reads a JSON object.

    Raises:
        ValueError: the file holds something else.
    """
    with tf.io.gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        value = json.loads(content)
    except ValueError as error:
        raise ValueError(f"{path!r} is damaged: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path!r} is damaged: it does not hold a JSON object.")
    return value


def write_json(path, value):
    """Writes a JSON object so that a file of that name is always whole."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with tf.io.gfile.GFile(temporary, "w") as file:
        file.write(json.dumps(value, indent=1, ensure_ascii=False))
    tf.io.gfile.rename(temporary, path, overwrite=True)


def _sha256(path):
    with tf.io.gfile.GFile(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()

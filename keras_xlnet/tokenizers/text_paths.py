"""Finds and opens files by path and glob pattern, and remote files with TensorFlow."""

import glob
import os
import re
from collections.abc import Sequence
from typing import Any

from keras_xlnet.lazy_modules import tf
from keras_xlnet.types import PathLike

GLOB_CHARACTERS = re.compile(r"[*?\[]")
_HINT = "To read texts in memory, pass an iterator such as iter(texts)."


def find_text_files(files: PathLike | Sequence[PathLike]) -> list[str]:
    """Returns the paths of text files.

    Args:
        files: Path or glob pattern, or a list of them.

    Returns:
        List of strings in the given order, without duplicates. The matches of a pattern are
        sorted.

    Raises:
        FileNotFoundError: If a path does not exist, or a pattern has no match.
        ValueError: If `files` is empty or contains a directory.
    """
    patterns = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not patterns:
        raise ValueError(f"`files` must name at least one text file. Received: files={files!r}")
    paths = [path for pattern in patterns for path in _matches(os.fspath(pattern))]
    return list(dict.fromkeys(paths))


def is_remote(path: str) -> bool:
    """Whether a path names a file system, such as `gs://`."""
    return "://" in path


def open_file(path: str, mode: str) -> Any:
    """Opens a file, such as `open(path, "rb")`; a remote one with TensorFlow."""
    if not is_remote(path):
        return open(path, mode)
    return _remote_files().GFile(path, mode)


def _remote_files():
    return tf.io.gfile  # It can read cloud file systems.


def _matches(pattern):
    files = _remote_files() if is_remote(pattern) else None
    is_directory, exists, find = (
        (files.isdir, files.exists, files.glob)
        if files
        else (os.path.isdir, os.path.exists, glob.glob)
    )
    if is_directory(pattern):
        raise ValueError(
            f"`files` must be text files or glob patterns. Received: the directory {pattern!r}. "
            f"Use {os.path.join(pattern, '*.txt')!r} for the text files in it."
        )
    if exists(pattern):
        return [pattern]
    if not GLOB_CHARACTERS.search(pattern):
        raise FileNotFoundError(f"`files` must exist. Received: {pattern!r}. {_HINT}")
    paths = sorted(path for path in find(pattern) if not is_directory(path))
    if not paths:
        raise FileNotFoundError(
            f"`files` must match at least one file. Received: the pattern {pattern!r}. {_HINT}"
        )
    return paths

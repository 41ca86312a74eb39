"""Finds text files by paths and glob patterns."""

import os
import re
from collections.abc import Sequence

import tensorflow as tf

from keras_xlnet.types import PathLike

_GLOB_CHARACTERS = re.compile(r"[*?\[]")


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


def _matches(pattern):
    if tf.io.gfile.isdir(pattern):
        raise ValueError(
            f"`files` must be text files or glob patterns. Received: the directory {pattern!r}. "
            f"Use {os.path.join(pattern, '*.txt')!r} for the text files in it."
        )
    if tf.io.gfile.exists(pattern):
        return [pattern]
    if not _GLOB_CHARACTERS.search(pattern):
        raise FileNotFoundError(f"`files` must exist. Received: {pattern!r}")
    paths = sorted(path for path in tf.io.gfile.glob(pattern) if not tf.io.gfile.isdir(path))
    if not paths:
        raise FileNotFoundError(
            f"`files` must match at least one file. Received: the pattern {pattern!r}"
        )
    return paths

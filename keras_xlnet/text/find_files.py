"""Text files by their paths and patterns."""

import os
import re

import tensorflow as tf

_GLOB_CHARACTERS = re.compile(r"[*?\[]")


def find_files(files):
    """Returns the paths of text files.

    Args:
        files: a path or glob pattern, or a list of them.

    Returns:
        list of str: in the order given, each pattern's matches sorted, nothing twice.

    Raises:
        FileNotFoundError: a path does not exist, or a pattern matches nothing.
        ValueError: there is no path at all, or one is a directory.
    """
    patterns = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not patterns:
        raise ValueError(f"files must name at least one text file. Received: {files!r}")
    paths = [path for pattern in patterns for path in _matches(os.fspath(pattern))]
    return list(dict.fromkeys(paths))


def _matches(pattern):
    if tf.io.gfile.isdir(pattern):
        raise ValueError(
            f"files must be text files or glob patterns. Received: the directory {pattern!r}; "
            f"write {os.path.join(pattern, '*.txt')!r} for the text files in it."
        )
    if tf.io.gfile.exists(pattern):
        return [pattern]
    if not _GLOB_CHARACTERS.search(pattern):
        raise FileNotFoundError(f"files: there is no file at {pattern!r}.")
    paths = sorted(path for path in tf.io.gfile.glob(pattern) if not tf.io.gfile.isdir(path))
    if not paths:
        raise FileNotFoundError(f"files: nothing matches the pattern {pattern!r}.")
    return paths

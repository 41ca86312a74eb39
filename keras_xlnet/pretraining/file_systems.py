"""File operations for record writers, on file systems of TensorFlow and of Beam."""

import contextlib
import fnmatch
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from keras_xlnet.tokenizers.text_paths import GLOB_CHARACTERS, find_text_files
from keras_xlnet.types import PathLike

_BYTES_PER_COPY = 2**20
# Without it, Beam decompresses files with certain names.
_UNCOMPRESSED = "uncompressed"


class TensorFlowFiles:
    """File operations of `tf.io.gfile`. `BeamFiles` has the same methods."""

    def describe(self, files: PathLike | Sequence[PathLike]) -> list[list[Any]]:
        """Returns `[path, number of bytes, time of change in nanoseconds]` of each text file.

        Args:
            files: Path or glob pattern, or a list of them; see `find_text_files`.
        """
        statistics = {path: tf.io.gfile.stat(path) for path in find_text_files(files)}
        return [[path, stat.length, stat.mtime_nsec] for path, stat in statistics.items()]

    def exists(self, path: PathLike) -> bool:
        """Returns whether there is a file or directory."""
        return tf.io.gfile.exists(path)

    def open(self, path: PathLike) -> Any:
        """Opens a file for reading bytes. The file can `seek`, and is not decompressed."""
        return tf.io.gfile.GFile(path, "rb")

    def make_directory(self, path: PathLike) -> None:
        """Creates a directory and its parents, unless they exist."""
        tf.io.gfile.makedirs(path)

    @contextlib.contextmanager
    def replacing(self, path: PathLike) -> Iterator[str]:
        """Yields a temporary path, and then renames that file, so that `path` is complete."""
        temporary = f"{path}.{os.getpid()}.tmp"
        yield temporary
        tf.io.gfile.rename(temporary, path, overwrite=True)

    def delete(self, directory: PathLike, pattern: str) -> None:
        """Deletes the files in a directory whose names match a pattern, if there are any."""
        for name in fnmatch.filter(tf.io.gfile.listdir(directory), pattern):
            tf.io.gfile.remove(os.path.join(directory, name))


class BeamFiles:
    """File operations of Beam's `FileSystems`: local paths, gs://, s3://, hdfs:// and others."""

    def describe(self, files: PathLike | Sequence[PathLike]) -> list[list[Any]]:
        """Returns `[path, number of bytes, time of change in nanoseconds]` of each text file.

        Args:
            files: Path or glob pattern, or a list of them.

        Raises:
            FileNotFoundError: If a path does not exist, or a pattern has no match.
            ValueError: If `files` is empty or contains a local directory.
        """
        patterns = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        if not patterns:
            raise ValueError(f"`files` must name at least one file. Received: files={files!r}")
        found = [entry for pattern in patterns for entry in _describe(os.fspath(pattern))]
        return list({entry[0]: entry for entry in found}.values())

    def exists(self, path: str) -> bool:
        """Returns whether there is a file or directory."""
        return _file_systems().exists(path)

    def open(self, path: str) -> Any:
        """Opens a file for reading bytes. The file can `seek`, and is not decompressed."""
        return _file_systems().open(path, compression_type=_UNCOMPRESSED)

    def make_directory(self, path: str) -> None:
        """Creates a directory and its parents, unless they exist."""
        if not _file_systems().exists(path):
            _file_systems().mkdirs(path)

    @contextlib.contextmanager
    def replacing(self, path: str) -> Iterator[str]:
        """Yields a local path to write to, and then copies that file to `path`.

        The copy has a name of its own until it is complete. So a killed process leaves no partial
        file at `path`, and two processes can write the same file at the same time.
        """
        temporary = f"{path}.{uuid.uuid4().hex}.tmp"
        with tempfile.TemporaryDirectory() as scratch:
            local = os.path.join(scratch, "content")
            yield local
            with open(local, "rb") as source, _create(temporary) as target:
                shutil.copyfileobj(source, target, _BYTES_PER_COPY)
        try:
            _file_systems().rename([temporary], [path])
        except OSError:  # BeamIOError
            # HDFS does not replace files. An existing file is complete: another attempt wrote it.
            if not _file_systems().exists(path):
                raise
            _file_systems().delete([temporary])

    def delete(self, directory: str, pattern: str) -> None:
        """Deletes the files in a directory whose names match a pattern, if there are any."""
        paths = [metadata.path for metadata in _match(os.path.join(directory, pattern))]
        if paths:
            _file_systems().delete(paths)


def _describe(pattern):
    if _file_systems().get_scheme(pattern) is None:
        # Beam rounds the time of local files, and does not find relative patterns without a
        # directory.
        return TENSORFLOW_FILES.describe(pattern)
    matches = _match(pattern)
    if not matches:
        verb = "match at least one file" if GLOB_CHARACTERS.search(pattern) else "exist"
        raise FileNotFoundError(f"`files` must {verb}. Received: {pattern!r}")
    return sorted(
        [entry.path, entry.size_in_bytes, int(entry.last_updated_in_seconds * 10**9)]
        for entry in matches
    )


def _match(pattern):
    return _file_systems().match([pattern])[0].metadata_list


def _create(path):
    return _file_systems().create(path, compression_type=_UNCOMPRESSED)


def _file_systems():
    # Imported here, because Beam is optional.
    from apache_beam.io.filesystems import FileSystems

    return FileSystems


Files: TypeAlias = TensorFlowFiles | BeamFiles
TENSORFLOW_FILES = TensorFlowFiles()
BEAM_FILES = BeamFiles()

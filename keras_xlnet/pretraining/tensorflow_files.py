"""What the writers of token records do with files, on the file systems that TensorFlow knows."""

import contextlib
import fnmatch
import os

import tensorflow as tf

from keras_xlnet.text.text_paths import find_text_files


class TensorFlowFiles:
    """File operations of `tf.io.gfile`. `BeamFiles` has the same methods."""

    def describe(self, files):
        """Returns `[path, number of bytes, time of change in nanoseconds]` of each text file.

        Args:
            files: Path or glob pattern, or a list of them; see `find_text_files`.
        """
        statistics = {path: tf.io.gfile.stat(path) for path in find_text_files(files)}
        return [[path, stat.length, stat.mtime_nsec] for path, stat in statistics.items()]

    def exists(self, path):
        """Returns whether there is a file or directory."""
        return tf.io.gfile.exists(path)

    def open(self, path):
        """Opens a file for reading bytes. The file can `seek`, and is not decompressed."""
        return tf.io.gfile.GFile(path, "rb")

    def make_directory(self, path):
        """Creates a directory and its parents, unless they exist."""
        tf.io.gfile.makedirs(path)

    @contextlib.contextmanager
    def replacing(self, path):
        """Yields another path to write to, and then renames that file, so `path` is complete."""
        temporary = f"{path}.{os.getpid()}.tmp"
        yield temporary
        tf.io.gfile.rename(temporary, path, overwrite=True)

    def delete(self, directory, pattern):
        """Deletes the files in a directory whose names match a pattern, if there are any."""
        for name in fnmatch.filter(tf.io.gfile.listdir(directory), pattern):
            tf.io.gfile.remove(os.path.join(directory, name))


TENSORFLOW_FILES = TensorFlowFiles()

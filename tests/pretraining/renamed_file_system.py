"""A file system for Beam with the scheme `renamed://`: a local folder that TensorFlow cannot read.

Like HDFS, it does not rename a file to a name that exists.
"""

import os

from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.localfilesystem import LocalFileSystem

_PREFIX = "renamed://"


def _local(path):
    return path.replace(_PREFIX, "/", 1)


class RenamedFileSystem(LocalFileSystem):
    """`renamed://a/b` is the local file `/a/b`."""

    @classmethod
    def scheme(cls):
        return "renamed"

    def _url_dirname(self, url_or_path):
        return os.path.dirname(url_or_path)

    def _list(self, dir_or_prefix):
        for metadata in super()._list(_local(dir_or_prefix)):
            yield self._renamed(metadata)

    def metadata(self, path):
        return self._renamed(super().metadata(_local(path)))

    def mkdirs(self, path):
        super().mkdirs(_local(path))

    def create(self, path, *args, **kwargs):
        return super().create(_local(path), *args, **kwargs)

    def open(self, path, *args, **kwargs):
        return super().open(_local(path), *args, **kwargs)

    def exists(self, path):
        return super().exists(_local(path))

    def rename(self, source_file_names, destination_file_names):
        existing = [path for path in destination_file_names if self.exists(path)]
        if existing:
            raise BeamIOError("Rename operation failed", {existing[0]: "exists"})
        super().rename(
            [_local(path) for path in source_file_names],
            [_local(path) for path in destination_file_names],
        )

    def delete(self, paths):
        for path in paths:
            os.remove(_local(path))

    def _renamed(self, metadata):
        path = _PREFIX + metadata.path.lstrip("/")
        return FileMetadata(path, metadata.size_in_bytes, metadata.last_updated_in_seconds)

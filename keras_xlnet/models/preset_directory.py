"""Moved to `keras_xlnet.presets`, which `text` may import too; only re-exported here for now."""

from keras_xlnet.presets import file_in, local_directory

__all__ = ["file_in", "local_directory"]

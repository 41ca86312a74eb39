"""Directories that models are loaded from: where they are, and what in them is trusted.

Knows nothing but keras; `text`, `models` and `checkpoints` all read through it.
"""

from keras_xlnet.presets.assign_in_blocks import assign_in_blocks
from keras_xlnet.presets.file_in import file_in
from keras_xlnet.presets.local_directory import local_directory

__all__ = ["assign_in_blocks", "file_in", "local_directory"]

"""Directories that models are loaded from: finding, fetching, checking and replacing their files.

Depends on Keras only; `text`, `models` and `checkpoints` read and write files with it.
"""

from keras_xlnet.preset_files.files import file_in, replace_files
from keras_xlnet.preset_files.locations import local_directory
from keras_xlnet.preset_files.shipped import (
    adapters,
    preset_directory,
    presets,
    shipped_directory,
    write_preset_info,
)
from keras_xlnet.preset_files.upload import upload_preset
from keras_xlnet.preset_files.weights import assign_in_blocks

__all__ = [
    "adapters",
    "assign_in_blocks",
    "file_in",
    "local_directory",
    "preset_directory",
    "presets",
    "replace_files",
    "shipped_directory",
    "upload_preset",
    "write_preset_info",
]

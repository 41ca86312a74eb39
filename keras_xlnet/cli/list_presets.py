"""`xlnet presets`: lists the presets that come with the package."""

import argparse

from keras_xlnet.preset_files import presets


def run(arguments: argparse.Namespace) -> int:
    """Prints the table. Returns the exit status."""
    print(presets())
    return 0

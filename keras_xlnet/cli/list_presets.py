"""`xlnet presets`: lists the presets and adapters that come with the package."""

import argparse

from keras_xlnet.preset_files import adapters, presets


def run(arguments: argparse.Namespace) -> int:
    """Prints the tables. Returns the exit status."""
    print(presets())
    if adapters():
        print(f"\n{adapters()}")
    return 0

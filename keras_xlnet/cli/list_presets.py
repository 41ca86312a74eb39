"""`xlnet presets`: lists the presets and adapters that come with the package."""

import argparse

from keras_xlnet.preset_files import adapters, presets

_CHOICE = """
Which model? xlnet_mini_en for most tasks; xlnet_small_en if case, size or speed matter.
docs/presets.md compares them. docs/small_model.md makes a model of another language.
"""


def run(arguments: argparse.Namespace) -> int:
    """Prints the tables. Returns the exit status."""
    print(presets())
    if len(presets()) > 1:
        print(_CHOICE, end="")
    if adapters():
        print(f"\n{adapters()}")
    return 0

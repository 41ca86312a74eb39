"""`xlnet presets`: lists the presets that come with the package."""

from keras_xlnet.preset_files import presets

NAME = "presets"
HELP = "list the presets that come with the package, with sizes and figures"
EXAMPLES = """examples:
  xlnet presets"""


def add_arguments(parser):
    """Adds no arguments."""


def run(arguments):
    """Prints the table. Returns the exit status."""
    print(presets())
    return 0

"""The command `xlnet` and its subcommands."""

import argparse
import sys

from absl import app
from absl.flags import argparse_flags

from keras_xlnet.cli import convert, inspect_model, list_presets, verify

_COMMANDS = (convert, inspect_model, verify, list_presets)
_DESCRIPTION = """Converts, inspects and compares checkpoints of XLNet.

A checkpoint is a directory in one of three formats: `original` (zihangdai/xlnet, TensorFlow 1),
`huggingface` (transformers, safetensors) or `preset` (keras_xlnet). The prefix of an original
checkpoint can be given instead. The format of what is read is detected."""


def main(arguments):
    """Runs a subcommand. Returns the exit status, 1 if a file or an argument is invalid."""
    try:
        return arguments.command(arguments)
    except (OSError, ValueError, ImportError) as error:
        print(f"xlnet: {' '.join(str(error).split())}", file=sys.stderr)
        return 1


def run():
    """Runs the command `xlnet` on the arguments of the process."""
    app.run(main, flags_parser=parse)


def parse(argv):
    """Returns the arguments of a command line, with the function to run as `command`."""
    parser = argparse_flags.ArgumentParser(
        prog="xlnet",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        subparser = subparsers.add_parser(
            command.NAME,
            help=command.HELP,
            description=f"{command.HELP}\n\n{command.EXAMPLES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(command=command.run)
    return parser.parse_args(argv[1:])

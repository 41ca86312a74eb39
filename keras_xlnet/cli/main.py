"""The command `xlnet` and its subcommands."""

import argparse
import sys

from absl import app
from absl.flags import argparse_flags

from keras_xlnet.cli import convert, inspect_model, verify

_COMMANDS = (convert, inspect_model, verify)
_DESCRIPTION = """Checkpoints of XLNet: convert, inspect, compare.

A checkpoint is a directory in one of three formats: `original` (zihangdai/xlnet, TensorFlow 1),
`huggingface` (transformers, safetensors) or `preset` (keras_xlnet). Of an original checkpoint the
prefix will do, too. The format of what is read is found out by itself."""


def main(arguments):
    """Runs one subcommand; the exit status is 1 if a file or an argument is wrong."""
    try:
        return arguments.command(arguments)
    except (OSError, ValueError, ImportError) as error:
        print(f"xlnet: {' '.join(str(error).split())}", file=sys.stderr)
        return 1


def run():
    """The console entry point."""
    app.run(main, flags_parser=parse)


def parse(argv):
    """The arguments of a command line, with the subcommand that is to run as `command`."""
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

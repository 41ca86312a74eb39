"""Parses command lines of a program without running it; run by test_commands.py.

    python parse_commands.py PROGRAM COMMANDS

where PROGRAM is a file that uses absl or argparse, and COMMANDS a list of lists of words as JSON.
"""

import argparse
import json
import os
import runpy
import sys

from absl import app, flags


def main(program, commands):
    def run(*_, **__):
        app.define_help_flags()
        for command in commands:
            flags.FLAGS.unparse_flags()
            flags.FLAGS([program, *command])

    def parse_args(parser):
        for command in commands:
            parse(parser, command)
        sys.exit()

    app.run, parse, argparse.ArgumentParser.parse_args = (
        run,
        argparse.ArgumentParser.parse_args,
        parse_args,
    )
    sys.argv = [program]
    sys.path[:0] = [os.path.dirname(program), os.getcwd()]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))

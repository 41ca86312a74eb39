"""Runs `xlnet` as `python -m keras_xlnet.cli`."""

from keras_xlnet.cli.main import run

run()

"""`python -m keras_xlnet.cli` is `xlnet`."""

from keras_xlnet.cli.main import run

run()

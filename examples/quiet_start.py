"""Imports the package without the start-up messages of TensorFlow. Import this first."""

from xlnet_command import import_quietly

import_quietly("keras_xlnet")

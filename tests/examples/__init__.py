import pathlib

import pytest

import keras_xlnet

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
SHIPPED = "xlnet_small_en"
# A source tree can be without the weights.
needs_shipped_preset = pytest.mark.skipif(
    SHIPPED not in keras_xlnet.presets(), reason=f"{SHIPPED} is not here"
)

"""Names that the examples in the docstrings use without importing them."""

import pytest


@pytest.fixture(autouse=True)
def _names_of_the_examples(request, doctest_namespace):
    # Only doctests pay for importing TensorFlow here.
    if isinstance(request.node, pytest.DoctestItem):
        import keras
        import numpy as np

        import keras_xlnet

        doctest_namespace.update(keras=keras, np=np, keras_xlnet=keras_xlnet)

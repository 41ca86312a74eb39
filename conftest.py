"""Names that the examples in the docstrings use without importing them."""

import importlib.util

import pytest

# They need Apache Beam (extra `beam`), which `make test` does not install.
if importlib.util.find_spec("apache_beam") is None:
    collect_ignore = [
        "keras_xlnet/pretraining/beam_record_writer.py",
        "tests/pretraining/renamed_file_system.py",
    ]


@pytest.fixture(autouse=True)
def _names_of_the_examples(request, doctest_namespace):
    # Only doctests pay for importing TensorFlow here.
    if isinstance(request.node, pytest.DoctestItem):
        import keras
        import numpy as np

        import keras_xlnet

        doctest_namespace.update(keras=keras, np=np, keras_xlnet=keras_xlnet)

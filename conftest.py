"""Names that the examples in the docstrings use without importing them."""

import importlib.util

import pytest

# Files that need packages of extras which `make test` does not install.
_NEEDS = {
    "apache_beam": [
        "keras_xlnet/pretraining/beam_record_writer.py",
        "tests/pretraining/renamed_file_system.py",
    ],
    "spacy": ["keras_xlnet/integrations/spacy_components.py"],
}
collect_ignore = [
    file
    for package, files in _NEEDS.items()
    if importlib.util.find_spec(package) is None
    for file in files
]


@pytest.fixture(autouse=True)
def _names_of_the_examples(request, doctest_namespace):
    # Only doctests pay for importing TensorFlow here.
    if isinstance(request.node, pytest.DoctestItem):
        import keras
        import numpy as np

        import keras_xlnet

        doctest_namespace.update(keras=keras, np=np, keras_xlnet=keras_xlnet)

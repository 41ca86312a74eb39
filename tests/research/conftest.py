"""`make test` leaves the research programs out; `make test-all` runs them."""

import pathlib

import pytest

from tests.examples.conftest import small_preset, tiny_preset  # noqa: F401, fixtures

FOLDER = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.slow)

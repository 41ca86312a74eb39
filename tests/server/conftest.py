"""One server of small models for the tests of a file."""

import pytest

from tests.server.running_server import serve
from tests.server.small_models import save_half_plus, save_texts


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A directory of models. Tests do not write to it."""
    folder = tmp_path_factory.mktemp("models")
    save_half_plus(folder / "half_plus_three" / "00000123")
    save_texts(folder / "texts" / "1")
    return folder


@pytest.fixture(scope="module")
def client(models):
    with serve(models) as (client, _):
        yield client

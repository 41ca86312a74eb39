"""The quickstart as its users run it: a process of its own, in a folder of its own."""

import subprocess
import sys

import pytest

from tests.examples import EXAMPLES


@pytest.mark.slow  # It runs in CI.
def test_exports_a_model_that_knows_plain_cases(tmp_path):
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / "quickstart.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=420,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    (directory,) = (tmp_path / "runs" / "quickstart").iterdir()
    assert (directory / "saved_model.pb").is_file()
    # What the SavedModel says about a prize and an appointment.
    assert "[b'spam' b'ham']" in result.stdout

"""`import keras_xlnet` writes nothing to stderr, and hides nothing that says something."""

import os
import subprocess
import sys

import pytest

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "TF_CPP_MIN_LOG_LEVEL"}
NOISY = """
    import os
    os.write(2, b"WARNING: All log messages before absl::InitializeLog() is called\\n")
    os.write(2, b"I0000 00:00:1795397101.45   26648 port.cc:153] oneDNN is on\\n")
    os.write(2, b"I0000 00:00:1795397101.45   26648 cpu_feature_guard.cc:227] This binary is\\n"
                b"To enable the following instructions: AVX2 FMA, rebuild TensorFlow\\n")
    os.write(2, b"I0000 00:00:1795397101.45   26648 other.cc:153] of another file\\n")
    os.write(2, b"W0000 00:00:1795397101.45   26648 port.cc:153] low on memory\\n")
    os.write(2, b"E0000 00:00:1795397101.45   26648 cuda_platform.cc:52] no driver\\n")
"""
# Not of keras_xlnet, whose import takes seconds.
QUIETLY = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("quiet_start", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
with module.quiet_start():
"""
FILE = os.path.join(os.path.dirname(__file__), "..", "keras_xlnet", "quiet_start.py")


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program, FILE],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, **environment},
    )


@pytest.mark.parametrize("room", ["", ".serving", ".visualization"])
def test_the_import_is_quiet(room):
    result = run(f"import keras_xlnet{room}; print('done')")
    assert result.stdout == "done\n" and not result.stderr


@pytest.mark.parametrize("fails", [False, True])
def test_start_messages_are_left_out_and_others_are_kept(fails):
    result = run(f"{QUIETLY}{NOISY}    1 / {int(not fails)}\nprint('done')")
    found = [line.partition(" ")[0] for line in result.stderr.splitlines()]
    assert found[:3] == ["I0000", "W0000", "E0000"] and "other.cc" in result.stderr
    assert ("ZeroDivisionError" in result.stderr) == fails
    assert result.stdout == ("" if fails else "done\n")


def test_all_is_written_on_request():
    result = run(f"{QUIETLY}{NOISY}", TF_CPP_MIN_LOG_LEVEL="0")
    assert len(result.stderr.splitlines()) == 7


def test_a_process_without_stderr():
    result = run(f"import os\nos.close(2)\n{QUIETLY}{NOISY.splitlines()[1]}\nprint('done')")
    assert result.stdout == "done\n"

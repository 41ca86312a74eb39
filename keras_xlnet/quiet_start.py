"""Leaves out what TensorFlow writes to stderr when it is imported, about oneDNN, CUDA and itself.

Upstream: the messages are written before TensorFlow's log is set up, so `TF_CPP_MIN_LOG_LEVEL` does
not stop them.
Without it: `import keras_xlnet` writes 7 lines on a machine without GPU, 4 of them with
`TF_CPP_MIN_LOG_LEVEL=3`.
Reproduction: docs/upstream.md, "`import tensorflow` writes to stderr".
Delete this file when: nothing is written.
"""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

# Of the level I, and what introduces and continues them. All else is written.
_START_MESSAGE = re.compile(
    r"WARNING: All log messages before absl::InitializeLog"
    r"|I\d{4} .*(port|cudart_stub|cpu_feature_guard|cuda_platform)\.cc:"
    r"|To enable the following instructions: "
)


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Leaves out TensorFlow's messages of its start from what a block writes to stderr.

    All else is written after the block. With the environment variable `TF_CPP_MIN_LOG_LEVEL=0`
    nothing is left out.
    """
    try:
        terminal = None if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0" else os.dup(2)
    except OSError:  # There is no stderr.
        terminal = None
    if terminal is None:
        yield
        return
    _flush()
    try:
        with tempfile.TemporaryFile() as written:
            os.dup2(written.fileno(), 2)
            try:
                yield
            finally:
                _flush()
                os.dup2(terminal, 2)
                written.seek(0)
                for line in written.read().splitlines(keepends=True):
                    if not _START_MESSAGE.match(line.decode(errors="replace")):
                        os.write(2, line)
    finally:
        os.close(terminal)


def _flush():
    if sys.stderr is not None:
        sys.stderr.flush()

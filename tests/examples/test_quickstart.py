"""The quickstart as its users run it: a process of its own, in a folder of its own."""

import re
import subprocess
import sys

import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401, for the kernels of the tokenizer

from tests.examples import EXAMPLES

README = EXAMPLES.parent / "README.md"


def run(folder, *command):
    result = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=420,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def labels_of(folder, *texts):
    """The labels that the only SavedModel below `folder` gives to texts."""
    (path,) = folder.glob("runs/quickstart/*")
    served = tf.saved_model.load(path).signatures["serving_default"]
    return served(text=tf.constant(texts))["label"].numpy().tolist()


def test_quickstart_writes_a_model_that_knows_plain_cases(tmp_path):
    printed = run(tmp_path, EXAMPLES / "quickstart.py")
    assert "[b'spam' b'ham']" in printed
    texts = ["Congratulations! You have won a prize, call 0900 555 0123 now", "see you at six"]
    assert labels_of(tmp_path, *texts) == [b"spam", b"ham"]


def test_code_of_the_readme_runs_from_a_clone(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    run(tmp_path, "-c", code)
    assert labels_of(tmp_path, "see you at six") == [b"ham"]


@pytest.mark.parametrize("name", ["spam", "test", "quickstart"])
def test_commands_of_the_readme_are_targets_of_make(name):
    assert f"make {name}" in README.read_text(encoding="utf-8")
    assert f"\n{name}: " in (README.parent / "Makefile").read_text(encoding="utf-8")

"""Arguments that several commands have."""

import argparse
from typing import Any

from keras_xlnet.checkpoints import TASKS, detect_task
from keras_xlnet.types import PathLike

# The formats that a flag is for, and what an error calls them.
_OF_FORMAT = {
    "config_file": ("original", "original checkpoints"),
    "task_name": ("original", "original checkpoints"),
    "sample_texts": ("bert", "a BERT"),
    "num_heads": ("keras_xlnet_h5", "files of the old keras-xlnet"),
}


def arguments_of_format(arguments: argparse.Namespace, format: str) -> dict[str, Any]:
    """Returns the flags that are for one format, as arguments of its function.

    Raises:
        ValueError: If there are any for another format.
    """
    given = {name: getattr(arguments, name, None) for name in _OF_FORMAT}
    given = {name: value for name, value in given.items() if value is not None}
    wrong = [name for name in given if _OF_FORMAT[name][0] != format]
    if wrong:
        raise ValueError(f"{wrong} are for {_OF_FORMAT[wrong[0]][1]}, not for {format}")
    return given


def task_of(choice: str | None, path: PathLike, format: str | None) -> str | None:
    """Returns the task that a value of `--task` means for a path, `None` for a backbone.

    Raises:
        ValueError: If there is no such task.
    """
    known = ("auto", "backbone", *TASKS)
    if choice not in known:
        raise ValueError(f"--task must be one of {', '.join(known)}. Received: {choice!r}")
    if choice == "backbone":
        return None
    return detect_task(path, format) if choice == "auto" else choice

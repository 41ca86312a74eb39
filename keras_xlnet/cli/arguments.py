"""Arguments that several commands have."""

import argparse
from typing import Any

from keras_xlnet.checkpoints import TASKS, detect_task
from keras_xlnet.types import PathLike


def original_arguments(arguments: argparse.Namespace, format: str) -> dict[str, Any]:
    """Returns the values of `--config_file` and `--task_name`, as arguments of `load_original`.

    Raises:
        ValueError: If there are any, and the format is another one.
    """
    given = {"config_file": arguments.config_file, "task_name": arguments.task_name}
    given = {key: value for key, value in given.items() if value is not None}
    if given and format != "original":
        raise ValueError(f"{sorted(given)} are for original checkpoints, not for {format}")
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

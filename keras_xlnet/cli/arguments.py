"""Arguments that several commands have."""

import argparse
import warnings
from typing import Any

import keras

from keras_xlnet.checkpoints import TASKS, detect_format, detect_task
from keras_xlnet.checkpoints.formats import FAMILIES, check_format
from keras_xlnet.types import PathLike


def load_keras_file(path: str) -> keras.Model:
    """Returns the model in a `.keras` file, which will not be trained."""
    with warnings.catch_warnings():
        # Without a loss, the state of the optimizer has no place.
        warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
        return keras.saving.load_model(path, compile=False)


def format_of(choice: str | None, path: PathLike) -> str:
    """Returns the format that was chosen for a path, by default the one that its files have.

    Raises:
        ValueError: If there is no such format.
    """
    return detect_format(path) if choice is None else check_format(choice)


def arguments_of_format(arguments: argparse.Namespace, format: str) -> dict[str, Any]:
    """Returns the flags that are for one format, as arguments of its function.

    Raises:
        ValueError: If there are any for another format.
    """
    owners = {flag: family for family in FAMILIES.values() for flag in family.flags}
    given = {name: getattr(arguments, name, None) for name in owners}
    given = {name: value for name, value in given.items() if value is not None}
    wrong = [name for name in given if owners[name].name != format]
    if wrong:
        raise ValueError(f"{wrong} are for {owners[wrong[0]].files}, not for {format}")
    return {name: owners[name].flags[name](value) for name, value in given.items()}


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

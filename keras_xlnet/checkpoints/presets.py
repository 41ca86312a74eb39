"""Presets of this package, as a format of checkpoints."""

import pathlib
import types
from typing import Any

import keras

from keras_xlnet.checkpoints.family import Family, loads
from keras_xlnet.checkpoints.huggingface_tokenizer import read_if_there
from keras_xlnet.checkpoints.opening import OpenCheckpoint
from keras_xlnet.checkpoints.tasks import BACKBONE, TASKS, get_task
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preset_files import file_in, shipped_directory
from keras_xlnet.preset_files.files import CONFIG, VOCABULARY, read_json
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.types import PathLike


def located(path: PathLike) -> pathlib.Path:
    """Returns the directory of a preset that comes with the package; other paths as they are."""
    return shipped_directory(path) or pathlib.Path(path)


@loads
def _load(path, task=None, **overrides):
    get_task(task)
    if task is None:
        # Also of a class that is not in the table.
        name = read_json(file_in(located(path), CONFIG)).get("registered_name")
        found = _tasks_by_class().get(str(name))
    else:
        found = _detect_task(located(path))
    model = (TASKS[found] if found else BACKBONE).model.from_preset(path, **overrides)
    if task not in (None, found):
        raise ValueError(f"{path} is a preset for the task {found!r}, not {task!r}")
    # `from_preset` has assigned all weights, and refuses files with missing or unused ones.
    files = types.SimpleNamespace(shapes={})
    return OpenCheckpoint(model if task == found else backbone_of(model), files, [], set())


def _detect_task(path):
    file = file_in(path, CONFIG)
    name, tasks = str(read_json(file).get("registered_name")), _tasks_by_class()
    if name not in tasks:
        raise ValueError(
            f"{file} holds a {name!r}, expected one of {sorted(tasks)}. Its backbone can be loaded "
            "without a head, with `task=None` (`--task backbone` of the command)"
        )
    return tasks[name]


def _tasks_by_class():
    """Returns the names of tasks by the names of classes in presets."""
    tasks = ((None, BACKBONE), *TASKS.items())
    return {keras.saving.get_registered_name(task.model): name for name, task in tasks}


def _save(model: Any, directory: PathLike, tokenizer: XLNetTokenizer | None = None) -> None:
    model.save_to_preset(directory, tokenizer=tokenizer)


def _read_tokenizer(directory):
    if not (directory / VOCABULARY).exists():
        return None
    return XLNetTokenizer.from_preset(directory)


PRESET = Family(
    "preset",
    owner="The preset format",
    files="presets",
    detect=lambda path: "registered_name" in read_if_there(path, CONFIG),
    load=_load,
    save=_save,
    detect_task=_detect_task,
    has_task=lambda task: True,
    tokenizer=_read_tokenizer,
)

"""Which preset and adapter of the package a model was trained from: what their cards say."""

import pathlib
from typing import Any

from keras_xlnet.preset_files import shipped
from keras_xlnet.preset_files.adapter import CARD, CONFIG
from keras_xlnet.preset_files.files import VOCABULARY, read_json
from keras_xlnet.preset_files.model_card import data_section
from keras_xlnet.preset_files.shipped import ADAPTERS, TRAINED_FROM, adapters, presets
from keras_xlnet.types import PathLike


def write_origin(name: str | None, directory: PathLike) -> None:
    """Writes the `trained_from` of a backbone to the directory of its assets, unless `None`."""
    if name is not None:
        (pathlib.Path(directory) / TRAINED_FROM).write_text(name, encoding="utf-8")


def read_origin(directory: PathLike | None) -> str | None:
    """Returns what `write_origin` wrote, otherwise `None`."""
    file = None if directory is None else pathlib.Path(directory) / TRAINED_FROM
    return file.read_text(encoding="utf-8") if file is not None and file.exists() else None


def origin_of(model: Any) -> dict[str, Any]:
    """Returns what the package knows about the data that a model was trained on.

    Args:
        model: A backbone, a task model or a language model.

    Returns:
        A dict with `preset` and `adapter`, which the model was trained from, each a dict of its
        `name`, its `description`, its `figures`, perhaps `task_arguments`, and `data`, the section
        of its card; or `None` if it is not known or does not come with the package.

    Example:

    >>> from keras_xlnet.preset_files.origin import origin_of
    >>> origin_of(keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32))
    {'preset': None, 'adapter': None}
    """
    preset = model.trained_from
    adapter = {f"{ADAPTERS}/{name}": name for name in adapters()}.get(preset)
    if adapter is not None:
        preset = read_json(shipped.FOLDER / preset / CONFIG)["base"]["preset"]
    return {
        "preset": _facts(preset, presets(), shipped.FOLDER),
        "adapter": _facts(adapter, adapters(), shipped.FOLDER / ADAPTERS),
    }


def preset_of_vocabulary(sha256: str) -> str | None:
    """Returns the name of the preset of the package that has a vocabulary, `None` for others."""
    names = (name for name, info in presets().items() if info["sha256"][VOCABULARY] == sha256)
    return next(names, None)


def _facts(name, infos, folder):
    if name not in infos:
        return None
    card = (folder / name / CARD).read_text(encoding="utf-8")
    kept = ("description", "figures", "task_arguments")
    facts = {key: infos[name][key] for key in kept if key in infos[name]}
    return {"name": name, **facts, "data": data_section(card)}

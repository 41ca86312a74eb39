"""Which preset and adapter of the package a model comes from: what their cards say."""

from typing import Any

from keras_xlnet.preset_files.adapter import CARD, CONFIG, WEIGHTS
from keras_xlnet.preset_files.adapter_weights import (
    base_of,
    head_weights,
    sha256_in_file,
    sha256_of_weights,
)
from keras_xlnet.preset_files.files import read_json
from keras_xlnet.preset_files.model_card import data_section
from keras_xlnet.preset_files.recorded_vocabulary import VOCABULARY
from keras_xlnet.preset_files.shipped import (
    adapter_directory,
    adapters,
    presets,
    shipped_directory,
)


def origin_of(model: Any) -> dict[str, Any]:
    """Returns what the package knows about the data that a model was trained on.

    A preset is found by the weights of the backbone, which training changes, unless only LoRA and
    the head are trained; an adapter by the weights of the head. The vocabulary of a preset stays.

    Args:
        model: A backbone, a task model or a language model.

    Returns:
        A dict with `preset` and `adapter`, each a dict of its `name`, its `description`, its
        `figures`, perhaps `task_arguments`, and `data`, the section of its card; or `None` for
        weights that did not come with the package.

    Example:

    >>> from keras_xlnet.preset_files.origin import origin_of
    >>> origin_of(keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32))
    {'preset': None, 'adapter': None}
    """
    adapter = _adapter_of(model) if hasattr(model, "backbone") else None
    if adapter is None:
        preset = base_of(getattr(model, "backbone", model))["preset"]
        return {"preset": _facts_of_preset(preset), "adapter": None}
    # An adapter that was merged has changed the backbone.
    directory = adapter_directory(adapter, (CONFIG, WEIGHTS))
    preset = read_json(directory / CONFIG)["base"]["preset"]
    return {
        "preset": _facts_of_preset(preset),
        "adapter": _facts(adapter, adapters()[adapter], directory),
    }


def preset_of_vocabulary(sha256: str) -> str | None:
    """Returns the name of the preset of the package that has a vocabulary, `None` for others."""
    names = (name for name, info in presets().items() if info["sha256"][VOCABULARY] == sha256)
    return next(names, None)


def _adapter_of(model):
    """The name of the adapter whose head a model has."""
    weights = head_weights(model)
    if not weights:
        return None
    shapes = {path: tuple(weight.shape) for path, weight in weights.items()}
    expected = sha256_of_weights(weights)
    for name in adapters():
        file = adapter_directory(name, (CONFIG, WEIGHTS)) / WEIGHTS
        if sha256_in_file(file, shapes) == expected:
            return name
    return None


def _facts_of_preset(name):
    directory = None if name is None else shipped_directory(name)
    return None if directory is None else _facts(name, presets()[name], directory)


def _facts(name, info, directory):
    card = (directory / CARD).read_text(encoding="utf-8")
    kept = ("description", "figures", "task_arguments")
    facts = {key: info[key] for key in kept if key in info}
    return {"name": name, **facts, "data": data_section(card)}

"""Presets and adapters that come with the package: which there are, and their files, checked."""

import collections.abc
import difflib
import html
import math
import os
import pathlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keras_xlnet.preset_files.files import file_in, read_json, sha256_of, write_json
from keras_xlnet.preset_files.locations import local_directory
from keras_xlnet.preset_files.safetensors_files import SafetensorsFiles
from keras_xlnet.types import PathLike

FOLDER = pathlib.Path(__file__).parent.parent / "shipped"
INFO = "preset.json"
_WITHOUT_DIGEST = (INFO, "README.md")
# The beginnings of the names of released XLNets, and their owners on the Hugging Face Hub. The
# config of those of `xlnet` has another form of gelu than the one that they were trained with.
_RELEASED = {"xlnet-base-cased": "xlnet", "xlnet-large-cased": "xlnet", "chinese-xlnet-": "hfl"}
# What else the tasks of adapters are called.
_CALLED = {"ner": "names"}
# In `FOLDER`. It is no preset, so it has no `INFO`.
ADAPTERS = "adapters"
# The key of `origin_recorded` in files of weights.
TRAINED_FROM = "trained_from"


def presets() -> "Presets":
    """Returns the presets that come with the package, for `from_preset("name")`.

    Returns:
        A mapping from the name of a preset to a dict of its `description`, its number of
        `parameters`, the `bytes` of its files, measured `figures` by name, the `sha256` of
        its files, and perhaps `task_arguments`, which `from_preset` gives a task model that has
        them. Printed, it is a table. `keras_xlnet/shipped/NAME/README.md` is the model
        card.

    Example:

    >>> presets = keras_xlnet.presets()
    >>> all(info["bytes"] <= 45e6 for info in presets.values())
    True
    """
    return Presets(_infos(FOLDER), "presets")


def adapters() -> "Presets":
    """Returns the adapters that come with the package, for `load_adapter("name")`.

    Returns:
        A mapping from the name of an adapter to a dict as in `presets`. Printed, it is a
        table. `keras_xlnet/shipped/adapters/NAME/README.md` is the card, which names the class of
        the model and the preset that the adapter belongs to.

    Example:

    >>> adapters = keras_xlnet.adapters()
    >>> all(info["bytes"] <= 3e6 for info in adapters.values())
    True
    """
    return Presets(_infos(FOLDER / ADAPTERS), "adapters")


def _infos(folder):
    files = sorted(folder.glob(f"*/{INFO}"))
    return {file.parent.name: read_json(file) for file in files}


class Presets(collections.abc.Mapping):
    """A mapping from names to dicts that describe presets or adapters, printed as a table."""

    def __init__(self, infos: dict[str, dict[str, Any]], kind: str) -> None:
        self._infos = infos
        self.kind = kind

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self._infos[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __repr__(self) -> str:
        if not self:
            return _none(self.kind)
        rows = self._rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in rows
        ]
        about = [f"{name}: {info['description']}" for name, info in self.items()]
        return "\n".join([*lines, "", *about])

    def _repr_html_(self):
        rows = [*self._rows(), ["description", *(info["description"] for info in self.values())]]
        cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
        return "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"

    def _rows(self):
        """Returns rows of strings: a column for each preset."""
        infos = self.values()
        figures = dict.fromkeys(name for info in infos for name in info["figures"])
        return [
            ["", *self],
            ["parameters", *(f"{info['parameters']:,}" for info in infos)],
            ["size", *(f"{info['bytes'] / 1e6:.1f} MB" for info in infos)],
            *([name, *(str(info["figures"].get(name, "")) for info in infos)] for name in figures),
        ]


def shipped_directory(location: PathLike) -> pathlib.Path | None:
    """Returns the directory of a preset that comes with the package, `None` for other locations.

    Args:
        location: Any location. Only a string can be the name of a preset: a `pathlib.Path` and
            `"./name"` are directories.

    Raises:
        FileNotFoundError: If a file of the preset is missing.
        ValueError: If the sha256 of a file is not the one that it was shipped with.
    """
    return _directory_of_name(location, FOLDER, "preset")


def _directory_of_name(location, folder, kind):
    names = {path.parent.name for path in folder.glob(f"*/{INFO}")}
    if not isinstance(location, str) or location not in names:
        return None
    if os.path.isdir(location):
        warnings.warn(
            f"location={location!r} is the {kind} that comes with the package. The directory of "
            f"that name is {os.path.join('.', location)!r}",
            stacklevel=5,
        )
    directory = folder / location
    for name, expected in read_json(directory / INFO)["sha256"].items():
        file = file_in(directory, name)
        found = sha256_of(file)
        if found != expected:
            raise ValueError(
                f"{file} is damaged: its sha256 is {found}, expected {expected}. Install the "
                "package again"
            )
    return directory


def origin_recorded(directory: PathLike, metadata: Mapping[str, str]) -> str | None:
    """Returns the preset or adapter of the package that weights were trained from.

    Args:
        directory: Path of the preset or adapter that the weights are in.
        metadata: Dict of the strings in the file of the weights.

    Returns:
        `"NAME"` for a preset and `"adapters/NAME"` for an adapter: the directory itself if it comes
        with the package, otherwise what the file records. `None` if neither is known.
    """
    directory = pathlib.Path(directory)
    if directory.parent in (FOLDER, FOLDER / ADAPTERS):
        return directory.relative_to(FOLDER).as_posix()
    return metadata.get(TRAINED_FROM)


def recommended_arguments(directory: pathlib.Path) -> dict[str, Any]:
    """Returns the arguments of task models that a preset is best used with.

    Args:
        directory: Path of a preset. Only presets of the package have recommendations.
    """
    file = directory / INFO
    return read_json(file).get("task_arguments", {}) if file.exists() else {}


def preset_directory(
    location: PathLike, required: Sequence[str], optional: Sequence[str] = ()
) -> pathlib.Path:
    """Returns a directory on this machine with the files of a preset.

    Args:
        location: Name of a preset that comes with the package, or a location as in
            `local_directory`.
        required, optional: As in `local_directory`.

    Returns:
        A `pathlib.Path`.

    Raises:
        FileNotFoundError: As in `local_directory`. The message lists the presets that come with
            the package.
        ConnectionError, ImportError, ValueError: As in `local_directory` and `shipped_directory`.

    Example:

    >>> keras_xlnet.preset_files.preset_directory("xlnet_samll_en", ["config.json"])
    Traceback (most recent call last):
    FileNotFoundError: `location`: there is no directory xlnet_samll_en...
    """
    shipped = shipped_directory(location)
    return shipped or _local(location, presets, required, optional)


def adapter_directory(location: PathLike, required: Sequence[str]) -> pathlib.Path:
    """Returns a directory on this machine with the files of an adapter.

    Args:
        location: Name of an adapter that comes with the package, or a location as in
            `local_directory`.
        required: As in `local_directory`.

    Returns:
        A `pathlib.Path`.

    Raises:
        FileNotFoundError: As in `local_directory`. The message lists the adapters that come with
            the package.
        ConnectionError, ImportError, ValueError: As in `local_directory` and `shipped_directory`.
    """
    shipped = _directory_of_name(location, FOLDER / ADAPTERS, "adapter")
    return shipped or _local(location, adapters, required)


def _local(location, known, required, optional=()):
    """As `local_directory`. An error lists the names that `known` returns."""
    try:
        return local_directory(location, required, optional)
    except FileNotFoundError as error:
        if "://" in os.fspath(location):
            raise
        raise FileNotFoundError(
            f"{error}. {_of_the_hub(location)}{_of_the_other_kind(location, known())}"
            f"{_names_like(location, known())}"
        ) from None


def write_preset_info(
    directory: PathLike,
    description: str,
    figures: dict[str, Any],
    task_arguments: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Writes the `preset.json` of a preset or adapter that is to come with the package.

    Args:
        directory: Path of its files. They must not change afterwards, except for `README.md`.
        description: String of one line.
        figures: Dict from what was measured to a number or a string.
        task_arguments: Optional dict of arguments of task models, the defaults of `from_preset`.

    Returns:
        The dict that was written: see `presets`.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32).save_to_preset(directory)
    >>> info = keras_xlnet.preset_files.write_preset_info(directory, "Random", {"F1": 0.5})
    >>> info["parameters"], sorted(info["sha256"])
    (3136, ['config.json', 'model.safetensors'])
    """
    directory = pathlib.Path(directory)
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    files = {path.relative_to(directory).as_posix(): path for path in files}
    files = {name: path for name, path in files.items() if name not in _WITHOUT_DIGEST}
    weights = SafetensorsFiles(directory.glob("*.safetensors"), directory)
    info = {
        "description": description,
        "parameters": sum(map(math.prod, weights.shapes.values())),
        "bytes": sum(path.stat().st_size for path in files.values()),
        "figures": figures,
        "sha256": {name: sha256_of(path) for name, path in files.items()},
    }
    if task_arguments:
        info["task_arguments"] = task_arguments
    write_json(directory / INFO, info, ensure_ascii=False)
    return info


def _of_the_hub(location):
    """A sentence on how to load a released XLNet, empty for other names."""
    name = pathlib.PurePath(location).name.lower()
    owner = next((owner for model, owner in _RELEASED.items() if name.startswith(model)), None)
    if owner is None:
        return ""
    activation = ", activation='gelu_tanh'" if owner == "xlnet" else ""
    return (
        "It is a model of transformers, which `keras_xlnet.checkpoints.load_huggingface("
        f"'hf://{owner}/{name}'{activation})` loads, with `task=` for a task model. "
    )


def _of_the_other_kind(location, known):
    """A sentence on the name of a preset in the place of an adapter, or the other way round."""
    if known.kind == "presets" and location in adapters():
        return f"It is an adapter: `Task.from_preset(adapter={location!r})` loads it. "
    if known.kind == "adapters" and location in presets():
        return f"It is a preset: `from_preset({location!r})` loads it. "
    return ""


def _none(kind):
    return f"No {kind} come with this version of the package"


def _names_like(location, known):
    names = list(known)
    if not names:
        return _none(known.kind)
    name = os.fspath(location)
    close = difflib.get_close_matches(_CALLED.get(name.lower(), name), names)
    names = [*close, *(other for other in names if other not in close)]
    question = f"Did you mean {close[0]!r}? " if close else ""
    listed = ", ".join(map(repr, names))
    return f"{question}{known.kind.capitalize()} that come with the package: {listed}"

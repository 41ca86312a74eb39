"""Files of a directory that need not be trusted, and their replacement all at once."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from keras_xlnet.types import PathLike

#: The files of a preset.
CONFIG, WEIGHTS = "config.json", "model.safetensors"
TOKENIZER, VOCABULARY = "tokenizer.json", "assets/spiece.model"


def file_in(directory: PathLike, name: str) -> pathlib.Path:
    """Returns the path of a file after checking that it is inside a directory.

    A downloaded directory may contain symlinks to any path, and lists of files that name any path.
    Symlinks into `blobs` of a huggingface_hub cache are allowed: its snapshots consist of them.

    Args:
        directory: Path of the directory.
        name: Path of the file below it, such as `"assets/spiece.model"`.

    Returns:
        A `pathlib.Path`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If `name` or a symlink points outside `directory`.

    Example:

    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (directory / "config.json").write_text("{}")
    >>> keras_xlnet.preset_files.file_in(directory, "config.json").name
    'config.json'
    """
    directory, name = pathlib.Path(directory), pathlib.PurePath(name)
    path = directory / name
    if name.is_absolute() or ".." in name.parts:
        raise ValueError(f"{str(name)!r} is outside the directory {directory}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing")
    target, root = path.resolve(), directory.resolve()
    if not any(target.is_relative_to(allowed) for allowed in (root, *_hub_blobs(root))):
        raise ValueError(f"{path} is a symlink to {target}, which is outside its directory")
    return path


def read_json(file: PathLike, kind: type = dict) -> Any:
    """Returns the dict, or the list, in a JSON file.

    Args:
        file: Path of the file.
        kind: `dict` or `list`.

    Raises:
        ValueError: If the file is not JSON or holds something else. The message names the file.
    """
    try:
        value = json.loads(pathlib.Path(file).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON: {error}") from error
    if not isinstance(value, kind):
        name = "object" if kind is dict else "array"
        raise ValueError(f"{file} must hold a JSON {name}, not {quoted(value)}")
    return value


def write_json(file: PathLike, value: Any, **options: Any) -> None:
    """Writes JSON to a file. `options` are of `json.dumps`, with `indent=2` by default."""
    text = json.dumps(value, **{"indent": 2, **options}) + "\n"
    pathlib.Path(file).write_text(text, encoding="utf-8")


def sha256_of(file: PathLike) -> str:
    """Returns the SHA-256 of the content of a file, in hexadecimal."""
    return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()


def quoted(value: Any) -> str:
    """Returns the `repr` of a value, cut to a length that fits in an error message."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


@contextlib.contextmanager
def replace_files(
    directory: PathLike, names: Sequence[str] | None = None
) -> Iterator[pathlib.Path]:
    """Replaces files of a directory when all of their new versions are written.

    Yields a new folder to write into. If the block succeeds, the files and folders in it take the
    place of the files with the same names in `directory`; other files of `directory` stay. If it
    raises, `directory` is not changed.

    Args:
        directory: Path of the directory. It is created if it does not exist.
        names: Optional list of the names (such as `"config.json"` or `"assets/spiece.model"`) that
            belong together. Then exactly these are replaced, and those that were not written are
            removed from `directory`. The first name is what makes the directory complete: it is
            removed first and put in place last, so that a process that is killed in between
            leaves a directory without it. `None`: whatever was written, one entry after the other.

    Yields:
        A `pathlib.Path`.

    Example:

    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> with keras_xlnet.preset_files.replace_files(directory) as folder:
    ...     _ = (folder / "notes.txt").write_text("new")
    >>> (directory / "notes.txt").read_text()
    'new'
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    # Inside of `directory`, so that files are renamed and not copied.
    staging = pathlib.Path(tempfile.mkdtemp(prefix=".saving-", dir=directory))
    new, old = staging / "new", staging / "old"
    new.mkdir()
    old.mkdir()
    try:
        yield new
        if names is None:
            names = sorted(path.name for path in new.iterdir())
        else:
            _move(directory / names[0], old / "0")
        for number, name in enumerate(reversed(names), 1):
            source, target = new / name, directory / name
            # A file takes the place of a file in one step; a folder cannot.
            if target.is_dir() or not source.is_file():
                _move(target, old / str(number))
            if source.exists():
                target.parent.mkdir(exist_ok=True)
                os.replace(source, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _move(path, target):
    if path.exists() or path.is_symlink():
        os.replace(path, target)


def _hub_blobs(root):
    """Yields `models--owner--name/blobs` for `models--owner--name/snapshots/REVISION`."""
    for folder in (root, *root.parents):
        repository = folder.parent.parent
        if folder.parent.name == "snapshots" and repository.name.startswith("models--"):
            yield repository / "blobs"

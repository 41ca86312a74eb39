"""Finds the files of a model: on this machine, on the Hugging Face Hub, on a web server."""

import os
import pathlib
import re
import types
from collections.abc import Sequence

from keras_xlnet.lazy_modules import requires_extra
from keras_xlnet.preset_files.web import url_directory
from keras_xlnet.types import PathLike

HUB_URI = r"hf://(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>\S+))?"
_HUB = re.compile(
    rf"(?:{HUB_URI}"
    r"|https://huggingface\.co/(?P<page>[\w.-]+/[\w.-]+)(?:/(?:tree|resolve)/(?P<branch>[^\s?#]+))?)"
)


def local_directory(
    location: PathLike, required: Sequence[str], optional: Sequence[str] = ()
) -> pathlib.Path:
    """Returns a directory on this machine with the files of a model, downloaded if necessary.

    Args:
        location: Path of a directory; `"hf://owner/name"`, `"hf://owner/name@revision"` or
            `"https://huggingface.co/owner/name"` on the Hugging Face Hub; or any other `http` or
            `https` URL of a folder.
        required: Names of files that must exist, such as `"config.json"`.
        optional: Names, or patterns (`"*.safetensors"`, on the Hub only), of files to download if
            they exist.

    Returns:
        A `pathlib.Path`. The files of a local directory are not checked here: use `file_in`.

    Raises:
        FileNotFoundError: If there is no such directory, repository, revision or required file.
        ConnectionError: If the server does not answer and nothing was downloaded before.
        ImportError: If `location` is on the Hub and huggingface_hub is not installed.
        ValueError: If `location` is none of these.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> str(keras_xlnet.preset_files.local_directory(directory, ["config.json"])) == directory
    True
    """
    text = os.fspath(location)
    if "://" not in text:
        return _existing_directory(pathlib.Path(text))
    location = text.rstrip("/")
    repository = _HUB.fullmatch(location)
    if repository:
        name, revision, page, branch = repository.groups()
        return _hub_directory(name or page, revision or branch, [*required, *optional])
    is_hub = location.startswith(("hf://", "https://huggingface.co/"))
    if is_hub or not re.fullmatch(r"https?://[^\s/?#]+(?:/[^\s?#]*)?", location):
        raise ValueError(
            "`location` must be a directory, 'hf://owner/name', 'hf://owner/name@revision', "
            "'https://huggingface.co/owner/name', or the http(s) URL of a folder. "
            f"Received: location={text!r}"
        )
    return url_directory(location, required, optional)


def _existing_directory(path):
    if path.is_dir():
        return path
    hint = ""
    if re.fullmatch(r"[\w.-]+/[\w.-]+", str(path)):
        hint = f" (on the Hugging Face Hub it would be 'hf://{path}')"
    if path.is_file():
        hint = ", but a file: `keras.saving.load_model` loads `.keras` files"
    raise FileNotFoundError(f"`location`: there is no directory {path}{hint}")


def import_huggingface_hub(location: str) -> types.ModuleType:
    """Returns the module `huggingface_hub`.

    Raises:
        ImportError: If it is not installed. The message names the location that needs it.
    """
    with requires_extra("hub", location):
        import huggingface_hub
    return huggingface_hub


def _hub_directory(repository, revision, patterns):
    """Returns a snapshot of a repository of the Hugging Face Hub, in huggingface_hub's cache.

    A revision that is in the cache is not downloaded again. Without a network connection the last
    snapshot of the revision is used if it is complete.
    """
    location = f"hf://{repository}" + (f"@{revision}" if revision else "")
    huggingface_hub = import_huggingface_hub(location)
    from huggingface_hub import errors

    try:
        directory = huggingface_hub.snapshot_download(
            repository, revision=revision, allow_patterns=patterns
        )
    except errors.RevisionNotFoundError as error:
        raise FileNotFoundError(f"{location}: the repository has no such revision") from error
    except errors.RepositoryNotFoundError as error:  # Gated repositories too.
        raise FileNotFoundError(
            f"{location}: the Hugging Face Hub has no such repository, or it needs a login "
            "(`hf auth login`)"
        ) from error
    except Exception as error:  # Of huggingface_hub, its HTTP client or its storage client.
        raise ConnectionError(
            f"{location} cannot be downloaded, and the cache of huggingface_hub has no complete "
            f"copy of it. {type(error).__name__}: {error}"
        ) from error
    return pathlib.Path(directory)

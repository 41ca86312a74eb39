import os
import pathlib
import re

from keras_xlnet.presets.hub_directory import hub_directory
from keras_xlnet.presets.url_directory import url_directory

_HUB = re.compile(
    r"(?:hf://(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>\S+))?"
    r"|https://huggingface\.co/(?P<page>[\w.-]+/[\w.-]+)(?:/(?:tree|resolve)/(?P<branch>[^\s?#]+))?)"
)


def local_directory(location, required, optional=()):
    """A directory on this machine with the files of a model, downloaded where that is needed.

    Args:
        location: Path of a directory; `"hf://owner/name"`, `"hf://owner/name@revision"` or
            `"https://huggingface.co/owner/name"` on the Hugging Face Hub; or any other `http` or
            `https` URL of a folder.
        required: Names of files that must be there, such as `"config.json"`.
        optional: Names, or patterns (`"*.safetensors"`, on the Hub only), of files to fetch where
            they are there.

    Returns:
        A `pathlib.Path`. Local directories are not looked into: `file_in` does that.

    Raises:
        FileNotFoundError: If there is no such directory, repository, revision or required file.
        ConnectionError: If there is no answer, and no copy from an earlier download.
        ImportError: If `location` is on the Hub and huggingface_hub is not installed.
        ValueError: If `location` is none of these.
    """
    text = os.fspath(location)
    if "://" not in text:
        return _directory(pathlib.Path(text))
    location = text.rstrip("/")
    repository = _HUB.fullmatch(location)
    if repository:
        name, revision, page, branch = repository.groups()
        return hub_directory(name or page, revision or branch, [*required, *optional])
    is_hub = location.startswith(("hf://", "https://huggingface.co/"))
    if is_hub or not re.fullmatch(r"https?://[^\s/?#]+(?:/[^\s?#]*)?", location):
        raise ValueError(
            "`location` must be a directory, 'hf://owner/name', 'hf://owner/name@revision', "
            "'https://huggingface.co/owner/name', or the http(s) URL of a folder. "
            f"Received: location={text!r}"
        )
    return url_directory(location, required, optional)


def _directory(path):
    if path.is_dir():
        return path
    hint = ""
    if re.fullmatch(r"[\w.-]+/[\w.-]+", str(path)):
        hint = f" (on the Hugging Face Hub it would be 'hf://{path}')"
    raise FileNotFoundError(f"`location`: there is no directory {path}{hint}")

"""Uploads presets to the Hugging Face Hub."""

import pathlib
import re

from keras_xlnet.preset_files.files import CONFIG, TOKENIZER, WEIGHTS, file_in
from keras_xlnet.preset_files.locations import HUB_URI, import_huggingface_hub
from keras_xlnet.types import PathLike

# The files that `save_to_preset` writes. Other files of the folder are not uploaded.
_FILES = (CONFIG, WEIGHTS, TOKENIZER, "assets/*", "README.md", "preset.json", "*.png")


def upload_preset(
    location: str,
    directory: PathLike,
    private: bool | None = None,
    message: str = "Upload a preset of keras_xlnet",
) -> str:
    """Uploads a preset to the Hugging Face Hub, for `from_preset("hf://owner/name")`.

    The repository is created if it does not exist. Log in with `hf auth login`, or set `HF_TOKEN`.

    Args:
        location: `"hf://owner/name"`, or `"hf://owner/name@branch"` for a branch that exists.
        directory: Path of a preset, as `save_to_preset` writes it. Its model card, `README.md`, is
            uploaded too; files that are not of a preset are not.
        private: Bool, whether a new repository is private. `None`: as the owner's settings say.
        message: String, the message of the commit.

    Returns:
        String, the URL of the commit.

    Raises:
        FileNotFoundError: If `directory` is not a preset.
        ConnectionError: If the Hub does not answer or refuses.
        ImportError: If huggingface_hub is not installed.
        ValueError: If `location` is not as above.

    Example:

    >>> keras_xlnet.upload_preset("owner/name", "my_model")
    Traceback (most recent call last):
    ValueError: `location` must be 'hf://owner/name' or ... Received: location='owner/name'
    """
    match = re.fullmatch(HUB_URI, location) if isinstance(location, str) else None
    if match is None:
        raise ValueError(
            "`location` must be 'hf://owner/name' or 'hf://owner/name@branch'. "
            f"Received: location={location!r}"
        )
    directory = pathlib.Path(directory)
    for name in (CONFIG, WEIGHTS):
        file_in(directory, name)
    huggingface_hub = import_huggingface_hub(location)
    name, revision = match.groups()
    try:
        huggingface_hub.create_repo(name, private=private, exist_ok=True)
        commit = huggingface_hub.upload_folder(
            repo_id=name,
            folder_path=directory,
            revision=revision,
            commit_message=message,
            allow_patterns=list(_FILES),
        )
    except Exception as error:  # Of huggingface_hub, its HTTP client or its storage client.
        raise ConnectionError(
            f"{location}: the preset cannot be uploaded ({type(error).__name__}: {error})"
        ) from error
    return commit.commit_url

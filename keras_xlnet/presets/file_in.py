import pathlib


def file_in(directory, name):
    """The path of a file that really is in a directory.

    What was downloaded may hold symlinks to anywhere, and lists of files that name any path. A
    cache of huggingface_hub, which consists of symlinks to its own `blobs`, is taken as it is.

    Args:
        directory: Path of the directory.
        name: Path of the file below it, such as `"assets/spiece.model"`.

    Returns:
        A `pathlib.Path`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If `name` or a symlink leads out of `directory`.

    Example:

    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (directory / "config.json").write_text("{}")
    >>> keras_xlnet.presets.file_in(directory, "config.json").name
    'config.json'
    """
    directory, name = pathlib.Path(directory), pathlib.PurePath(name)
    path = directory / name
    if name.is_absolute() or ".." in name.parts:
        raise ValueError(f"{str(name)!r} leads out of {directory}, of which it is to be a file")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing")
    target, root = path.resolve(), directory.resolve()
    if not any(target.is_relative_to(allowed) for allowed in (root, *_hub_blobs(root))):
        raise ValueError(f"{path} is a symlink that leaves its directory: it leads to {target}")
    return path


def _hub_blobs(root):
    """`models--owner--name/blobs` for a directory in `models--owner--name/snapshots/REVISION`."""
    for folder in (root, *root.parents):
        repository = folder.parent.parent
        if folder.parent.name == "snapshots" and repository.name.startswith("models--"):
            yield repository / "blobs"

import pathlib


def hub_directory(repository, revision, patterns):
    """A snapshot of a model repository of the Hugging Face Hub, in huggingface_hub's own cache.

    A revision that is in the cache is not downloaded again. Without a network the last snapshot of
    the revision is used, if it is complete.

    Args:
        repository: `"owner/name"`.
        revision: Branch, tag or commit. `None` for `main`.
        patterns: Names or patterns of the files to fetch.

    Returns:
        A `pathlib.Path`.

    Raises:
        ImportError: If huggingface_hub is not installed.
        FileNotFoundError: If the Hub has no such repository or revision, or shows it to members.
        ConnectionError: If the Hub does not answer and there is no complete snapshot.
    """
    location = f"hf://{repository}" + (f"@{revision}" if revision else "")
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError as error:
        raise ImportError(
            f'{location} needs huggingface_hub: pip install "xlnet-keras[hub]"'
        ) from error
    try:
        directory = huggingface_hub.snapshot_download(
            repository, revision=revision, allow_patterns=list(patterns)
        )
    except errors.RevisionNotFoundError as error:
        raise FileNotFoundError(f"{location}: the repository has no such revision") from error
    except errors.RepositoryNotFoundError as error:  # gated ones, too
        raise FileNotFoundError(
            f"{location}: the Hugging Face Hub has no such repository, or shows it only to users "
            "who may see it (`hf auth login`)"
        ) from error
    except Exception as error:  # of huggingface_hub, of its HTTP client, of its storage client
        raise ConnectionError(
            f"{location} cannot be downloaded, and huggingface_hub has no complete copy of it in "
            f"its cache, which would do without a network. {type(error).__name__}: {error}"
        ) from error
    return pathlib.Path(directory)

"""Files of a folder of a web server, downloaded and kept."""

import hashlib
import json
import os
import pathlib
import shutil
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Sequence

import keras

_TIMEOUT = 30  # seconds
_VERSION_HEADERS = ("ETag", "Last-Modified", "Content-Length")
# Status codes of servers that do not support HEAD.
_NO_HEAD = (405, 501)
# Status codes of servers that cannot answer at the moment.
_BUSY = (408, 425, 429)


def url_directory(url: str, required: Sequence[str], optional: Sequence[str] = ()) -> pathlib.Path:
    """Returns a copy of the files in a folder of a web server, in `~/.keras/keras_xlnet`.

    Each call asks the server for the version of each file (`ETag`, `Last-Modified`, length). If
    one has changed, all files are downloaded again, so that a copy never mixes versions; if the
    server sends no versions, they are downloaded each time. If the server does not answer, the
    last copy is used, with a warning.

    Args:
        url: URL of the folder.
        required: Names of files that must exist.
        optional: Names of files to download if they exist. Patterns are ignored: a web server
            does not list its files.

    Returns:
        A `pathlib.Path`.

    Raises:
        FileNotFoundError: If the server does not have a required file.
        ConnectionError: If the server does not answer and there is no copy, or a download is
            interrupted.
    """
    optional = [name for name in optional if not set("*?[") & set(name)]
    cache = _cache(url, [*required, *optional])
    try:
        versions = _versions(url, required, optional)
    except ConnectionError as error:
        copy = _last_copy(cache)
        if copy is None:
            raise ConnectionError(f"{error}. There is no copy of it in {cache}") from error
        warnings.warn(f"{error}. The copy in {copy} is used", stacklevel=4)
        return copy
    copy = cache / _key(versions)
    if not copy.is_dir():
        _download(url, versions, copy)
        if _versions(url, required, optional) != versions:
            shutil.rmtree(copy, ignore_errors=True)
            raise ConnectionError(f"{url} changed while it was downloaded. Try again")
        _forget_others(cache, copy)
    return copy


def _cache(url, names):
    home = pathlib.Path(os.environ.get("KERAS_HOME") or pathlib.Path.home() / ".keras")
    return home / "keras_xlnet" / _hash([url, *names])


def _hash(value):
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:20]


def _key(versions):
    """Returns a name for a copy: the same for the same versions, a new one if some are unknown."""
    known = all(version["ETag"] or version["Last-Modified"] for version in versions.values())
    return _hash(sorted(versions.items())) if known else f"unknown-{time.time_ns()}"


def _versions(url, required, optional):
    """Returns `{name: headers that identify a version}` of the files that exist."""
    versions = {}
    for name in (*required, *optional):
        try:
            versions[name] = _version(f"{url}/{name}")
        except urllib.error.HTTPError as error:
            if error.code >= 500 or error.code in _BUSY:
                raise ConnectionError(f"{url}/{name} does not answer ({error})") from error
            if name in required:
                raise FileNotFoundError(f"{url}/{name} is missing ({error})") from error
        except (OSError, urllib.error.URLError) as error:
            raise ConnectionError(f"{url}/{name} does not answer ({error})") from error
    return versions


def _version(url, method="HEAD"):
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            return {header: response.headers.get(header) for header in _VERSION_HEADERS}
    except urllib.error.HTTPError as error:
        if method == "HEAD" and error.code in _NO_HEAD:
            return _version(url, method="GET")
        raise


def _download(url, versions, copy):
    copy.parent.mkdir(parents=True, exist_ok=True)
    partial = pathlib.Path(tempfile.mkdtemp(prefix=".partial-", dir=copy.parent))
    try:
        for name, version in versions.items():
            file = partial / name
            file.parent.mkdir(parents=True, exist_ok=True)
            _fetch(f"{url}/{name}", file, version["Content-Length"])
        if not copy.is_dir():  # Another process may have finished first.
            partial.rename(copy)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _fetch(url, file, length):
    try:
        keras.utils.get_file(
            file.name, origin=url, cache_dir=str(file.parent), cache_subdir="", extract=False
        )
    except Exception as error:  # `get_file` raises bare exceptions.
        raise ConnectionError(f"{url} cannot be downloaded ({error})") from error
    if length is not None and file.stat().st_size != int(length):
        raise ConnectionError(
            f"{url} cannot be downloaded: {file.stat().st_size} bytes of {length} were received"
        )


def _copies(cache):
    return [path for path in cache.glob("[!.]*") if path.is_dir()]


def _last_copy(cache):
    return max(_copies(cache), key=lambda path: path.stat().st_mtime, default=None)


def _forget_others(cache, copy):
    for other in _copies(cache):
        if other != copy:
            shutil.rmtree(other, ignore_errors=True)

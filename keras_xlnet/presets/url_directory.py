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

import keras

_TIMEOUT = 30  # seconds
_VERSION_HEADERS = ("ETag", "Last-Modified", "Content-Length")
# Servers that know no HEAD.
_NO_HEAD = (405, 501)
# Told by a server that is there but cannot answer now.
_BUSY = (408, 425, 429)


def url_directory(url, required, optional=()):
    """A copy of the files in a folder of a web server, in `~/.keras/keras_xlnet`.

    The server is asked each time which version of each file it has (`ETag`, `Last-Modified`,
    length). Where one is another than before, all files are downloaded again, so that a copy never
    mixes versions; a server that tells no versions is downloaded from each time. A server that
    does not answer leaves the last copy, with a warning.

    Args:
        url: URL of the folder.
        required: Names of files that must be there.
        optional: Names of files to fetch where they are there. Patterns are left out: a web server
            lists no files.

    Returns:
        A `pathlib.Path`.

    Raises:
        FileNotFoundError: If the server has not all that is required.
        ConnectionError: If the server does not answer and there is no copy, or a download breaks
            off.
    """
    optional = [name for name in optional if not set("*?[") & set(name)]
    cache = _cache(url, [*required, *optional])
    try:
        versions = _versions(url, required, optional)
    except ConnectionError as error:
        copy = _last_copy(cache)
        if copy is None:
            raise ConnectionError(f"{error}. There is no copy of it in {cache}, either") from error
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
    """A name for a copy: equal for equal versions, new each time if they are not known."""
    known = all(version["ETag"] or version["Last-Modified"] for version in versions.values())
    return _hash(sorted(versions.items())) if known else f"unknown-{time.time_ns()}"


def _versions(url, required, optional):
    """`{name: headers that tell a version}` of the files that are there."""
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
        if not copy.is_dir():  # another process may have been faster
            partial.rename(copy)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _fetch(url, file, length):
    try:
        keras.utils.get_file(
            file.name, origin=url, cache_dir=str(file.parent), cache_subdir="", extract=False
        )
    except Exception as error:  # keras raises bare exceptions here
        raise ConnectionError(f"{url} cannot be downloaded ({error})") from error
    if length is not None and file.stat().st_size != int(length):
        raise ConnectionError(
            f"{url} cannot be downloaded: {file.stat().st_size} bytes of {length} came"
        )


def _copies(cache):
    return [path for path in cache.glob("[!.]*") if path.is_dir()]


def _last_copy(cache):
    return max(_copies(cache), key=lambda path: path.stat().st_mtime, default=None)


def _forget_others(cache, copy):
    for other in _copies(cache):
        if other != copy:
            shutil.rmtree(other, ignore_errors=True)

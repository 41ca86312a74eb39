"""Loads the models of a directory and follows its changes."""

import gc
import logging
import pathlib
from typing import Any

from tensorflow_serving.apis import get_model_status_pb2

from keras_xlnet.server.request_error import RequestError
from keras_xlnet.server.served_version import ServedVersion, load_versions
from keras_xlnet.types import PathLike

_LOG = logging.getLogger(__name__)
_State = get_model_status_pb2.ModelVersionStatus.State
# Of `tensorflow.error.Code`, which the status has.
_OK, _UNKNOWN = 0, 2
# Versions are int64, as in TF Serving.
_MOST_DIGITS, _LARGEST_VERSION = 19, 2**63 - 1


class ModelStore:
    """The models of a directory, each in the newest version that can be loaded.

    The directory has the layout of TF Serving: `NAME/VERSION/saved_model.pb`, where the version is
    a number below 2^63. A SavedModel of several models is loaded once, and served by their names
    instead of `NAME`. A version that cannot be loaded is reported by `status`, and the older one
    stays. It is tried again when its files change. An older version takes its place when the newest
    is removed.

    Args:
        directory: Path.

    Raises:
        ValueError: If it is not a directory.

    Example:

    >>> import pathlib, tempfile
    >>> import tensorflow as tf
    >>> from keras_xlnet.server import ModelStore
    >>> model = tf.Module()
    >>> spec = tf.TensorSpec((None,), tf.float32, "x")
    >>> model.half = tf.function(lambda x: {"y": x / 2}, input_signature=[spec])
    >>> models = pathlib.Path(tempfile.mkdtemp())
    >>> tf.saved_model.save(model, str(models / "half" / "1"), {"serving_default": model.half})
    >>> store = ModelStore(models)
    >>> store.refresh()
    >>> store.names
    ['half']
    >>> store.get("half").run("serving_default", {"x": np.array([3.0], "float32")})
    {'y': array([1.5], dtype=float32)}
    """

    def __init__(self, directory: PathLike) -> None:
        self.directory = pathlib.Path(directory)
        if not self.directory.is_dir():
            raise ValueError(f"{directory} is not a directory")
        # By the name of the directory.
        self._current: dict[str, list[ServedVersion]] = {}
        # The files of a version that failed, and why, by the name of the directory and the number.
        self._failed: dict[tuple[str, int], tuple[Any, str]] = {}
        self._loading: tuple[str, int] | None = None

    @property
    def names(self) -> list[str]:
        """List of the names of the models that can be asked."""
        return sorted(self._served)

    @property
    def _served(self) -> dict[str, ServedVersion]:
        return {version.name: version for found in [*self._current.values()] for version in found}

    @property
    def failures(self) -> dict[tuple[str, int], str]:
        """Dict of messages, why versions could not be loaded, by name of the model and number."""
        return {key: message for key, (_, message) in self._failed.items()}

    def get(self, name: str, number: int | None = None) -> ServedVersion:
        """Returns the version of a model that answers requests.

        Args:
            name: String.
            number: Optional int, the version that it has to be.

        Raises:
            RequestError: If there is no such model, or it has another version.
        """
        version = self._served.get(name)
        if version is None or number not in (None, version.number):
            asked = f"Latest({name})" if number is None else f"Specific({name}, {number})"
            raise RequestError(f"Servable not found for request: {asked}", 404)
        return version

    def status(self, name: str, number: int | None = None) -> Any:
        """Returns a `GetModelStatusResponse` of the versions of a model, the newest first.

        Args:
            name: String.
            number: Optional int, the only version.

        Raises:
            RequestError: If there is no such model or version.
        """
        states: dict[int, tuple[int, str]] = {
            version: (_State.END, message)
            for (model, version), message in self.failures.items()
            if model == name
        }
        if self._loading and self._loading[0] == name:
            states[self._loading[1]] = (_State.LOADING, "")
        if name in self._served:
            states[self._served[name].number] = (_State.AVAILABLE, "")
        if number is not None:
            states = {version: state for version, state in states.items() if version == number}
        if not states:
            of = name if number is None else f"{name} with version {number}"
            raise RequestError(f"Could not find any versions of model {of}", 404)
        response = get_model_status_pb2.GetModelStatusResponse()
        for version, (state, message) in sorted(states.items(), reverse=True):
            status = response.model_version_status.add(version=version, state=state)
            status.status.error_code = _UNKNOWN if message else _OK
            status.status.error_message = message
        return response

    def refresh(self) -> None:
        """Loads new versions, and drops models whose versions are all gone.

        A new version is complete before it takes the place of the old one; requests that run with
        the old one finish. Both are in memory for that time.
        """
        found = {path.name: _versions(path) for path in _directories(self.directory)}
        self._failed = {
            (name, number): failure
            for (name, number), failure in self._failed.items()
            if number in found.get(name, {})
        }
        for name, versions in found.items():
            self._refresh_model(name, versions)
        for name in set(self._current) - {name for name, versions in found.items() if versions}:
            _LOG.info("model %s: removed", name)
            del self._current[name]
            gc.collect()

    def _refresh_model(self, name, versions):
        for number in sorted(versions, reverse=True):
            if name in self._current and self._current[name][0].number == number:
                return
            if self._load(name, number, versions[number]):
                return

    def _load(self, name, number, directory):
        """Loads a version. Returns whether it could be loaded and is now served."""
        files = _files(directory)
        if self._failed.get((name, number), (None, ""))[0] == files:
            return False
        self._loading = (name, number)
        try:
            versions = load_versions(name, number, directory)
            self._check_names(name, versions)
            self._current[name] = versions
        except Exception as error:  # TensorFlow raises many types for the files it cannot read.
            message = " ".join(str(error).split())[:500] or type(error).__name__
            self._failed[name, number] = (files, message)
            _LOG.error("model %s: version %d cannot be loaded: %s", name, number, message)
            return False
        finally:
            self._loading = None
        self._failed.pop((name, number), None)
        served = ", ".join(version.name for version in versions)
        _LOG.info("model %s: version %d is served", served, number)
        # The graphs of the old version are in cycles of references.
        gc.collect()
        return True

    def _check_names(self, directory, versions):
        others = {
            version.name: other
            for other, found in self._current.items()
            for version in found
            if other != directory
        }
        for version in versions:
            if version.name in others:
                raise ValueError(f"{others[version.name]} has a model {version.name} already")


def _directories(path):
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))


def _versions(path):
    """Directories of SavedModels by their numbers."""
    return {
        int(p.name): p
        for p in _directories(path)
        if _is_version(p.name) and (p / "saved_model.pb").exists()
    }


def _is_version(name):
    digits = name.lstrip("0")
    is_number = name.isascii() and name.isdecimal() and len(digits) <= _MOST_DIGITS
    return is_number and int(name) <= _LARGEST_VERSION


def _files(directory):
    """State that changes with the files of a directory."""
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in paths)

"""The record of a checkpoint family: all that this package knows about one format."""

import dataclasses
import functools
import inspect
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec

P = ParamSpec("P")


def loads(open: Callable[P, Any]) -> Callable[P, Any]:
    """Makes a function that opens a checkpoint one that loads it. `Family.open` is the original."""

    @functools.wraps(open)
    def load(*args: P.args, **kwargs: P.kwargs) -> Any:
        return open(*args, **kwargs).load()

    return load


@dataclasses.dataclass(frozen=True)
class Family:
    """A format of checkpoints, and the functions that find, read and write its files.

    A family is one file with such a record at its end, and one line in `FAMILIES` (`formats.py`).

    Args:
        name: The name of the format, as in `load_checkpoint(path, format)`.
        owner: What errors call the implementation.
        files: What errors call its checkpoints.
        detect: Function of a path that exists, or of the prefix of a checkpoint. Returns whether
            the files there are in this format.
        load: Function of a path, the name of a task or `None`, and overrides. Returns the model. It
            is made by `loads` from a function that returns an `OpenCheckpoint`, or another object
            with `model`, `unused()`, `missing_of_encoder()`, `missing_of_head()` and `load()`.
        save: Function of a model, a directory and `tokenizer`. `None` if the format is only read.
        detect_task: Function of a path. Returns the name of the task, or `None` for an encoder.
        has_task: Function of a `CheckpointTask`. Returns whether the format has such a model.
        tokenizer: Function of a directory. Returns its `XLNetTokenizer`, or `None` if it has no
            vocabulary. `None` if there is no tokenizer, or none that can be read.
        no_tokenizer: Why the tokenizer cannot be read, and what to do. Empty if there is none.
        left_out: Function of a model. Returns what the format cannot say about it.
        convert: Function of a path and overrides that returns an object with `backbone` and
            `tokenizer`, printed as a report, for models that become an XLNet. `None` for others.
        flags: Options of the command `xlnet` for this format. Each key is an argument of `load`,
            each value the function that converts the option to that argument.
    """

    name: str
    owner: str
    files: str
    detect: Callable[[pathlib.Path], bool]
    load: Callable[..., Any]
    save: Callable[..., None] | None = None
    detect_task: Callable[[pathlib.Path], str | None] = lambda path: None
    has_task: Callable[[Any], Any] = lambda task: False
    tokenizer: Callable[[pathlib.Path], Any] | None = None
    no_tokenizer: str = ""
    left_out: Callable[[Any], list[str]] = lambda model: []
    convert: Callable[..., Any] | None = None
    flags: Mapping[str, Callable[[Any], Any]] = dataclasses.field(default_factory=dict)

    @property
    def open(self) -> Callable[..., Any]:
        """Function of the arguments of `load`. Returns the open checkpoint."""
        return inspect.unwrap(self.load)

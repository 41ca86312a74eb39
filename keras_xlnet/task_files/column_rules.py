"""Rules for the values of columns: texts, numbers, integers, classes."""

import dataclasses
import math
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from keras_xlnet.task_files.reporting import file_error, shown

_NUMBER = re.compile(r" *[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)? *", re.ASCII | re.IGNORECASE)
_INTEGER = re.compile(r" *[+-]?\d+ *", re.ASCII)


@dataclasses.dataclass(frozen=True)
class ColumnRules:
    """Converts and checks the values of columns. Arguments are as in `read_table`."""

    columns: Mapping[str, str | int]
    labels: str | None = None
    class_names: Sequence[str | int] | None = None
    numeric: Sequence[str] = ()
    integer: Sequence[str] = ()
    allow_empty: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise ValueError(
                "`columns` must be a dict from names in the result to columns of the file. "
                f"Received: {shown(self.columns)}"
            )
        for argument in ("numeric", "integer", "allow_empty"):
            self._check_names(argument, getattr(self, argument))
        both = set(self.numeric) & set(self.integer)
        if both:
            raise ValueError(
                f"`numeric` and `integer` must not share names. Received: {sorted(both)}"
            )
        if self.class_names is not None or self.labels is not None:
            self._check_names("labels", [self.label_name])
        if isinstance(self.class_names, str):
            raise ValueError(f"`class_names` must be a list. Received: {shown(self.class_names)}")

    def _check_names(self, argument, names):
        # A string is a sequence of letters: `numeric="label"` would not mean what it says.
        unknown = names if isinstance(names, str) else [x for x in names if x not in self.columns]
        if unknown:
            raise ValueError(
                f"`{argument}` must be names in `columns`, {list(self.columns)}. "
                f"Received: {shown(unknown)}"
            )

    @property
    def label_name(self) -> str:
        """The name in the result of the column of labels."""
        return "label" if self.labels is None else self.labels

    def checked(self, name: str, value: Any, path: pathlib.Path, place: str) -> Any:
        """Returns a value, converted.

        Args:
            name: Name of the column in the result.
            value: String, or what JSON has: a string, a number or a bool.
            path: The file.
            place: String, the place in it.

        Raises:
            TaskFileError: If the value is not what it has to be.
        """
        is_empty = isinstance(value, str) and not value.strip()
        if is_empty and name not in self.allow_empty:
            raise file_error(path, place, "not be empty", shown(value))
        converted = self._converted(name, value, path, place)
        if name == self.label_name and self.class_names is not None:
            if converted not in self.class_names:
                must = f"be in class_names={shown(list(self.class_names))}"
                raise file_error(path, place, must, shown(converted))
        return converted

    def _converted(self, name, value, path, place):
        if name in self.numeric:
            number = _as_number(value)
            if number is None:
                raise file_error(path, place, "be a finite number", shown(value))
            return number
        if name in self.integer:
            integer = _as_integer(value)
            if integer is None:
                raise file_error(path, place, "be an integer", shown(value))
            return integer
        return value


def _as_number(value):
    """A finite float, or `None`."""
    # `float` would also take "nan", "1_000" and digits of other scripts.
    if isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value)):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError):
        return None
    return number if math.isfinite(number) else None


def _as_integer(value):
    """An int of 64 bits, as NumPy and Keras have them, or `None`."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        # `int` refuses thousands of digits with an error of its own.
        value = int(value) if len(value) < 1000 else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(2**63) <= value < 2**63 else None

"""Checks of constructor arguments: each error names the argument, what was given and expected."""

import math
import numbers
from collections.abc import Sequence
from typing import Any


def check_positive_int(name: str, value: Any) -> int:
    """Returns `value` if it is an int above 0, otherwise raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
    return value


def check_rate(name: str, value: Any) -> float:
    """Returns `value` if it is a dropout rate (0 <= rate < 1), otherwise raises `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a dropout rate, 0 <= rate < 1. Received: {name}={value!r}"
        )
    return value


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Returns `value` if it is one of `choices`, otherwise raises `ValueError`."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {choices}. Received: {name}={value!r}")
    return value


def check_number(name: str, value: Any, low: float = 0, high: float = math.inf) -> float:
    """Returns `value` as a float if it is from `low` to `high`, otherwise raises `ValueError`."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or math.isinf(value):
        expected = f"{low} or above" if math.isinf(high) else f"from {low} to {high}"
        raise ValueError(f"`{name}` must be a number, {expected}. Received: {name}={value!r}")
    return float(value)

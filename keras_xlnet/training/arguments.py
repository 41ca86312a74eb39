"""Checks of constructor arguments: each error names the argument, what was given and expected."""

import math
import numbers


def check_number(name, value, low=0, high=math.inf):
    """Returns `value` as a float if it is a number from `low` to `high`, else raises ValueError."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high or math.isinf(value):
        expected = f"{low} or above" if math.isinf(high) else f"from {low} to {high}"
        raise ValueError(f"`{name}` must be a number, {expected}. Received: {name}={value!r}")
    return float(value)

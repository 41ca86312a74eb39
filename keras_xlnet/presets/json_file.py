"""JSON files that need not be trusted."""

import json
import pathlib


def read_json(file):
    """The dict in a JSON file.

    Raises:
        ValueError: If it is none. The message names the file.
    """
    try:
        value = json.loads(pathlib.Path(file).read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{file} must hold a JSON object, not {quoted(value)}")
    return value


def quoted(value):
    """How an error shows a value of unknown size."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

"""The JSON of TF Serving's REST interface, to arrays and back.

Source: `tensorflow_serving/g3doc/api_rest.md` and `tensorflow_serving/util/json_tensor.cc`.
"""

import base64
import binascii
import json
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_xlnet.server.request_error import RequestError

_DEFAULT_SIGNATURE = "serving_default"
_SHOWN = 60
# Deeper lists would overflow the stack of the functions that go through them.
_MAX_RANK = 16


class PredictRequest(NamedTuple):
    """A request to a signature.

    Args:
        signature_name: String.
        inputs: Dict of arrays by name. Strings are arrays of bytes with the dtype object.
        is_row_format: Whether the rows came as `instances`, so that they go back as `predictions`.
    """

    signature_name: str
    inputs: dict[str, np.ndarray]
    is_row_format: bool


def parse_request(
    body: bytes, specs_of: Callable[[str], Mapping[str, tf.TensorSpec]]
) -> PredictRequest:
    """Parses the body of a `:predict` request.

    Args:
        body: Bytes, JSON in UTF-8.
        specs_of: Function from the name of a signature to the specs of its inputs.

    Raises:
        RequestError: If the body is something else, or does not fit the signature.

    Example:

    >>> import tensorflow as tf
    >>> from keras_xlnet.server.json_tensors import parse_request
    >>> specs = {"text": tf.TensorSpec((None,), tf.string)}
    >>> parse_request(b'{"instances": ["a", {"b64": "/w=="}]}', lambda name: specs).inputs
    {'text': array([b'a', b'\\xff'], dtype=object)}
    """
    return parse_fields(parse_json(body), specs_of)


def parse_fields(
    fields: Mapping[str, Any], specs_of: Callable[[str], Mapping[str, tf.TensorSpec]]
) -> PredictRequest:
    """Does the same for the object of the body."""
    name = fields.get("signature_name", _DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise RequestError(f"`signature_name` must be a string. Received: {shown(name)}")
    specs = specs_of(name or _DEFAULT_SIGNATURE)
    if ("instances" in fields) == ("inputs" in fields):
        raise RequestError(
            f"A request must have either 'instances' or 'inputs'. Received: {shown(fields)}"
        )
    is_row_format = "instances" in fields
    columns = _rows(fields["instances"], specs) if is_row_format else _columns(fields, specs)
    inputs = {key: _array(key, columns[key], spec) for key, spec in specs.items()}
    return PredictRequest(name or _DEFAULT_SIGNATURE, inputs, is_row_format)


def format_response(outputs: Mapping[str, np.ndarray], is_row_format: bool) -> bytes:
    """Returns the body of an answer.

    Args:
        outputs: Dict of arrays by name.
        is_row_format: Whether the answer has `predictions`, a list of rows, or `outputs`.

    Raises:
        RequestError: If rows are asked for and the outputs have different numbers of rows.

    Example:

    >>> import numpy as np
    >>> from keras_xlnet.server.json_tensors import format_response
    >>> outputs = {"label": np.array([b"ham"], object), "values": np.array([0.5], "float32")}
    >>> format_response(outputs, is_row_format=True)
    b'{"predictions": [{"label": "ham", "values": 0.5}]}'
    """
    columns = {name: _plain(name, value) for name, value in outputs.items()}
    if not is_row_format:
        return _json({"outputs": _single_or(columns)})
    if len({np.shape(value)[:1] for value in outputs.values()} - {()}) != 1 or not all(
        map(np.ndim, outputs.values())
    ):
        raise RequestError(
            f"The outputs {', '.join(columns)} have different numbers of rows: send 'inputs' "
            "instead of 'instances'"
        )
    rows = zip(*columns.values(), strict=True)
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    return _json({"predictions": [_single_or(row) for row in named]})


def _single_or(columns):
    """The only value of a dict, or the dict."""
    return next(iter(columns.values())) if len(columns) == 1 else columns


def _json(value):
    return json.dumps(value, ensure_ascii=False).encode()


# === Requests ===


def parse_json(body: bytes) -> dict[str, Any]:
    """Returns the object of a body, JSON in UTF-8.

    Raises:
        RequestError: If the body is something else.
    """
    try:
        fields = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestError(f"The body is not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise RequestError("The body is nested too deeply") from None
    except ValueError as error:  # With the place, or a number of too many digits.
        raise RequestError(f"The body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise RequestError(f"The body must be a JSON object. Received: {shown(fields)}")
    return fields


def _rows(rows, specs):
    """Columns of the rows `instances`: values of a single input, or objects."""
    if not isinstance(rows, list) or not rows:
        raise RequestError(f"'instances' must be a list with values. Received: {shown(rows)}")
    are_objects = [_is_object(row) for row in rows]
    if len(specs) == 1 and not any(are_objects):
        return dict.fromkeys(specs, rows)
    for row, is_object in zip(rows, are_objects, strict=True):
        if not is_object or set(row) != set(specs):
            raise RequestError(
                f"Each of 'instances' must be an object with {', '.join(specs)}. "
                f"Received: {shown(row)}"
            )
    return {name: [row[name] for row in rows] for name in specs}


def _columns(fields, specs):
    columns = fields["inputs"]
    if not _is_object(columns) and len(specs) == 1:
        columns = dict.fromkeys(specs, columns)
    if not _is_object(columns) or set(columns) != set(specs):
        raise RequestError(
            f"'inputs' must be an object with {', '.join(specs)}. Received: {shown(columns)}"
        )
    return columns


def _is_object(value):
    return isinstance(value, dict) and not _is_binary(value)


def _is_binary(value):
    return isinstance(value, dict) and [*value] == ["b64"] and isinstance(value["b64"], str)


def _array(name, value, spec):
    """An array of nested lists, of the type and shape of `spec`."""
    converted = _converted(name, value, _rank(value), _converter(spec.dtype))
    dtype = spec.dtype.as_numpy_dtype
    try:
        with np.errstate(over="raise"):
            array = np.array(converted, dtype)
    except (ValueError, OverflowError, FloatingPointError) as error:
        raise RequestError(f"`{name}` is no tensor of {spec.dtype.name}: {error}") from None
    if array.ndim != _rank(value) or not spec.shape.is_compatible_with(array.shape):
        expected = "different" if spec.shape.rank is None else str(tuple(spec.shape))
        raise RequestError(
            f"`{name}` must have shape {expected}, with lists of equal lengths. "
            f"Received: shape {array.shape} from {shown(value)}"
        )
    return array


def _rank(value):
    rank = 0
    while isinstance(value, list):
        rank += 1
        value = value[0] if value else None
    return rank


def _converted(name, value, rank, convert):
    if rank > _MAX_RANK:
        raise RequestError(f"`{name}` is nested too deeply")
    if rank == 0:
        return convert(name, value)
    if not isinstance(value, list):
        raise RequestError(f"`{name}` must have lists of equal depth. Received: {shown(value)}")
    return [_converted(name, item, rank - 1, convert) for item in value]


def _converter(dtype):
    if dtype == tf.string:
        return _to_bytes
    if dtype == tf.bool:
        return _check_type(bool, "true or false")
    if dtype.is_integer:
        return _check_type(numbers.Integral, "an integer")
    return _check_type(numbers.Real, "a number")


def _check_type(expected, description):
    def check(name, value):
        # In Python a bool is an integer.
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            raise RequestError(f"`{name}` must be {description}. Received: {shown(value)}")
        return value

    return check


def _to_bytes(name, value):
    if isinstance(value, str):
        # Half of a surrogate pair is no character: U+FFFD, as for bytes that are not UTF-8.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    if not _is_binary(value):
        raise RequestError(
            f"`{name}` must be a string, or an object with 'b64'. Received: {shown(value)}"
        )
    try:
        return base64.b64decode(value["b64"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"`{name}` is not base64: {error}") from None


def shown(value: Any) -> str:
    """Returns what an error shows of a value of JSON."""
    # Not `json.dumps`, which fails on deep nesting and on half of a surrogate pair.
    if value is None:
        return "null"
    if isinstance(value, (list, dict)):
        kind = "a list" if isinstance(value, list) else "an object"
        keys = f" with {', '.join(map(ascii, value))}" if isinstance(value, dict) and value else ""
        return _cut(f"{kind} of {len(value)}{keys}")
    return _cut(ascii(value))


def _cut(text):
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


# === Answers ===


def _plain(name: str, value: np.ndarray) -> Any:
    """Nested lists of what JSON has."""
    if value.dtype != object:
        return value.tolist()
    # TF Serving takes such outputs for bytes, all others for UTF-8.
    to_json = _binary if name.endswith("_bytes") else _text
    return _mapped(value.tolist(), to_json)


def _mapped(value: Any, function: Callable[[bytes], Any]) -> Any:
    is_list = isinstance(value, Sequence) and not isinstance(value, bytes)
    return [_mapped(item, function) for item in value] if is_list else function(value)


def _binary(value):
    return {"b64": base64.b64encode(value).decode()}


def _text(value):
    return value.decode("utf-8", "replace")

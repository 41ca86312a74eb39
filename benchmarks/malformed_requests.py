"""Requests that a server has to refuse, from a seeded generator.

    import numpy as np
    from benchmarks.malformed_requests import malformed_request

    rng = np.random.default_rng(0)
    method, path, body = malformed_request(rng, "spam")

Each has one fault of those in `FAULTS`; what is around it is drawn. The model takes strings `text`.
"""

import json
import string

import numpy as np

_VALUES = [None, True, False, 0, -1, 2.5, 1e300, 10**30, [], {}, [[]], [["a"]], {"b64": 1}, {"": 0}]


def malformed_request(rng: np.random.Generator, model: str) -> tuple[str, str, bytes]:
    """Returns the method, the path and the body of a request that has to be refused.

    Args:
        rng: `np.random.Generator`.
        model: String, the name of a model that the server has.
    """
    fault = FAULTS[rng.integers(len(FAULTS))]
    made = fault(rng, model)
    if isinstance(made, tuple):
        return made
    body = made if isinstance(made, bytes) else json.dumps(made).encode()
    return "POST", f"/v1/models/{model}:predict", body


def random_text(rng: np.random.Generator, most: int = 40) -> str:
    """Returns words, other characters, or none."""
    alphabet = [*string.ascii_letters, " ", " ", "\u00e9", "\u4f60", "\U0001f600", "\n", "\0", '"']
    return "".join(rng.choice(alphabet, rng.integers(most)))


def _texts(rng):
    return [random_text(rng) for _ in range(rng.integers(1, 5))]


def _garbage(rng, _):
    # UTF-8 has no such byte.
    return b"\xff" + rng.bytes(int(rng.integers(200)))


def _cut(rng, _):
    data = json.dumps({"instances": _texts(rng)}).encode()
    return data[: rng.integers(len(data))]


def _more(rng, _):
    return json.dumps({"instances": _texts(rng)}).encode() + b"}"


def _invalid_utf8(rng, _):
    data = json.dumps({"instances": [f"x{random_text(rng)}"]}).encode()
    place = data.index(b"x")
    return data[:place] + bytes([rng.integers(0x80, 0xC0)]) + data[place:]


def _nested(rng, _):
    depth = int(rng.integers(1, 20_000))
    return b'{"instances": ' + b"[" * (depth + 1) + b'"a"' + b"]" * (depth + 1) + b"}"


def _long_number(rng, _):
    return b'{"instances": [' + b"7" * int(rng.integers(1, 9000)) + b"]}"


def _no_object(rng, _):
    return [_VALUES[rng.integers(len(_VALUES))]]


def _wrong_value(rng, _):
    rows = _texts(rng)
    rows[rng.integers(len(rows))] = _VALUES[rng.integers(len(_VALUES))]
    key = ["instances", "inputs"][rng.integers(2)]
    return {key: rows}


def _wrong_rows(rng, _):
    return {"instances": _VALUES[rng.integers(len(_VALUES))]}


def _wrong_names(rng, _):
    name = f"x{random_text(rng)}"
    if rng.integers(2):
        return {"instances": [{name: "a"}]}
    return {"inputs": {"text": ["a"], name: ["a"]}}


def _no_or_both_keys(rng, _):
    if rng.integers(2):
        return {random_text(rng) + "_": _texts(rng)}
    return {"instances": _texts(rng), "inputs": _texts(rng)}


def _no_base64(rng, _):
    return {"instances": [{"b64": "*" + random_text(rng)}]}


def _wrong_signature(rng, _):
    names = [f"x{random_text(rng)}", 1, None, [], {}, True]
    return {"signature_name": names[rng.integers(len(names))], "instances": _texts(rng)}


def _too_many_rows(rng, _):
    return {"instances": ["a"] * int(rng.integers(1025, 3000))}


def _wrong_path(rng, model):
    paths = [
        "/v1/models/none:predict",
        f"/v1/models/{model}/versions/999999:predict",
        f"/v1/models/{model}/versions/x:predict",
        f"/v1/models/{model}/versions/{10**40}:predict",
        f"/v1/models/{model}:classify",
        f"/v1/models/{model}",
        "/v1/models/%00%ff:predict",
        "/v1/models/..%2f..%2fetc:predict",
        "/v1",
        f"/{'x' * int(rng.integers(1, 2000))}",
    ]
    body = json.dumps({"instances": _texts(rng)}).encode()
    return "POST", paths[rng.integers(len(paths))], body


def _wrong_method(rng, model):
    methods = ["PUT", "DELETE", "PATCH", "OPTIONS"]
    return methods[rng.integers(len(methods))], f"/v1/models/{model}:predict", b""


#: The kinds of faults: functions of a generator and the name of a model.
FAULTS = [
    _garbage,
    _cut,
    _more,
    _invalid_utf8,
    _nested,
    _long_number,
    _no_object,
    _wrong_value,
    _wrong_rows,
    _wrong_names,
    _no_or_both_keys,
    _no_base64,
    _wrong_signature,
    _too_many_rows,
    _wrong_path,
    _wrong_method,
]

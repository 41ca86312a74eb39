"""Requests that a server has to refuse, from a seeded generator.

    import numpy as np
    from benchmarks.malformed_requests import malformed_request

    rng = np.random.default_rng(0)
    method, path, body = malformed_request(rng, "spam")

Each has one of the faults in `FAULTS`; the rest is random. The model takes strings `text`.
"""

import json
import string

import numpy as np

_VALUES = [None, True, False, 0, -1, 2.5, 1e300, 10**30, [], {}, [[]], [["a"]], {"b64": 1}, {"": 0}]
_METHODS = ["PUT", "DELETE", "PATCH", "OPTIONS"]


def malformed_request(rng: np.random.Generator, model: str) -> tuple[str, str, bytes]:
    """Returns the method, path and body of a request that has to be refused.

    Args:
        rng: `np.random.Generator`.
        model: String, the name of a model that the server has.
    """
    made = _one_of(rng, FAULTS)(rng, model)
    if isinstance(made, tuple):
        return made
    body = made if isinstance(made, bytes) else json.dumps(made).encode()
    return "POST", f"/v1/models/{model}:predict", body


def random_text(rng: np.random.Generator, most: int = 40) -> str:
    """Returns random characters, or an empty string."""
    alphabet = [*string.ascii_letters, " ", " ", "\u00e9", "\u4f60", "\U0001f600", "\n", "\0", '"']
    return "".join(rng.choice(alphabet, rng.integers(most)))


def _one_of(rng, values):
    return values[rng.integers(len(values))]


def _texts(rng):
    return [random_text(rng) for _ in range(rng.integers(1, 5))]


def _body(rng):
    return json.dumps({"instances": _texts(rng)}).encode()


def _cut(rng, _):
    data = _body(rng)
    return data[: rng.integers(len(data))]


def _invalid_utf8(rng, _):
    data = json.dumps({"instances": [f"x{random_text(rng)}"]}).encode()
    place = data.index(b"x")
    return data[:place] + bytes([rng.integers(0x80, 0xC0)]) + data[place:]


def _nested(rng, _):
    depth = int(rng.integers(1, 20_000)) + 1
    return b'{"instances": ' + b"[" * depth + b'"a"' + b"]" * depth + b"}"


def _wrong_value(rng, _):
    rows = _texts(rng)
    rows[rng.integers(len(rows))] = _one_of(rng, _VALUES)
    return {_one_of(rng, ["instances", "inputs"]): rows}


def _wrong_names(rng, _):
    name = f"x{random_text(rng)}"
    return _one_of(rng, [{"instances": [{name: "a"}]}, {"inputs": {"text": ["a"], name: ["a"]}}])


def _no_or_both_keys(rng, _):
    if rng.integers(2):
        return {random_text(rng) + "_": _texts(rng)}
    return {"instances": _texts(rng), "inputs": _texts(rng)}


def _wrong_signature(rng, _):
    names = [f"x{random_text(rng)}", 1, None, [], {}, True]
    return {"signature_name": _one_of(rng, names), "instances": _texts(rng)}


def _wrong_path(rng, model):
    paths = [
        "/v1/models/none:predict", f"/v1/models/{model}/versions/999999:predict",
        f"/v1/models/{model}/versions/x:predict",
        f"/v1/models/{model}/versions/{10**40}:predict", f"/v1/models/{model}:classify",
        f"/v1/models/{model}", "/v1/models/%00%ff:predict", "/v1/models/..%2f..%2fetc:predict",
        "/v1", f"/{'x' * int(rng.integers(1, 2000))}",
    ]  # fmt: skip
    return "POST", _one_of(rng, paths), _body(rng)


#: The kinds of faults: functions of a generator and the name of a model.
FAULTS = [
    lambda rng, _: b"\xff" + rng.bytes(int(rng.integers(200))),  # UTF-8 has no such byte.
    _cut,
    lambda rng, _: _body(rng) + b"}",
    _invalid_utf8,
    _nested,
    lambda rng, _: b'{"instances": [' + b"7" * int(rng.integers(1, 9000)) + b"]}",
    lambda rng, _: [_one_of(rng, _VALUES)],
    _wrong_value,
    lambda rng, _: {"instances": _one_of(rng, _VALUES)},
    _wrong_names,
    _no_or_both_keys,
    lambda rng, _: {"instances": [{"b64": "*" + random_text(rng)}]},
    _wrong_signature,
    lambda rng, _: {"instances": ["a"] * int(rng.integers(1025, 3000))},
    _wrong_path,
    lambda rng, model: (_one_of(rng, _METHODS), f"/v1/models/{model}:predict", b""),
]

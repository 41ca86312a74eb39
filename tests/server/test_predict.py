"""Requests for predictions: formats, types, and errors of one line."""

import base64
import json
import urllib.error

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.running_server import serve
from tests.serving.conftest import PAIRS, preprocessor, spam  # noqa: F401, fixtures

TEXTS = ["a b", "caf\u00e9", "", "\U0001f600 c"]


def b64(data):
    return {"b64": base64.b64encode(data).decode()}


def test_rows_of_values_and_of_objects_and_columns(client):
    size = [float(len(text.encode())) for text in TEXTS]
    raw = [b64(text.encode()) for text in TEXTS]
    rows = [
        {"label": text, "raw_bytes": r, "rows": 4, "size": s}
        for text, r, s in zip(TEXTS, raw, size, strict=True)
    ]
    assert client.predict("texts", {"instances": TEXTS}) == (200, {"predictions": rows})
    named = {"instances": [{"text": text} for text in TEXTS]}
    assert client.predict("texts", named) == (200, {"predictions": rows})
    columns = {"outputs": {"label": TEXTS, "raw_bytes": raw, "rows": [4] * 4, "size": size}}
    assert client.predict("texts", {"inputs": {"text": TEXTS}}) == (200, columns)
    assert client.predict("texts", {"inputs": TEXTS}) == (200, columns)
    assert client.predict("texts", {"inputs": []})[1]["outputs"]["label"] == []


def test_pairs_and_bytes_that_are_no_utf8(client):
    body = {"signature_name": "pair", "instances": [{"text": b64(b"\xff"), "pair": "b"}]}
    assert client.predict("texts", body) == (200, {"predictions": ["\ufffd|b"]})
    # Half of a surrogate pair does not fail the other rows.
    status, answer = client.request("/v1/models/texts:predict", b'{"instances": ["\\ud800x", "c"]}')
    assert status == 200
    assert [row["label"] for row in json.loads(answer)["predictions"]] == ["\ufffdx", "c"]
    body = {"instances": [b64(b"\xff\x00"), "c"]}
    rows = client.predict("texts", body)[1]["predictions"]
    assert rows[0]["raw_bytes"] == b64(b"\xff\x00")
    assert [row["size"] for row in rows] == [2, 1]


@pytest.mark.parametrize("number", [0.1, 3, -1e30, float("inf"), float("nan")])
def test_types(client, number):
    body = {"flag": [True], "ids": [[1, -(2**31)]], "number": [number]}
    status, answer = client.predict("texts", {"signature_name": "types", "inputs": body})
    assert status == 200
    assert answer["outputs"]["flag"] == [True]
    assert answer["outputs"]["ids"] == [[1, -(2**31)]]
    np.testing.assert_array_equal(answer["outputs"]["number"], np.float32([number]))


@pytest.mark.parametrize(
    "body, message",
    [
        (b"", "is not JSON"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"{", "is not JSON"),
        (b"[1]", "must be a JSON object. Received: a list of 1"),
        (b'{"instances": [' + b"9" * 5000 + b"]}", "is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"instances": ' + b"[" * 300 + b"]" * 300 + b"}", "`text` is nested too deeply"),
        ({}, "either 'instances' or 'inputs'. Received: an object of 0"),
        ({"text": ["a"]}, "either 'instances' or 'inputs'. Received: an object of 1 with 'text'"),
        ({"instances": ["a"], "inputs": ["a"]}, "either 'instances' or 'inputs'"),
        ({"instances": []}, "must be a list with values"),
        ({"instances": "a"}, "must be a list with values. Received: 'a'"),
        ({"instances": [1]}, "`text` must be a string, or an object with 'b64'. Received: 1"),
        ({"instances": [None]}, "or an object with 'b64'. Received: null"),
        ({"instances": ["a", ["b"]]}, "`text` must be a string, or an object"),
        ({"instances": [["a"], "b"]}, "must have lists of equal depth. Received: 'b'"),
        ({"instances": [["a"], ["b"]]}, "`text` must have shape (None,)"),
        ({"instances": [{"b64": "?"}]}, "`text` is not base64"),
        ({"instances": [{"b64": "\u00e9"}]}, "`text` is not base64"),
        ({"instances": [{"b64": 1}]}, "must be an object with text"),
        ({"instances": [{"txt": "a"}]}, "must be an object with text. Received: an object of 1"),
        ({"instances": [{"text": "a", "more": 1}]}, "must be an object with text"),
        ({"instances": ["a", {"text": "a"}]}, "must be an object with text. Received: 'a'"),
        ({"inputs": {"txt": ["a"]}}, "'inputs' must be an object with text"),
        ({"inputs": "a"}, "`text` must have shape (None,)"),
        ({"signature_name": 1, "instances": ["a"]}, "`signature_name` must be a string"),
        ({"signature_name": "no", "instances": ["a"]}, "has no signature 'no' but choices"),
        ({"signature_name": "pair", "instances": ["a"]}, "an object with pair, text"),
        ({"signature_name": "choices", "inputs": {"text": ["a"], "choices": [["b"], ["c", "d"]]}},
         "`choices` must have shape (None, None)"),
        ({"signature_name": "split", "instances": ["a", "b c"]}, "different numbers of rows"),
        ({"signature_name": "types", "inputs": {"flag": [1], "ids": [[1, 2]], "number": [1]}},
         "`flag` must be true or false. Received: 1"),
        ({"signature_name": "types", "inputs": {"flag": [True], "ids": [[1, 2]], "number": [True]}},
         "`number` must be a number. Received: True"),
        ({"signature_name": "types", "inputs": {"flag": [True], "ids": [[1, 2.5]], "number": [1]}},
         "`ids` must be an integer. Received: 2.5"),
        ({"signature_name": "types", "inputs": {"flag": [True], "ids": [[1, 2**40]], "number": []}},
         "`ids` is no tensor of int32"),
        ({"signature_name": "types", "inputs": {"flag": [True], "ids": [[1]], "number": [1]}},
         "`ids` must have shape (None, 2)"),
        ({"signature_name": "types", "inputs": {"flag": [True], "ids": [[1, 2]], "number": [1e39]}},
         "`number` is no tensor of float32"),
        ({"signature_name": "static", "inputs": []}, "static takes the same number of rows"),
        ({"signature_name": "static", "instances": [["a"]]}, "`text` must have shape (None,)"),
    ],
)  # fmt: skip
def test_errors(client, body, message):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, content = client.request("/v1/models/texts:predict", data)
    answer = json.loads(content)
    assert status == 400
    assert [*answer] == ["error"] and message in answer["error"]
    assert "\n" not in answer["error"] and len(answer["error"]) < 300


def test_what_the_model_refuses(client):
    status, answer = client.predict("half_plus_three", {"instances": [1.0, -1.0]})
    assert status == 400
    assert answer["error"].startswith(
        "The model refuses the inputs: assertion failed: [x must not be negative"
    )
    pair = {"text": ["a"], "pair": ["b", "c"]}
    assert client.predict("texts", {"signature_name": "pair", "inputs": pair}) == (
        400,
        {"error": "The model refuses the inputs: Input shapes do not match: [1] vs. [2]"},
    )


@pytest.mark.parametrize(
    "path, method, status",
    [
        ("/v1/models/none", "GET", 404),
        ("/v1/models/texts/versions/2", "GET", 404),
        ("/v1/models/texts/versions/x", "GET", 404),
        (f"/v1/models/texts/versions/{9**99}", "GET", 404),
        ("/v1/models/texts/labels/stable", "GET", 404),
        ("/v1/models/none/metadata", "GET", 404),
        ("/v1/models/..%2Ftexts", "GET", 404),
        ("/v1/models/texts/versions/1.5", "GET", 404),
        (f"/v1/models/texts/versions/{'9' * 5000}", "GET", 404),
        ("/v1/models/texts/versions/9999999999999999999", "GET", 404),
        ("/v1/models/texts:predict", "GET", 405),
        ("/v1/models/texts/versions/1:predict", "PUT", 405),
        ("/v1/models/texts:classify", "POST", 405),
        ("/v1/models/texts", "DELETE", 405),
        ("/elsewhere", "GET", 404),
    ],
)
def test_paths(client, path, method, status):
    found, content = client.request(path, method=method)
    assert found == status
    assert [*json.loads(content)] == ["error"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda x: (
        st.lists(x, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "b64", "pair"]), x, max_size=2)
    ),
    max_leaves=6,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=JSON,
    key=st.sampled_from(["instances", "inputs"]),
    name=st.sampled_from(["serving_default", "pair", "types", "choices"]),
)
def test_any_json_has_an_answer(client, value, key, name):
    status, answer = client.predict("texts", {"signature_name": name, key: value})
    if status == 200:
        assert [*answer] == ["outputs" if key == "inputs" else "predictions"]
    else:
        assert status == 400 and [*answer] == ["error"] and "\n" not in answer["error"]


@pytest.mark.parametrize("texts", [["a"], ["a", "bb"], ["a", "bb", "ccc", "dddd", "eeeee"]])
def test_any_number_of_rows_of_a_signature_with_a_batch_size(client, texts):
    body = {"signature_name": "static", "instances": texts}
    assert client.predict("texts", body) == (200, {"predictions": [*map(len, texts)]})


def test_a_refused_method_says_which_are_allowed(client):
    with pytest.raises(urllib.error.HTTPError) as error:
        client.open("/v1/models/texts:predict")
    assert error.value.headers["Allow"] == "POST"


def test_a_classifier_of_the_package(spam):  # noqa: F811
    encoded = [t if isinstance(t, str) else b64(t) for t in spam.texts]
    with serve(spam.directory.parents[1]) as (client, _):
        rows = client.predict("spam", {"instances": encoded})[1]["predictions"]
        assert [row["label"] for row in rows] == spam.labels
        found = [row["probabilities"] for row in rows]
        np.testing.assert_allclose(found, spam.probabilities, atol=1e-6)
        pairs = [
            {"text": text, "pair": pair if isinstance(pair, str) else b64(pair)}
            for text, pair in zip(encoded, PAIRS, strict=True)
        ]
        body = {"signature_name": "serving_pair", "instances": pairs}
        rows = client.predict("spam", body)[1]["predictions"]
    expected = spam.model.predict((spam.texts, PAIRS), verbose=0)
    np.testing.assert_allclose([row["probabilities"] for row in rows], expected, atol=1e-6)

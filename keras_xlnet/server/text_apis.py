"""Requests of other servers' clients, as requests to signatures: OpenAI's and TEI's.

Source: the API reference of OpenAI, "Create embeddings"; the OpenAPI description of
text-embeddings-inference (TEI) 1.7, `/embed`, `/rerank` and `/predict`.
"""

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from keras_xlnet.server.json_tensors import parse_fields, shown
from keras_xlnet.server.model_store import ModelStore
from keras_xlnet.server.request_error import RequestError
from keras_xlnet.server.served_version import ServedVersion

_DEFAULT = "serving_default"
# The signature with the number of tokens of each text.
_NUM_TOKENS = "serving_num_tokens"
# The sorted inputs of the default signature, and an output, by the kind of a model.
_KINDS = {
    "an embedder": (["text"], "embedding"),
    "a ranker": (["documents", "query"], "scores"),
    "a classifier": (["text"], "probabilities"),
}


class TextRequest(NamedTuple):
    """What a request asks of a model.

    Args:
        runs: List of pairs of the name of a signature and its inputs.
        num_texts: Int.
        answer: Function from the outputs of the runs to a value of JSON.
    """

    runs: list[tuple[str, dict[str, np.ndarray]]]
    num_texts: int
    answer: Callable[[list[dict[str, np.ndarray]]], Any]


def version_of(path: str, fields: Mapping[str, Any], store: ModelStore) -> ServedVersion:
    """Returns the model that a request to a path of `TEXT_APIS` names, or the only one of its kind.

    Raises:
        RequestError: If there is no such model, or several. `/v1/embeddings` needs a name.
    """
    name, (kind, _) = fields.get("model"), TEXT_APIS[path]
    if name is None and path != OPENAI:
        names = [name for name in store.names if _is(store.get(name), kind)]
        if not names:
            raise RequestError(f"{path} needs {kind}, and none is served", 404)
        if len(names) > 1:
            raise RequestError(f"`model` must be one of {', '.join(names)}. Received: null")
        name = names[0]
    if not isinstance(name, str):
        raise RequestError(f"`model` must be the name of a model. Received: {shown(name)}")
    version = store.get(name)
    if not _is(version, kind):
        inputs, output = _KINDS[kind]
        raise RequestError(
            f"{path} needs {kind}, which takes {' and '.join(inputs)} and returns {output}. The "
            f"model {name} is {version.task}"
        )
    return version


def _is(version, kind):
    inputs, output = _KINDS[kind]
    if _DEFAULT not in version.signature_defs:
        return False
    has_inputs = [*version.input_specs(_DEFAULT)] == inputs
    return has_inputs and output in version.output_specs(_DEFAULT)


def _openai_embeddings(fields, version):
    texts = _as_list(fields.get("input"))
    if not _are_texts(texts):
        raise RequestError(
            "`input` must be a string or a list of strings, not ids of another tokenizer. "
            f"Received: {shown(fields.get('input'))}"
        )
    encoding = _option(fields, "encoding_format", "float", ("float", "base64"))
    dim = _dimensions(fields, version)
    names = [name for name in (_DEFAULT, _NUM_TOKENS) if name in version.signature_defs]

    def answer(outputs):
        rows = _cut(outputs[0]["embedding"], dim)
        rows = list(map(_base64, rows)) if encoding == "base64" else rows.tolist()
        # Other programs' exports do not count tokens.
        num_tokens = int(outputs[1]["num_tokens"].sum()) if len(outputs) > 1 else None
        return {
            "object": "list",
            "data": [
                {"object": "embedding", "index": i, "embedding": x} for i, x in enumerate(rows)
            ],
            "model": version.name,
            "usage": {"prompt_tokens": num_tokens, "total_tokens": num_tokens},
        }

    runs = [_run(version, name, {"text": texts}) for name in names]
    return TextRequest(runs, len(texts), answer)


def _tei_embed(fields, version):
    texts = _as_list(fields.get("inputs"))
    if not _are_texts(texts):
        raise RequestError(
            f"`inputs` must be a string or a list of strings. Received: {shown(texts)}"
        )
    if fields.get("prompt_name") is not None:
        prompt = version.prompts[_option(fields, "prompt_name", None, tuple(version.prompts))]
        texts = [prompt + text for text in texts]
    dim = _dimensions(fields, version)

    def answer(outputs):
        return _cut(outputs[0]["embedding"], dim).tolist()

    return TextRequest([_run(version, _DEFAULT, {"text": texts})], len(texts), answer)


def _tei_rerank(fields, version):
    query, texts = fields.get("query"), fields.get("texts")
    if not isinstance(query, str) or not _are_texts(texts):
        raise RequestError(
            "`query` must be a string and `texts` a list of strings. Received: "
            f"{shown(query)} and {shown(texts)}"
        )
    is_raw = _option(fields, "raw_scores", False, (False, True))
    has_text = _option(fields, "return_text", False, (False, True))
    run = _run(version, _DEFAULT, {"query": [query], "documents": [texts]})

    def answer(outputs):
        (scores,) = outputs[0]["scores"].astype("float64")
        values = scores if is_raw else 0.5 * (1 + np.tanh(scores / 2))  # The sigmoid.
        found = [
            {"index": int(i), "score": float(values[i])} for i in np.argsort(-scores, kind="stable")
        ]
        if has_text:
            (documents,) = run[1]["documents"]
            found = [{**each, "text": documents[each["index"]].decode()} for each in found]
        return found

    return TextRequest([run], len(texts), answer)


def _tei_predict(fields, version):
    inputs = fields.get("inputs")
    is_batch = isinstance(inputs, list) and bool(inputs) and isinstance(inputs[0], list)
    rows = inputs if is_batch else [_as_list(inputs)]
    if not all(_are_texts(row) and len(row) <= 2 for row in rows):
        raise RequestError(
            "`inputs` must be a string, a pair of strings, or a list of lists of one or two "
            f"strings. Received: {shown(inputs)}"
        )
    if _option(fields, "raw_scores", False, (False, True)):
        raise RequestError("`raw_scores` must be false: an exported classifier has probabilities")
    places, runs = [], []
    for names, signature in ((("text",), _DEFAULT), (("text", "pair"), "serving_pair")):
        if of_signature := [i for i, row in enumerate(rows) if len(row) == len(names)]:
            columns = {name: [rows[i][j] for i in of_signature] for j, name in enumerate(names)}
            places += of_signature
            runs.append(_run(version, signature, columns))

    def answer(outputs):
        found = [row for output in outputs for row in output["probabilities"].tolist()]
        ordered = [_classes(version, row) for _, row in sorted(zip(places, found, strict=True))]
        # Hugging Face's client sends `parameters`, and takes a list for each text.
        return ordered if is_batch or "parameters" in fields else ordered[0]

    return TextRequest(runs, len(rows), answer)


OPENAI = "/v1/embeddings"
#: The kind of model, and the function from the fields of a request to a `TextRequest`, by path.
TEXT_APIS: dict[str, tuple[str, Callable[[Mapping[str, Any], ServedVersion], TextRequest]]] = {
    OPENAI: ("an embedder", _openai_embeddings),
    "/embed": ("an embedder", _tei_embed),
    "/rerank": ("a ranker", _tei_rerank),
    "/predict": ("a classifier", _tei_predict),
}


def _run(version, signature_name, inputs):
    fields = {"signature_name": signature_name, "inputs": inputs}
    return signature_name, parse_fields(fields, version.row_specs).inputs


def _classes(version, probabilities):
    """The most probable class first."""
    names = version.class_names
    if len(names) != len(probabilities):  # Unknown.
        names = list(map(str, range(len(probabilities))))
    found = [
        {"score": score, "label": label} for score, label in zip(probabilities, names, strict=True)
    ]
    return sorted(found, key=lambda each: -each["score"])


def _as_list(texts):
    return [texts] if isinstance(texts, str) else texts


def _are_texts(texts):
    is_list = isinstance(texts, list) and bool(texts)
    return is_list and all(isinstance(text, str) for text in texts)


def _option(fields, name, default, choices=None):
    value = fields.get(name)
    value = default if value is None else value
    if choices is not None and value not in choices:
        names = " or ".join(map(shown, choices)) or "missing: the model has none"
        raise RequestError(f"`{name}` must be {names}. Received: {shown(value)}")
    return value


def _dimensions(fields, version):
    """How many numbers of a vector the client wants, `None` for all."""
    dim = fields.get("dimensions")
    most = version.output_specs(_DEFAULT)["embedding"].shape[-1] or math.inf
    is_int = isinstance(dim, int) and not isinstance(dim, bool)
    if dim is not None and not (is_int and 1 <= dim <= most):
        raise RequestError(f"`dimensions` must be from 1 to {most}. Received: {shown(dim)}")
    return dim


def _cut(vectors, dim):
    if dim is None:
        return vectors
    vectors = vectors[:, :dim]
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def _base64(row):
    return base64.b64encode(row.astype("<f4").tobytes()).decode()

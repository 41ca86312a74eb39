"""The requests and answers of TF Serving's REST documentation."""

import json
import pathlib

import pytest
from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

EXAMPLES = json.loads(
    pathlib.Path(__file__).with_name("tf_serving_examples.json").read_text(encoding="utf-8")
)["examples"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_examples_of_the_documentation(client, example):
    body = example.get("request")
    data = None if body is None else json.dumps(body).encode()
    status, content = client.request(example["path"], data, example["method"])
    assert (status, json.loads(content)) == (example["status"], example["response"])


def test_answers_are_the_protos(client):
    _, status = client.request("/v1/models/texts")
    parsed = json_format.Parse(status, get_model_status_pb2.GetModelStatusResponse())
    assert parsed.model_version_status[0].version == 1
    _, metadata = client.request("/v1/models/texts/versions/1/metadata")
    parsed = json_format.Parse(metadata, get_model_metadata_pb2.GetModelMetadataResponse())
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert parsed.metadata["signature_def"].Unpack(signatures)
    names = {"serving_default", "pair", "choices", "split", "static", "types"}
    assert set(signatures.signature_def) == names

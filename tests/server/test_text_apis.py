"""The routes of OpenAI and TEI, with the clients of OpenAI and Hugging Face."""

import base64
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.models import XLNetRanker, XLNetTextEmbedder
from keras_xlnet.preprocessing import XLNetRankerPreprocessor, XLNetTextEmbedderPreprocessor
from keras_xlnet.serving import export
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.server.running_server import serve
from tests.server.small_models import (
    save_answerer,
    save_embedder,
    save_named_classifier,
    save_pair_classifier,
    write_details,
)
from tests.small_models import small_backbone

TEXTS = ["the river is old", "a ship", "", "caf\u00e9 and an old bridge " * 9]


@pytest.fixture(scope="module")
def made():
    keras.utils.set_random_seed(4)
    tokenizer = XLNetTokenizer.train(iter(TEXTS * 9), vocabulary_size=40)
    backbone = small_backbone(vocabulary_size=40)
    embedder = XLNetTextEmbedder(
        backbone, XLNetTextEmbedderPreprocessor(tokenizer, 24), prompts={"query": "a ship: "}
    )
    ranker = XLNetRanker(backbone, XLNetRankerPreprocessor(tokenizer, 24))
    return {"embedder": embedder, "ranker": ranker}


@pytest.fixture(scope="module")
def client(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, model in made.items():
        export(model, folder / name / "1")
    save_named_classifier(folder / "classes" / "1")
    save_answerer(folder / "answers" / "1")
    write_details(folder / "answers" / "1", '{"model": "XLNetQuestionAnswering"}')
    with serve(folder, max_rows=8) as (client, _):
        yield client


@pytest.fixture(scope="module")
def openai_client(client):
    openai = pytest.importorskip("openai", reason="openai is not installed (extra: integrations)")
    with openai.OpenAI(base_url=f"{client.url}/v1", api_key="none", max_retries=0) as found:
        yield found


@pytest.mark.filterwarnings("ignore:.*are longer than the preprocessor takes")
@pytest.mark.parametrize("encoding", [{}, {"encoding_format": "float"}])
def test_the_client_of_openai(openai_client, made, encoding):
    expected = made["embedder"].embed(TEXTS, verbose=0)
    answer = openai_client.embeddings.create(model="embedder", input=TEXTS, **encoding)
    np.testing.assert_allclose([x.embedding for x in answer.data], expected, atol=1e-6)
    assert [x.index for x in answer.data] == [0, 1, 2, 3] and answer.model == "embedder"
    mask = made["embedder"].preprocessor.encode(TEXTS).features["padding_mask"]
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == mask.sum()
    one = openai_client.embeddings.create(model="embedder", input=TEXTS[0], dimensions=5)
    cut = expected[0, :5] / np.linalg.norm(expected[0, :5])
    np.testing.assert_allclose(one.data[0].embedding, cut, atol=1e-6)
    assert [each.id for each in openai_client.models.list()] == [
        "answers", "classes", "embedder", "ranker",
    ]  # fmt: skip


def test_errors_of_openai_are_typed(openai_client):
    import openai

    create = openai_client.embeddings.create
    with pytest.raises(openai.NotFoundError, match="Servable not found") as error:
        create(model="none", input="a")
    assert error.value.code == "model_not_found"
    for arguments, message in (
        ({"input": [[1, 2]]}, "`input` must be a string or a list of strings, not ids"),
        ({"input": []}, "`input` must be"),
        ({"input": "a", "dimensions": 17}, "`dimensions` must be from 1 to 16. Received: 17"),
        ({"input": "a", "encoding_format": "hex"}, "`encoding_format` must be 'float' or 'base64'"),
        ({"input": "a", "model": "answers"}, "needs an embedder.*The model answers is XLNetQuest"),
        ({"input": ["a"] * 9}, "A request may have 8 rows. Received: 9"),
    ):
        with pytest.raises(openai.BadRequestError, match=message) as error:
            create(**{"model": "embedder", **arguments})
        assert error.value.type == "invalid_request_error"


def test_the_client_of_hugging_face(client, made, monkeypatch):
    hub = pytest.importorskip("huggingface_hub", reason="not installed (extra: hub)")
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)  # For this machine too.
    remote = hub.InferenceClient(token="none")
    embedder = made["embedder"]
    found = remote.feature_extraction("a ship", model=f"{client.url}/embed")
    np.testing.assert_allclose(found, embedder.embed(["a ship"]), atol=1e-6)
    found = remote.feature_extraction(
        "old", prompt_name="query", dimensions=4, model=f"{client.url}/embed"
    )
    np.testing.assert_allclose(found[0], embedder.encode_query("old", truncate_dim=4), atol=1e-6)
    classes = remote.text_classification("good", model=f"{client.url}/predict?model=classes")
    assert [(each.label, each.score) for each in classes] == [("<good>", 0.75), ("bad", 0.25)]


def test_tei_embed(client, made):
    embedder = made["embedder"]
    status, found = client.post("/embed", {"inputs": TEXTS[:3], "normalize": True})
    assert status == 200
    np.testing.assert_allclose(found, embedder.embed(TEXTS[:3], verbose=0), atol=1e-6)
    assert client.post("/embed", {"inputs": TEXTS[0]}) == (200, [found[0]])


def test_tei_rerank(client, made):
    query, documents = "an old river", ["a ship", "the river is old", "\ud800"]
    scores = made["ranker"].predict([(query, [*documents[:2], "\ufffd"])], verbose=0)[0]
    order = np.argsort(-scores)
    body = {"query": query, "texts": documents}
    status, found = client.post("/rerank", body)
    assert status == 200 and [each["index"] for each in found] == order.tolist()
    sigmoid = tf.sigmoid(scores).numpy()[order]
    np.testing.assert_allclose([each["score"] for each in found], sigmoid, atol=1e-6)
    _, found = client.post("/rerank", {**body, "raw_scores": True, "return_text": True})
    np.testing.assert_allclose([each["score"] for each in found], scores[order], atol=1e-5)
    assert found[order.tolist().index(2)]["text"] == "\ufffd"


def test_tei_predict(tmp_path):
    save_pair_classifier(tmp_path / "pairs" / "1")
    with serve(tmp_path) as (client, _):

        def predict(inputs):
            return client.post("/predict", {"inputs": inputs})[1]

        equal, other = (
            [{"score": 1.0, "label": a}, {"score": 0.0, "label": b}] for a, b in ("10", "01")
        )
        assert predict("a") == other
        assert predict(["a", "a"]) == equal
        assert predict([["a", "b"], ["a"], ["b", "b"]]) == [other, other, equal]
        assert predict([["a"]]) == [other]


@pytest.mark.parametrize(
    "path, body, status, message",
    [
        ("/embed", b"{", 400, "is not JSON"),
        ("/embed", {"inputs": [1]}, 400, "`inputs` must be a string or a list of strings"),
        ("/embed", {"inputs": "a", "prompt_name": "x"}, 400, "`prompt_name` must be 'query'"),
        ("/embed", {"inputs": "a", "model": 3}, 400, "`model` must be the name of a model"),
        ("/embed?model=classes", {"inputs": "a"}, 400, "/embed needs an embedder, which takes"),
        ("/rerank", {"query": "a", "texts": []}, 400, "`texts` a list of strings"),
        ("/rerank", {"query": "a", "texts": ["b"] * 9}, 400, "may have 8 rows. Received: 9"),
        ("/rerank", {"query": "a", "texts": ["b"], "raw_scores": 2}, 400, "`raw_scores` must be"),
        ("/predict", {"inputs": ["a", "b", "c"]}, 400, "`inputs` must be a string, a pair"),
        ("/predict", {"inputs": [["a"], "b"]}, 400, "`inputs` must be a string, a pair"),
        ("/predict", {"inputs": "a", "raw_scores": True}, 400, "`raw_scores` must be false"),
        ("/predict", {"inputs": [["a", "b"]]}, 400, "has no signature 'serving_pair'"),
        ("/embed", None, 405, "Method Not Allowed"),
    ],
)  # fmt: skip
def test_errors_have_one_line(client, path, body, status, message):
    found, content = client.request(path, body)
    answer = json.loads(content)
    assert (found, [*answer]) == (status, ["error"])
    assert message in answer["error"] and "\n" not in answer["error"]


def test_a_model_that_no_request_names(tmp_path):
    save_embedder(tmp_path / "one" / "1")
    with serve(tmp_path) as (client, store):
        assert client.post("/embed", {"inputs": "aab"}) == (200, [[2.0, 1.0]])
        status, answer = client.post("/v1/embeddings", {"input": "aab", "model": "one"})
        assert answer["usage"] == {"prompt_tokens": None, "total_tokens": None}
        assert client.post("/rerank", {"query": "a", "texts": ["b"]}) == (
            404, {"error": "/rerank needs a ranker, and none is served"}
        )  # fmt: skip
        save_embedder(tmp_path / "two" / "1")
        store.refresh()
        status, answer = client.post("/embed", {"inputs": "a"})
        assert status == 400 and "`model` must be one of one, two" in answer["error"]
        assert client.post("/embed?model=two", {"inputs": "ab"}) == (200, [[1.0, 1.0]])
        metrics = client.request("/metrics")[1].decode()
        assert 'xlnet_requests_total{model="one",status="200"} 2.0' in metrics
        body = {"input": "ab", "model": "two", "dimensions": 1, "encoding_format": "base64"}
        (row,) = client.post("/v1/embeddings", body)[1]["data"]
        assert np.frombuffer(base64.b64decode(row["embedding"]), "<f4").tolist() == [1.0]

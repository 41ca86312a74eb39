"""The page to try a model. The slow tests look at it in a browser."""

import importlib.resources
import json
import pathlib
import re
import shutil
import subprocess
import urllib.parse

import pytest

from tests.server import small_models
from tests.server.running_server import serve

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def page_client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    names = ("embedder", "classifier", "named_classifier", "tagger", "answerer", "ranker", "texts")
    for name in names:
        getattr(small_models, f"save_{name}")(folder / name / "1")
    small_models.save_half_plus(folder / "half" / "1")
    with serve(folder, batch_delay=0) as (client, _):
        yield client


def test_the_page_loads_nothing_from_elsewhere(page_client):
    status, content = page_client.request("/")
    page = content.decode()
    assert status == 200 and page.startswith("<!doctype html>")
    # What a page can load. The icon is empty.
    assert re.findall(r"""(?:src|href)=["']([^"']*)""", page) == ["data:,"]
    assert not re.search(r"https?:|@import|url\(", page)


def test_every_field_has_a_label(page_client):
    page = page_client.request("/")[1].decode()
    fields = re.findall(r'<(?:select|textarea|input)[^>]* id="(\w+)"', page)
    assert fields == re.findall(r'<label for="(\w+)"', page) == ["model", "signature"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_an_answer_that_comes_late_is_not_shown_with_another_model():
    def model(outputs, *inputs):
        shape = {"dim": [{}]}
        fields = {name: {"dtype": "DT_STRING", "tensor_shape": shape} for name in inputs}
        return {"inputs": fields, "outputs": dict.fromkeys(outputs, {})}

    texts, numbers = (model([name], "text") for name in ("probabilities", "values"))
    pairs = model(["probabilities"], "text", "pair")
    models = {
        "texts": {"serving_default": texts},
        "numbers": {"numbers": numbers},
        "pairs": {"serving_default": texts, "serving_pair": pairs},
        "broken": {},
    }
    answers = {"v1/models": {"models": [*models]}, "serving_default": [0.25, 0.75], "numbers": [7]}
    for name, signatures in models.items():
        metadata = {"metadata": {"signature_def": {"signature_def": signatures}}}
        answers[f"v1/models/{name}/metadata"] = metadata
        answers[f"v1/models/{name}/classes"] = {"class_names": []}
    answers["v1/models/broken/metadata"] = {"error": "it is gone"}
    program = pathlib.Path(__file__).with_name("page_in_node.js")
    page = importlib.resources.files("keras_xlnet.server") / "page.html"
    command = ["node", str(program), str(page)]
    run = subprocess.run(
        command, input=json.dumps(answers), capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(run.stdout) == {
        "after_another_model": "",
        "of_the_other_model": "AnswerClassValuevalue7.000",
        "after_another_text": "",
        "of_a_broken_model": ["No answerit is gone", True],
        "of_a_pair": ["serving_pair", [{"text": "a", "pair": "b"}]],
        "of_a_text": "serving_default",
        "example": True,
    }


@pytest.fixture
def open_page(page_client, tmp_path):
    """A function from the fields of a query to the text of the page, and its elements."""

    def opened(**fields):
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server"]
        flags += [f"--user-data-dir={tmp_path}", "--virtual-time-budget=20000", "--dump-dom"]
        url = f"{page_client.url}/?{urllib.parse.urlencode(fields, doseq=True)}"
        run = subprocess.run([CHROMIUM, *flags, url], capture_output=True, text=True, timeout=120)
        page = run.stdout
        assert 'data-ready=""' in page, run.stderr
        return page[page.index('<section id="answer"') : page.index("<script>")]

    return opened


def rows_of(page):
    """The names and numbers of all tables with bars."""
    found = re.findall(r'<th scope="row">(.*?)</th>.*?<td class="number">(.*?)</td>', page)
    return [(name, float(number)) for name, number in found]


def rows_read(client):
    """The requests and the rows that the server has counted for the classifier."""
    text = client.request("/metrics")[1].decode()
    return [
        float(match[1])
        if (match := re.search(rf'{name}{{model="classifier".*?}} (.*)', text))
        else 0
        for name in ("xlnet_requests_total", "xlnet_batch_rows_sum")
    ]


@pytest.mark.slow
@in_a_browser
def test_a_classifier_and_its_words(page_client, open_page):
    before = rows_read(page_client)
    page = open_page(model="classifier", text="a <very> good film", explain=1)
    assert '<p class="label">good</p>' in page
    # The probabilities; then the change of each word, the largest first.
    assert rows_of(page) == [
        ("class 0", 0.125),
        ("class 1", 0.875),
        ("good", 0.5),
        ("&lt;very&gt;", 0.125),
        ("a", 0.0),
        ("film", 0.0),
    ]
    assert "5 texts in 1 request to v1/models/classifier:predict." in page
    requests, rows = (b - a for a, b in zip(before, rows_read(page_client), strict=True))
    assert (requests, rows) == (2, 1 + 5)
    # Against the class.
    assert ("not", -0.125) in rows_of(open_page(model="classifier", text="not good", explain=1))


@pytest.mark.slow
@in_a_browser
def test_names_of_classes_are_those_of_the_details(open_page):
    page = open_page(model="named_classifier", text="good", explain=1)
    assert rows_of(page)[:2] == [("bad", 0.25), ("&lt;good&gt;", 0.75)]
    assert "Change of the probability of &lt;good&gt;, 0.750, by each word" in page


@pytest.mark.slow
@in_a_browser
def test_answers_of_other_models(open_page):
    page = open_page(model="embedder", text="a", **{"second text": "ab"})
    assert rows_of(page) == [("of both texts", 0.707)]
    # Places are counted in characters, of which Python and JavaScript have different ideas.
    page = open_page(model="tagger", text="\U0001f600nna lives near Berlin.")
    assert "<mark>\U0001f600nna<b>PER</b></mark> lives near " in page
    assert rows_of(page)[0] == ("\U0001f600nna (PER)", 0.9)
    page = open_page(model="answerer", question="Who?", context="Melville wrote it.")
    assert '<p class="label">Melville</p>' in page and "<mark>Melville</mark> wrote it." in page
    assert rows_of(page) == [("Melville", 0.8), ("(none)", 0.2)]
    page = open_page(model="ranker", query="q", documents=["a", "ccc", "bb"])
    assert rows_of(page) == [("ccc", 3), ("bb", 2), ("a", 1)]
    page = open_page(model="texts", signature="pair", text="a", pair="b")
    assert '<td>"a|b"</td>' in page


@pytest.mark.slow
@in_a_browser
def test_errors_are_shown(open_page):
    page = open_page(model="half", text="a")
    assert '<p class="error">No signature of this model takes text' in page

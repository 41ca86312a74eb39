"""Pictures of attention: what is drawn is what was computed."""

import json
import re
import shutil
import subprocess

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from keras_xlnet.visualization import (
    attended_distances,
    memory_use,
    plot_attended_distances,
    plot_attention,
    plot_attention_terms,
    plot_memory_use,
    write_attention_page,
)
from tests.models.test_scoring import causal_model, permutation_model

LENGTH = 6
TOKENS = [f"t{i}" for i in range(LENGTH)]


@pytest.fixture(scope="module")
def inspection():
    """A permutation language model with two targets."""
    rng = np.random.default_rng(0)
    ranks = rng.permutation(LENGTH)[None]
    return permutation_model(30).inspect(
        {
            "token_ids": rng.integers(0, 30, (1, LENGTH)),
            "permutation_mask": ranks[:, None] < ranks[:, :, None],
            "target_positions": np.array([[4, 1]]),
        }
    )


@pytest.fixture(scope="module")
def segments():
    """Three segments that follow each other, with memory."""
    model, found, memory = causal_model(30, memory_length=8), [], {}
    for segment in np.random.default_rng(0).integers(0, 30, (3, 2, LENGTH)):
        found.append(model.inspect({"token_ids": segment, **memory}))
        memory = {key: found[-1].outputs[key] for key in ("memory", "memory_mask")}
    return found


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_a_map_shows_the_numbers(inspection):
    attention = inspection.attention(1, "query")
    for show, expected in (
        ("probabilities", attention.probabilities),
        ("scores", attention.scores),
        ("segment", attention.terms["segment"]),
    ):
        axes = plot_attention(attention, head=1, show=show, tokens=TOKENS)
        shown = axes.images[0].get_array()
        np.testing.assert_allclose(shown.data, expected[0, 1])
        np.testing.assert_array_equal(np.ma.getmaskarray(shown), ~attention.mask[0])
        assert [label.get_text() for label in axes.get_yticklabels()] == ["t4", "t1"]
        assert [label.get_text() for label in axes.get_xticklabels()] == TOKENS


def test_memory_is_before_the_text(segments):
    attention = segments[1].attention(0)
    axes = plot_attention(attention, row=1, tokens=TOKENS, memory_tokens=["$m$"] * 8)
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == [r"\$m\$"] * 8 + TOKENS
    axes.figure.canvas.draw()
    assert [label.get_text() for label in axes.get_yticklabels()] == TOKENS


def test_all_terms_are_drawn(inspection, segments):
    for attention, count in ((inspection.attention(0), 7), (segments[0].attention(0), 6)):
        figure = plot_attention_terms(attention)
        titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
        assert len(titles) == count
        assert titles[0] == "(a) content-content" and titles[-1] == "probabilities"


def test_distances_are_weighted_by_attention(segments):
    attention = segments[2].attention(1)
    slow = np.zeros(2)
    for head in range(2):
        for row in range(2):
            for i in range(LENGTH):
                for j in range(8 + LENGTH):
                    distance = abs(i - (j - 8))
                    slow[head] += distance * attention.probabilities[row, head, i, j]
    found = attended_distances(segments[2])
    np.testing.assert_allclose(found[1], slow / (2 * LENGTH), rtol=1e-5)
    axes = plot_attended_distances(segments[2])
    assert axes.texts[2].get_text() == f"{found[1, 0]:.1f}"
    with pytest.raises(ValueError, match="no attention of the 'query' stream"):
        attended_distances(segments[2], "query")


def test_memory_use_along_a_document(segments):
    shares = memory_use(segments)
    assert shares.shape == (2, 3 * LENGTH)
    np.testing.assert_array_equal(shares[:, :LENGTH], 0)  # There is no memory yet.
    assert np.all((shares[:, LENGTH:] > 0) & (shares[:, LENGTH:] < 1))
    axes = plot_memory_use(segments)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), shares[0])
    with pytest.raises(ValueError, match="at least one inspection"):
        plot_memory_use([])


def data_of(page):
    return json.loads(re.search(r"const DATA = (.*);", page)[1])


def test_the_page_has_every_number_and_needs_no_network(inspection, tmp_path):
    write_attention_page(tmp_path / "page.html", inspection, tokens=["</script>", *TOKENS[1:]])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("</script>") == 1
    assert not re.search(r"""(src|href)=|@import|url\(""", page)
    assert not set(re.findall(r"https?://[^\"]+", page)) - {"http://www.w3.org/2000/svg"}
    data = data_of(page)
    assert data["context"][0] == "</script>"
    for described, attention in zip(data["attentions"], inspection.attentions, strict=True):
        for name, term in attention.terms.items():
            np.testing.assert_allclose(described["values"][name], term[0], atol=1e-4)
        np.testing.assert_allclose(
            described["values"]["probabilities"], attention.probabilities[0], atol=1e-4
        )
    assert data["attentions"][1]["queries"] == [4, 1]


@pytest.mark.parametrize(
    "draw, message",
    [
        (lambda a, i: plot_attention(a, head=2), "`head` must be below 2"),
        (lambda a, i: plot_attention(a, row=1), "`row` below 1"),
        (lambda a, i: plot_attention(a, show="values"), "`show` must be one of"),
        (lambda a, i: plot_attention(a, tokens=["a"]), "`tokens` must be 6 strings. Received: 1"),
        (lambda a, i: plot_attention(a, memory_tokens=["a"]), "`memory_tokens` must be 0 strings"),
        (lambda a, i: write_attention_page("x", i, row=3), "`row` must be below 1"),
    ],
)
def test_bad_arguments(draw, message, inspection):
    with pytest.raises(ValueError, match=message):
        draw(inspection.attention(0), inspection)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no chromium")
def test_the_page_in_a_browser(segments, tmp_path):
    """Opens the page, chooses layer, head and term, points at a token, and reads what it shows."""
    write_attention_page(tmp_path / "page.html", segments[1], tokens=TOKENS)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    script = """<script>
      const choose = (id, value) => { byId(id).value = value;
        byId(id).dispatchEvent(new Event("change")); };
      choose("layer", 1); choose("head", 1); choose("show", 2);
      document.querySelector('[data-side="query"][data-index="3"]')
        .dispatchEvent(new Event("mouseenter"));
      document.title = JSON.stringify([byId("note").textContent, byId("map").width,
        document.querySelectorAll("line").length, byId("show").selectedOptions[0].text]);
    </script></body>"""
    (tmp_path / "clicked.html").write_text(page.replace("</body>", script), encoding="utf-8")
    flags = "--headless --no-sandbox --disable-gpu --disable-background-networking".split()
    result = subprocess.run(
        ["chromium", *flags, f"--user-data-dir={tmp_path}/profile", "--dump-dom",
         (tmp_path / "clicked.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    note, width, num_lines, title = json.loads(re.search(r"<title>(.*)</title>", result.stdout)[1])
    attention = segments[1].attention(1)
    term = np.round(attention.terms["position"][0, 1, 3].astype("float64"), 4)
    best = max(term[attention.mask[0, 3]])
    assert title == "(b) content-position"
    assert note.startswith("t3: ") and f"{best:g}" in note
    assert width > 0 and 0 < num_lines <= 8 + LENGTH

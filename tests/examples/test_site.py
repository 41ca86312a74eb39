"""The documentation site of `make docs`: what goes in is complete, and its checks find mistakes.

`make docs` builds it, with the warnings of Sphinx as errors.
"""

import re
import sys

import pytest

from tests.examples import EXAMPLES

ROOT = EXAMPLES.parent
SITE = ROOT / "docs" / "site"


@pytest.fixture(autouse=True)
def _modules_of_the_site(monkeypatch):
    monkeypatch.syspath_prepend(SITE)
    yield
    for path in SITE.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_every_picture_is_in_the_gallery_with_its_command():
    import gallery

    found = list(gallery.pictures())
    assert {path for path, *_ in found} == set((ROOT / "docs").rglob("*.png"))
    assert all(caption and command for _, caption, _, command in found)
    for *_, command in found:
        _, script, *arguments = command.split()
        if script == "-m":
            script = arguments[0].replace(".", "/") + ".py"
        assert (ROOT / script).is_file()


def test_every_public_name_has_a_page():
    import api_pages

    from keras_xlnet import layers

    pages = api_pages.api_pages()
    assert all(f"api/layers/{name}.rst" in pages for name in layers.__all__)
    assert "api/keras_xlnet/presets.rst" in pages
    assert "keras_xlnet.layers.HashDropout" in pages["api/layers/HashDropout.rst"]
    assert "('one_device'," in pages["api/training/STRATEGIES.rst"]


def test_links_of_moved_pages_lead_to_the_site():
    import pages

    found = pages.repository_pages()
    assert "](repository/README.md)" in found["models.md"]
    assert "](../../pretraining.md)" in found["repository/benchmarks/README.md"]
    assert "](../spam_classifier.md)" in found["guides/your_csv.md"]
    assert isinstance(found["overview.png"], bytes)


def test_titles_of_pages_differ():
    import api_pages
    import pages

    found = [*pages.repository_pages().items(), *api_pages.api_pages().items()]
    texts = [text for _, text in found if isinstance(text, str)]
    first = (text.removeprefix("---\norphan: true\n---\n\n").partition("\n")[0] for text in texts)
    titles = [title.removeprefix("# ") for title in first]
    assert len(titles) > 100 and len(set(titles)) == len(titles)


def test_a_search_for_a_csv_file_leads_to_the_guide():
    import gallery
    import pages

    found = {**pages.repository_pages(), "gallery.md": gallery.gallery_page()}
    headings = {
        name: re.sub("`[^`]*`", "", " ".join(re.findall("^#+ .*", text, re.MULTILINE))).lower()
        for name, text in found.items()
        if isinstance(text, str)
    }
    # The search puts words of headings before those of texts.
    for word in ("csv", "pandas"):
        assert [name for name, text in headings.items() if word in text] == ["guides/your_csv.md"]


def test_translated_pages_have_their_language():
    import page_details

    assert {path.name for path in (ROOT / "docs").iterdir()} >= set(page_details.LANGUAGES)
    context = {"language": "en"}
    page_details._set_language(None, "ko/README", "page.html", context, None)
    assert context["language"] == "ko"
    page_details._set_language(None, "index", "page.html", context := {"language": "en"}, None)
    assert context["language"] == "en"


def test_wide_pictures_scroll():
    pytest.importorskip("sphinx")  # Of the docs extra, as the site.
    import page_details

    assert page_details.is_wide(ROOT / "docs" / "overview.png")
    # What is seen first can be read on a telephone.
    assert not page_details.is_wide(ROOT / "docs" / "first_steps.png")


def test_docstrings_become_restructuredtext():
    import docstrings

    lines = [
        "Computes `a`s:",
        "",
        "    a = b",
        "",
        "Outputs, a dict:",
        "    first, second: `(batch,)`,",
        "        as ints.",
        "",
        "Returns:",
        "    A dict: `a`.",
        "",
        "Example:",
        "",
        ">>> print('`')",
        "`",
    ]
    assert docstrings.to_rst(lines) == [
        r"Computes ``a``\ s:",
        "",
        "::",
        "",
        "    a = b",
        "",
        "Outputs, a dict:",
        "",
        "- ``first``, ``second``: ``(batch,)``,",
        "  as ints.",
        "",
        ":Returns:",
        "    A dict: ``a``.",
        "",
        "Example:",
        "",
        ">>> print('`')",
        "`",
    ]


def test_broken_links_and_files_of_other_sites_are_found(tmp_path):
    import check_site

    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1><a href="b.html#here">b</a><a href="#top">a</a>'
        '<a href="https://keras.io">Keras</a><a href="c.html">c</a><a href="b.html#there">b</a>'
        '<script src="https://example.com/x.js"></script>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="here">b</p>', encoding="utf-8")
    assert check_site.broken_links(tmp_path) == [
        "a.html loads https://example.com/x.js",
        "a.html has a link to c.html: there is no such file",
        "a.html has a link to b.html#there: there is no such anchor",
    ]

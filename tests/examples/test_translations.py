"""The pages in Korean and Chinese have the code, the commands and the links of the English ones."""

import re

import pytest

from tests.examples import pages

DOCS = pages.ROOT / "docs"
LANGUAGES = {"ko": "\uac00-\ud7a3", "zh": "\u4e00-\u9fff"}
ENGLISH = {
    "README.md": pages.ROOT / "README.md",
    "how_xlnet_works.md": DOCS / "guides" / "how_xlnet_works.md",
}
FENCE = re.compile(r"^```\w*\n.*?^```$", re.DOTALL | re.MULTILINE)
TRANSLATIONS = [(language, name) for language in LANGUAGES for name in ENGLISH]


def links(page):
    """Yields the targets of the links and pictures, without those to pages with translations."""
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", pages.read(page))):
        path, mark, anchor = link.partition("#")
        if not path:
            yield "a heading of this page"
        elif "://" in path:
            yield link
        elif not is_translated(target := (page.parent / path).resolve()):
            yield pages.name_of(target) + mark + anchor


def is_translated(target):
    folders = [DOCS / language for language in LANGUAGES]
    return target in ENGLISH.values() or target.parent in folders


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_pages_are_here(language):
    assert {path.name for path in (DOCS / language).iterdir()} == set(ENGLISH)


@pytest.mark.parametrize("language, name", TRANSLATIONS)
def test_code_is_that_of_the_english_page(language, name):
    page = DOCS / language / name
    assert FENCE.findall(pages.read(page)) == FENCE.findall(pages.read(ENGLISH[name]))
    assert sorted(pages.inline_code(page)) == sorted(pages.inline_code(ENGLISH[name]))
    assert sorted(pages.commands(page)) == sorted(pages.commands(ENGLISH[name]))


@pytest.mark.parametrize("language, name", TRANSLATIONS)
def test_links_are_those_of_the_english_page(language, name):
    assert list(links(DOCS / language / name)) == list(links(ENGLISH[name]))


@pytest.mark.parametrize("language, name", TRANSLATIONS)
def test_figures_are_those_of_the_english_page(language, name):
    # Small ones may be words.
    found, expected = (
        set(re.findall(r"\d[\d.,]*\d", FENCE.sub("", pages.read(page))))
        for page in (DOCS / language / name, ENGLISH[name])
    )
    assert found == expected


@pytest.mark.parametrize("language, name", TRANSLATIONS)
def test_structure_is_that_of_the_english_page(language, name):
    # Headings, items of lists and rows of tables, each a line of its own.
    found, expected = (
        re.findall(r"^(#+|-|\|)(?= )", FENCE.sub("", pages.read(page)), re.MULTILINE)
        for page in (DOCS / language / name, ENGLISH[name])
    )
    assert found == expected


@pytest.mark.parametrize("language, name", TRANSLATIONS)
def test_links_inside_the_page_lead_to_headings(language, name):
    text = FENCE.sub("", pages.read(DOCS / language / name))
    headings = {
        re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings


@pytest.mark.parametrize("language, name", TRANSLATIONS)
def test_text_is_translated(language, name):
    letters = re.compile(f"[{LANGUAGES[language]}]")
    paragraphs = FENCE.sub("", pages.read(DOCS / language / name)).split("\n\n")
    # Commands, papers, the name of the package and the example are as they are.
    others = [text for text in paragraphs if text.strip() and not letters.search(text)]
    assert all(re.match("# keras_xlnet|## New York|    |Apache-2.0", text) for text in others)

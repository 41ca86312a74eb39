"""Figures on the pages are those of the files in the repository, or name a command."""

import itertools
import json
import math
import re
import statistics

import keras
import numpy as np
import pytest

from keras_xlnet import models, presets
from keras_xlnet.training import training_cost
from tests.examples import EXAMPLES, RESEARCH, pages

DOCS, DATA = pages.ROOT / "docs", EXAMPLES / "data"
# Tables of figures that were not measured: computed ones (test_lists_of_pages.py and below), and
# what others published.
NOT_MEASURED = ["| tokens | 1 process", "| `from_config_name`", "| source | MB", "| | XLNet-Large"]


def tables_of_figures(page):
    """Yields the section of each table that is mostly numbers, and the table."""
    for section in re.split(r"^(?=## )", pages.read(page), flags=re.MULTILINE):
        for table in re.findall(r"(?:^ *\|.*\|\n)+", section, re.MULTILINE):
            cells = [cell for row in pages.rows(table)[1:] for cell in row[1:] if cell]
            figures = [cell for cell in cells if re.match(r"[*`]*[+−-]?\d", cell)]
            if len(figures) > 0.4 * len(cells):
                yield section, table


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_measured_figures_name_a_command(page):
    # In their section or at the top of the page. test_commands.py finds out whether it is there.
    # A card has one command for all of its figures.
    is_card = "shipped" in page.parts
    beginning = pages.read(page) if is_card else pages.read(page).partition("\n## ")[0]
    for section, table in tables_of_figures(page):
        named = re.search(r"(python|make) (-m )?[\w./-]{4,}", beginning + section)
        assert named or table.lstrip().startswith(tuple(NOT_MEASURED)), table


# === Results of runs ===


def test_results_are_those_of_the_file(monkeypatch):
    monkeypatch.syspath_prepend(RESEARCH / "tasks")
    import results_report

    text = pages.read(DOCS / "results.jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    page = pages.read(DOCS / "results.md")
    assert f"all {len(rows)} runs" in page
    _, _, tables = results_report.format_report(rows).partition("\n\n")
    assert tables.strip() in page


def test_speed_of_the_readme_is_that_of_the_benchmarks():
    # The rows of training, of both machines.
    ratios = []
    for table in pages.read(pages.ROOT / "benchmarks" / "README.md").split("\n\n"):
        header, *rows = pages.rows(table) or [[]]
        if "W3" in header:
            (row,) = (row for row in rows if row[0] == "`keras_xlnet`" and "**" in "".join(row))
            ratios += [float(row[header.index(name)].strip("*")) for name in ("W3", "W4", "W4m")]
    assert len(ratios) == 6
    claim = f"training is {1 / max(ratios):.1f} to {1 / min(ratios):.0f} times as fast"
    assert claim in " ".join(pages.read(pages.ROOT / "README.md").split())


def test_speed_in_the_guide_is_that_of_the_language_models_page():
    rows = pages.rows(pages.section(DOCS / "language_models.md", "| attention length |", "\n\n"))
    speeds = {row[0]: (row[3].rstrip("x"), row[4].rstrip("x")) for row in rows}
    (ours, papers), (last_of_ours, last_of_papers) = speeds["800"], speeds["3,800"]
    guide = " ".join(pages.read(DOCS / "guides" / "how_xlnet_works.md").split())
    assert f"{ours} times as fast at an attention length of 800, {last_of_ours} times" in guide
    assert f"the paper has {papers} and {last_of_papers} for" in guide


def test_differences_to_the_original_are_of_tests_that_exist():
    for row in pages.rows(pages.section(DOCS / "accuracy.md", "| compared with"))[1:]:
        room, _, name = row[0].partition(": ")
        files = (pages.ROOT / "tests" / room).glob("*.py")
        assert any(f"def test_{name.replace(' ', '_')}(" in pages.read(file) for file in files), row


# === The shipped preset ===


def test_figures_of_the_shipped_preset():
    info = presets()["xlnet_small_en"]
    card = pages.ROOT / "keras_xlnet" / "shipped" / "xlnet_small_en" / "README.md"
    found = {
        f"bits per character, {row[0]}": float(row[1])
        for row in pages.rows(pages.section(card, "## Held-out text"))[1:]
    }
    words = info["figures"]["words read"]
    assert {**found, "words read": words} == info["figures"]
    assert f"{info['parameters']:,}: 6 layers" in pages.read(card)
    assert pages.read(RESEARCH / "pretraining" / "small_model" / "xlnet_small_en.md") in pages.read(
        card
    )
    mean = statistics.mean(found.values())
    small_model = " ".join(pages.read(DOCS / "small_model.md").split())
    assert f"{words / 1e6:.1f} million words" in small_model
    assert f"| 4 hours (`xlnet_small_en`) | {mean:.3f} |" in small_model
    assert f"{words / 1e6:.0f} million" in pages.read(DOCS / "results.md")
    backbone = models.XLNetBackbone.from_preset("xlnet_small_en")
    assert f"{backbone.count_params():,} weights" in pages.read(DOCS / "what_it_knows.md")


def test_comparison_of_the_shipped_presets():
    text = pages.section(DOCS / "presets.md", "## Which model?")
    (_, *names), *table = pages.rows(text)
    table = {name: cells for name, *cells in table}
    for i, name in enumerate(cell.strip("`") for cell in names):
        info = presets()[name]
        sizes = f"{info['parameters'] / 1e6:.1f} M, {info['bytes'] / 1e6:.1f} MB"
        assert table["weights, size"][i] == sizes
        model = models.XLNetTextClassifier.from_preset(name, num_classes=2)
        tokenizer = model.preprocessor.tokenizer
        is_cased = not np.array_equal(tokenizer("Apple"), tokenizer("apple"))
        assert table["case"][i].startswith("cased" if is_cased else "uncased")
        cost = training_cost(model, {"padding_mask": np.ones((1, 1))}, epochs=1)
        operations = table["operations per token in training"][i]
        assert operations == f"{cost.operations / 1e6:.0f} million"


# === The data of the examples ===


def lines_of(name):
    return (DATA / name).read_text(encoding="utf-8").splitlines()


def test_numbers_of_the_messages():
    page = " ".join(pages.read(DATA / "README.md").split())
    rows = [line.split("\t", 1) for line in lines_of("SMSSpamCollection")]
    labels = [label for label, _ in rows]
    assert f"{labels.count('ham'):,} `ham` and {labels.count('spam')} `spam`" in page
    different = len({text for _, text in rows})
    assert f"{len(rows):,} messages are {different:,} different ones" in page
    rows = [line.split("\t") for line in lines_of("spam_messages.tsv")[1:]]
    for kind in ("ham", "spam"):
        lengths = [len(text) for label, text in rows if label == kind]
        values = (len(lengths), min(lengths), statistics.median(lengths), statistics.mean(lengths))
        cells = [f"{value:.0f}" for value in (*values, max(lengths))]
        assert [kind, *cells] in pages.rows(pages.read(DATA / "README.md"))


def test_made_up_messages_are_not_alike():
    texts = [line.split("\t")[1] for line in lines_of("spam_messages.tsv")[1:]]
    words = [set(re.findall(r"\w+|[^\w\s]", text.lower())) for text in texts]
    pairs = itertools.combinations(words, 2)
    *_, second, largest = sorted(len(a & b) / len(a | b) for a, b in pairs)
    assert f"{largest:.2f}, {second:.2f}" == "0.50, 0.34"
    page = " ".join(pages.read(DATA / "README.md").split())
    assert f"of two messages is {largest:.2f}" in page and f"that pair it is {second:.2f}." in page


@pytest.mark.slow  # 25 models.
def test_baseline_of_the_made_up_messages():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_validate
    from sklearn.pipeline import make_pipeline

    rows = [line.split("\t") for line in lines_of("spam_messages.tsv")[1:]]
    texts, labels = [text for _, text in rows], [label == "spam" for label, _ in rows]
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(class_weight="balanced")
    )
    metrics = ("accuracy", "f1", "matthews_corrcoef")
    scores = [
        cross_validate(
            model,
            texts,
            labels,
            cv=StratifiedKFold(5, shuffle=True, random_state=seed),
            scoring=metrics,
        )
        for seed in range(5)
    ]
    found = [np.mean([score[f"test_{name}"] for score in scores]) for name in metrics]
    claim = "accuracy {:.2f}, F1 {:.2f} (spam as the positive class) and MCC {:.2f}."
    assert claim.format(*found) in " ".join(pages.read(DATA / "README.md").split())


def test_numbers_of_the_samples():
    table = pages.rows(pages.section(DATA / "README.md", "| file | what"))
    count = {
        "wnut17_sample.conll": lambda text: len(re.split(r"\n\n+", text.strip())),
        "squad_sample.json": lambda text: text.count('"question":'),
        "ranking_sample.tsv": lambda text: len({r.split("\t")[0] for r in text.splitlines()[1:]}),
        "questions_sample.tsv": lambda text: len(text.splitlines()) - 1,
        "authors_sample.jsonl": lambda text: len(text.splitlines()),
    }
    for name, count_of in count.items():
        (row,) = (row for row in table if f"`{name}`" in row[0])
        files = re.findall(r"`([\w.]+)`", row[0])
        expected = " and ".join(f"{count_of(pages.read(DATA / file)):,}" for file in files)
        assert row[1].startswith(expected), (row, expected)


# === Computed figures ===


def test_time_that_beam_takes():
    page = DOCS / "beam.md"
    speed = 1000 * int(re.search(r"writes (\d+),000 tokens per second", pages.read(page))[1])
    for tokens, *times in pages.rows(pages.section(page, "| tokens | 1 process"))[1:]:
        number, unit = tokens.split()
        seconds = float(number) * {"billion": 1e9, "trillion": 1e12}[unit] / speed
        for processes, time in zip((1, 8, 100), times, strict=True):
            if time:
                value, unit = time.split()
                found = float(value) * {"minutes": 60, "hours": 3600, "days": 86400}[unit]
                assert math.isclose(found, seconds / processes, rel_tol=0.2), (tokens, time)


def test_difference_of_the_forms_of_gelu():
    x = np.linspace(-6, 6, 10_001, dtype="float32")
    forms = (keras.activations.gelu(x, approximate=approximate) for approximate in (True, False))
    largest = np.abs(np.subtract(*map(keras.ops.convert_to_numpy, forms))).max()
    assert 4e-4 < largest < 5e-4
    assert "They differ by up\nto 5e-4 in each unit." in pages.read(DOCS / "checkpoints.md")

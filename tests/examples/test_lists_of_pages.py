"""Tables and lists on the pages have what there is in the package, and no more."""

import importlib
import inspect
import pkgutil
import re

import pytest

import keras_xlnet
from keras_xlnet import (
    checkpoints,
    evaluation,
    models,
    serving,
    task_files,
    training,
)
from keras_xlnet.models.xlnet_backbone import CONFIGS
from tests.examples import pages

DOCS = pages.ROOT / "docs"
ROOMS = {module.name for module in pkgutil.iter_modules(keras_xlnet.__path__) if module.ispkg}


def names_in(cell):
    return re.findall(r"`\"?([\w.]+)", cell)


def first_cells(page, start, end="\n\n"):
    """Returns the names in the first column of a table, which begins after a string."""
    text = re.sub(r"^\|[ :|-]*\|$", "|", pages.section(page, start, end), flags=re.MULTILINE)
    return [name for row in pages.rows(text) for name in names_in(row[0])]


def test_extras():
    extras = pages.extras_of_the_package()
    rows = pages.rows(pages.section(DOCS / "installation.md", "## Extras", "\n## "))
    table = {re.search(r"\[(\w+)\]", row[0])[1]: row[1].lower() for row in rows if "[" in row[0]}
    assert table.keys() == extras.keys()
    (sentence,) = re.findall("Every extra of .*", pages.read(DOCS / "installation.md"))
    without_text = {name for name in extras if "tensorflow" not in everything(name, extras)}
    assert set(re.findall(r"`(\w+)`", sentence)) == without_text | {"tensorflow"}
    for extra in set(extras) - {"test"}:
        for requirement in extras[extra]:
            name = re.match(r"[\w-]+", requirement)[0]
            inner = re.search(r"\[(\w+)\]", requirement)
            if inner and inner[1] in ("examples", "backends"):
                assert f"what `{inner[1]}` adds" in table[extra] or extra == "docs"
            elif not inner:
                assert name in table[extra].replace("apache beam", "apache-beam")


def everything(extra, extras):
    """Returns an extra and those that it contains."""
    inner = re.findall(r"xlnet-keras\[([\w,]+)\]", " ".join(extras[extra]))
    inner = [name for names in inner for name in names.split(",")]
    return {extra}.union(*(everything(name, extras) for name in inner))


def test_every_page_is_in_the_index():
    index = pages.read(DOCS / "index.md")
    linked = {(DOCS / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", index)}
    assert set(DOCS.rglob("*.md")) - {DOCS / "index.md"} <= linked


def test_rooms():
    tree = re.findall(r"^      (\w+)/", pages.read(DOCS / "design.md"), re.MULTILINE)
    assert set(tree) == ROOMS | {"shipped"}
    for name in first_cells(pages.ROOT / "README.md", "## What there is", "\n\n`make docs`"):
        room = name.partition(".")[2]
        assert room in ROOMS | {"presets"} or not name.startswith("keras_xlnet")


@pytest.mark.parametrize(
    "page, start, expected",
    [
        ("checkpoints.md", "| `task=` ", {"None", *checkpoints.TASKS}),
        (
            "checkpoints.md",
            "| format | files ",
            set(checkpoints.READABLE_FORMATS),
        ),
        ("distributed.md", "| `make_strategy(...)` ", set(training.STRATEGIES)),
        ("presets.md", "| `from_config_name` ", set(CONFIGS)),
        (
            "names.md",
            "| `XLNetTokenizer` | original |",
            {"lowercase", "remove_accents", "remove_space"},
        ),
        ("language_models.md", "| `keras_xlnet.visualization` ", None),
        ("names.md", "| `XLNetBackbone` | original", None),
    ],
)
def test_tables_name_all(page, start, expected):
    if "visualization" in start:
        expected = set(importlib.import_module("keras_xlnet.visualization").__all__)
    if "XLNetBackbone" in start:
        # The others are of no other implementation.
        ours = {"attention_chunk_size", "gradient_checkpointing", "seed", "name", "kwargs"}
        expected = set(inspect.signature(models.XLNetBackbone).parameters) - ours
    found = set(first_cells(DOCS / page, start))
    assert found - ({"None", "True", "False"} - expected) == expected


def test_sizes_of_configurations():
    rows = pages.rows(pages.section(DOCS / "presets.md", "| `from_config_name` ", "\n\n"))
    for name, num_layers, hidden_dim, heads, intermediate_dim, weights in rows[1:]:
        config = CONFIGS[names_in(name)[0]]
        sizes = [
            config[key] for key in ("num_layers", "hidden_dim", "num_heads", "intermediate_dim")
        ]
        assert [int(cell) for cell in (num_layers, hidden_dim, heads, intermediate_dim)] == sizes
        count = number_of_weights(*sizes[:2], sizes[3], 32000)
        assert weights == f"{count / 1e6:.1f} M"
    model = models.XLNetBackbone(50, 2, 2, 16, 24)
    assert model.count_params() == number_of_weights(2, 16, 24, 50)


def number_of_weights(num_layers, hidden_dim, intermediate_dim, vocabulary_size):
    products = 5 * hidden_dim**2 + 2 * hidden_dim * intermediate_dim
    # Three biases, two segment embeddings and two normalizations of attention; two biases.
    return (
        num_layers * (products + 10 * hidden_dim + intermediate_dim) + hidden_dim * vocabulary_size
    )


def test_what_is_exported():
    # The first pages say so; when more is, they change.
    assert serving.__all__ == ["export"]
    for page in (pages.ROOT / "README.md", DOCS / "index.md"):
        text = " ".join(pages.read(page).split())
        assert "every task model exports as a SavedModel that takes raw text" in text


def test_flags_of_the_original_have_counterparts():
    rows = pages.rows(pages.section(DOCS / "names.md", "| flag | here |"))
    assert len(rows) > 20 and not [row for row in rows if row[1] == "–"]


def test_files_of_a_preset(tmp_path, tokenizer):
    backbone = models.XLNetBackbone(200, 1, 1, 8, 16)
    backbone.save_to_preset(tmp_path, tokenizer)
    written = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    rows = pages.rows(pages.section(DOCS / "presets.md", "| file | holds |", "\n\n"))
    assert {name for row in rows for name in re.findall("`([^`]+)`", row[0])} == written
    (row,) = (
        r for r in pages.rows(pages.read(DOCS / "checkpoints.md")) if r[0].startswith('`"preset"')
    )
    tops = {name.partition("/")[0] for name in written}
    assert {name.rstrip("/") for name in re.findall("`([^`]+)`", row[1])} == tops


def test_tasks():
    rows = pages.rows(pages.section(DOCS / "tasks.md", "| task | read |", "\n\n"))
    for _, read, model, metric in rows[1:]:
        assert set(names_in(read)) <= set(task_files.__all__)
        assert set(names_in(model)) <= set(models.__all__)
        ours = {name for name in names_in(metric) if "." not in name}
        assert ours <= set(evaluation.__all__)


def test_the_gallery_is_complete():
    table = pages.section(DOCS / "tasks.md", "| example | what it shows |", "\n\n")
    named = set(re.findall(r"examples/[\w.]+", table))
    examples = {f"examples/{path.name}" for path in (pages.ROOT / "examples").glob("*.py")}
    assert named == examples | {"examples/serving"}


def test_replacements_of_addons_are_compared():
    tests = pages.read(pages.ROOT / "tests" / "training" / "test_addons_equivalents.py")
    for row in pages.rows(pages.section(DOCS / "tensorflow_addons.md", "| tensorflow-addons "))[1:]:
        assert names_in(row[1])[0].rpartition(".")[2] in tests

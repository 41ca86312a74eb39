"""README.md and docs/: the code runs, links lead somewhere, and tables are complete."""

import ast
import re

import numpy as np
import pytest

from keras_xlnet import layers, models
from tests.examples import EXAMPLES

ROOT = EXAMPLES.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def code_of(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.usefixtures("small_preset")
def test_first_code_of_the_readme_trains_on_a_csv_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = ["text,label", '"see you, at six",ham', "you won,spam", "at home,later", "no,ham"]
    (tmp_path / "messages.csv").write_text("\n".join(rows), encoding="utf-8")
    code, _ = code_of(ROOT / "README.md")
    names = {}
    exec(code.replace("xlnet_mini_en", "xlnet_small_en"), names)
    assert names["classifier"].class_names == ["ham", "later", "spam"]
    assert "Classification(label=" in capsys.readouterr().out


def test_the_index_begins_as_the_readme_does():
    readme, index = (page.read_text("utf-8") for page in (ROOT / "README.md", DOCS / "index.md"))
    # What to install, the code, and a picture, before anything else.
    found, beginning = (text.partition("\n\n")[2].partition("![")[0] for text in (readme, index))
    assert found == beginning and len(code_of(DOCS / "index.md")[0].splitlines()) <= 8
    clone, *_ = re.findall(r"^    (.*)$", beginning, re.MULTILINE)
    assert clone in (DOCS / "installation.md").read_text("utf-8")
    assert f'"{clone.split()[-1]}"' in (ROOT / "setup.py").read_text("utf-8")


def test_pages_to_begin_with_say_what_the_presets_are_for():
    pages = [ROOT / "README.md", DOCS / "index.md", *(DOCS / "guides").glob("*.md")]
    pages += [DOCS / f"{name}.md" for name in ("spam_classifier", "tasks", "models", "small_model")]
    pages += [DOCS / language / "README.md" for language in ("ko", "zh")]
    assert not [page for page in pages if "presets.md#which-model" not in page.read_text("utf-8")]


def test_adapter_of_the_readme_finds_the_names():
    _, code = code_of(ROOT / "README.md")
    *imports, call = ast.parse(code).body
    names = {}
    exec(compile(ast.Module(imports, []), "README.md", "exec"), names)
    (found,) = eval(ast.unparse(call), names)
    assert [(entity.text, entity.type) for entity in found] == [
        ("Angela Merkel", "person"),
        ("Tim Cook", "person"),
        ("Berlin", "place"),
    ]


def test_code_of_the_layers_page_builds_a_model():
    code, each_layer = code_of(ROOT / "docs" / "layers.md")
    names = {}
    exec(code, names)
    assert names["model"].output_shape == (None, 1)
    exec(each_layer, names)
    shapes = {name: tuple(names[name].shape) for name in ("attended", "content_out", "predicted")}
    assert shapes == {"attended": (2, 6, 256), "content_out": (2, 6, 256), "predicted": (2, 2, 256)}
    assert tuple(names["memory"].shape) == (2, 4, 256)
    np.testing.assert_array_equal(names["features"]["labels"], [[8, 5], [11, 16]])


def test_graphs_of_the_models_page():
    (code,) = (block for block in code_of(ROOT / "docs" / "models.md") if "vectors" in block)
    names = {}
    exec(code, names)
    ids = np.random.default_rng(3).integers(9, 32000, (2, 5))
    others = {"segment_ids": np.zeros((2, 5), "int32"), "padding_mask": np.ones((2, 5), bool)}
    *hidden_states, last = names["all_layers"].predict({"token_ids": ids, **others}, verbose=0)
    backbone = names["backbone"]
    expected = backbone.predict({"token_ids": ids}, verbose=0)["sequence_output"]
    assert len(hidden_states) == backbone.num_layers
    np.testing.assert_allclose(last, expected, atol=1e-5)
    found = names["from_vectors"].predict({"vectors": hidden_states[0], **others}, verbose=0)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow  # Five models are compiled.
@pytest.mark.usefixtures("small_preset")
def test_code_of_the_tasks_page_runs(tmp_path, monkeypatch, capsys):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in code_of(ROOT / "docs" / "tasks.md"):
        exec(code, names)
    assert names["optimizer"].layer_decay == 0.75
    assert "micro average" in capsys.readouterr().out


@pytest.mark.usefixtures("small_preset")
def test_code_of_the_presets_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(models.XLNetTextClassifier, "fit", lambda *_, **__: None)  # Seconds.
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "presets.md"
    names = {}
    for code in code_of(page):
        exec(code, names)
    assert names["regressor"].backbone.dropout == 0.1
    printed = " ".join(capsys.readouterr().out.split())
    errors = re.findall(r"```\n\n((?:    .*\n)+)", page.read_text(encoding="utf-8"))
    shape, missing = (" ".join(error.split()) for error in errors)
    assert shape in printed
    # The fixture has one preset, and the package has all of those in its folder.
    message, listed = missing.split(" come with the package: ")
    assert message in printed
    folders = (ROOT / "keras_xlnet" / "shipped").glob("*/config.json")
    assert {*re.findall("'(.*?)'", listed)} == {path.parent.name for path in folders}


@pytest.mark.parametrize("name", ["quickstart", "spam", "test"])
def test_commands_of_the_readme_are_targets_of_make(name):
    assert f"make {name}" in PAGES[0].read_text(encoding="utf-8")
    assert f"\n{name}: " in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)", text)
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("page, package", [("layers.md", layers), ("models.md", models)])
def test_tables_name_every_class(page, package):
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == set(package.__all__)

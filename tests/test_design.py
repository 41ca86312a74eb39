"""What docs/design.md and CONTRIBUTING.md say about the package, as far as a program can check."""

import ast
import importlib
import pathlib
import re
import sys

import pytest

import keras_xlnet
from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from tests.small_models import small_backbone

PACKAGE = pathlib.Path(keras_xlnet.__file__).parent
ROOT = PACKAGE.parent
FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
# A room may import those in its set.
BELOW = {
    "compat": set(),
    "ops": {"compat"},
    "layers": {"compat", "ops"},
    "preset_files": set(),
    "task_files": set(),
    "tokenizers": {"compat", "preset_files"},
    "preprocessing": {"compat", "preset_files", "tokenizers"},
    "training": {"compat", "layers", "ops", "preprocessing"},
    "models": {
        "compat",
        "layers",
        "ops",
        "preprocessing",
        "preset_files",
        "tokenizers",
        "training",
    },
    "pretraining": {"compat", "layers", "models", "tokenizers"},
    "evaluation": {"compat", "layers", "models", "ops", "preprocessing"},
    "visualization": {"compat", "layers", "models"},
    "conversion": {"layers", "models", "preprocessing", "preset_files", "tokenizers"},
    "checkpoints": {
        "compat",
        "conversion",
        "layers",
        "models",
        "preprocessing",
        "preset_files",
        "tokenizers",
    },
    "integrations": {"models", "preprocessing", "preset_files"},
    "serving": {"compat", "layers", "models", "preprocessing", "preset_files", "tokenizers"},
    "server": set(),
    "cli": {
        "compat",
        "layers",
        "models",
        "preset_files",
        "tokenizers",
        "task_files",
        "checkpoints",
        "server",
        "serving",
    },
}
# What all rooms may import: aliases for annotations, checks of arguments, modules of extras, how
# results print, and the registration of classes.
WITHOUT_A_ROOM = {"types", "arguments", "lazy_modules", "replicas", "results", "registration"}
WITHOUT_A_ROOM |= {"quiet_start"}


def imports_of(file):
    """Yields the names of the modules that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module
            if node.module == "keras_xlnet":
                yield from (f"keras_xlnet.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_room_is_in_the_table():
    assert set(ROOMS) == set(BELOW)
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    assert all(f"\n      {room}/" in text for room in ROOMS)


@pytest.mark.parametrize("page", ["docs/design.md", "CONTRIBUTING.md"])
def test_the_picture_of_imports_has_each_room_above_those_that_it_imports(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    picture = re.search(r"^    compat <-.*\n.*<- .*$", text, re.MULTILINE)[0]
    places = {
        room: place
        for place, rooms in enumerate(picture.split("<-"))
        for room in re.findall(r"\w+", rooms)
    }
    for room in places.keys() & BELOW.keys():
        assert all(places[below] < places[room] for below in BELOW[room] & places.keys())


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_go_one_way(file):
    if file.parent == PACKAGE:
        return
    room = file.relative_to(PACKAGE).parts[0]
    for name in imports_of(file):
        parts = name.split(".")
        assert parts[:2] not in (["keras", "src"], ["tensorflow", "python"]), "a private import"
        if parts[0] == "keras_xlnet" and len(parts) > 1:
            assert parts[1] in BELOW[room] | {room} | WITHOUT_A_ROOM


@pytest.mark.parametrize("room", ROOMS)
def test_no_exported_name_shadows_a_module(room):
    exported = importlib.import_module(f"keras_xlnet.{room}").__dict__
    modules = {path.stem for path in (PACKAGE / room).glob("*.py")} - {"__init__", "__main__"}
    assert not [name for name in modules if callable(exported.get(name))]


@pytest.mark.parametrize("room", ["ops", "layers", "models"])
def test_tensorflow_is_imported_only_inside_of_functions(room):
    for file in (PACKAGE / room).glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = [
            name.name
            for node in tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in node.names
        ]
        assert "tensorflow" not in names, file


@pytest.mark.parametrize("file", sorted((PACKAGE / "ops").glob("*.py")), ids=lambda f: f.name)
def test_every_formula_is_written_down(file):
    # An indented line with an equation, and the paper that it is from.
    doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    if file.stem != "__init__":
        assert re.search(r"^    .*[=:]", doc, re.MULTILINE)
        assert "Source:" in doc


def functions_entered(function):
    """The functions of the package that a call enters, in order: `(name, file)`."""
    found, folder = [], f"{PACKAGE}/"

    def follow(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folder):
            found.append((code.co_qualname, code.co_filename.removeprefix(folder)))

    sys.setprofile(follow)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 names the class of a method")
def test_a_text_goes_the_way_that_the_page_describes(tokenizer):
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = text.split("## The way of a text")[1].split("## ")[0]
    way = [
        (name, file)
        for names, file in re.findall(r"^\d+\. (`.+`) \(`([\w/]+\.py)`\)", section, re.MULTILINE)
        for name in re.findall(r"`([\w.]+)`", names)
    ]
    assert len(way) == 12
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=16)
    model = XLNetTextClassifier(small_backbone(vocabulary_size=200), 2, preprocessor)
    entered = iter(
        functions_entered(lambda: model.fit(["a ship", "the harbor"], [0, 1], verbose=0))
    )
    assert [step for step in way if step in entered] == way  # `in` goes on where it was.


RIDDLES = re.compile(
    r"has words for|swallow|pays? (for it )?once|is no such thing|\bwhoever\b|\bnobody\b"
    r"|put the mend|\btwins?\b|first weights"
    # What native readers found: CONTRIBUTING.md, "How we write".
    r"|of whose\b|must be as many|know of each other|of which that is true|what is not passed"
    r"|draw from so many|\bone a (text|question|word|line|token|row|document)\b",
    re.IGNORECASE,
)
WRITTEN = [
    *FILES,
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "docs").rglob("*.py"),
    *(ROOT / "examples").glob("*.py"),
    ROOT / "README.md",
]


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: str(file.relative_to(ROOT)))
def test_plain_english(file):
    written = file.read_text(encoding="utf-8")
    if file.name == "what_it_knows.md":  # What a model filled in stands in its tables.
        written = re.sub(r"^\|.*$", "", written, flags=re.MULTILINE)
    found = RIDDLES.findall(written)
    assert not found

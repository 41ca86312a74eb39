"""Code on the pages, in blocks and in backticks: what it imports, names and passes exists."""

import ast
import builtins
import re

import keras
import pytest

from keras_xlnet import models, tokenizers
from keras_xlnet.serving.portable import predict
from tests.examples import code_names, pages

# What a name on the pages is where no code before defines it.
CONVENTIONS = {
    "answerer": models.XLNetQuestionAnswering,
    "answers": models.XLNetQuestionAnswering,
    "backbone": models.XLNetBackbone,
    "chooser": models.XLNetMultipleChoice,
    "classifier": models.XLNetTextClassifier,
    "language_model": models.XLNetPermutationLM,
    "lm": models.XLNetPermutationLM,
    "ranker": models.XLNetRanker,
    "tagger": models.XLNetTokenClassifier,
    "text_model": predict.TextModel,
    "tokenizer": tokenizers.XLNetTokenizer,
}
# What these pages name is mostly of other implementations.
OF_OTHERS = {"docs/names.md", "docs/checkpoints.md", "docs/tensorflow_addons.md"}
OF_OTHERS |= {"docs/upstream.md", "benchmarks/README.md", "tests/golden/README.md"}
# The code of docs/upstream.md uses other libraries only, and tests/compat/test_upstream.py runs it.
# docs/mistakes.md has wrong code, which tests/test_mistakes.py runs.
WITH_OUR_CODE = [page for page in pages.PAGES if page.name not in ("upstream.md", "mistakes.md")]
# What other pages name of other libraries.
OTHERS = {"Embedding", "FileSystems", "MirroredStrategy", "ModelParallel", "PathLike"}
OTHERS |= {"PredictionLog", "SMSSpamCollection", "XLNetForSequenceClassification"}
OTHERS |= {"pathlib.Path", "pd.read_csv", "DataLoader", "iter"}
OTHERS |= {"AutoModelForSequenceClassification", "AutoTokenizer", "XLNetTokenizerFast"}
OTHERS |= {"load_dataset", "load_dataset(..., streaming=True).batch"}
# Bases in `compat`, which CONTRIBUTING.md names.
OTHERS |= {"RestoresSublayers"}
# Placeholders of the pages.
OTHERS |= {"model", "scope"}


def names_of(page):
    names = code_names.public_names()
    return names | {name: code_names.Instance(cls) for name, cls in CONVENTIONS.items()}


def code_in_text(page):
    """Yields trees of dotted names and of calls in backticks, such as `fit(x, epochs=)`."""
    for code in pages.inline_code(page):
        is_file = re.search(r"\.(py|md|json|txt|keras|h5)$", code)
        if not is_file and re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*(\(.*\))?", code):
            try:
                yield ast.parse(re.sub(r"=(?=[,)])", "=...", code), mode="eval")
            except SyntaxError:
                continue


@pytest.mark.parametrize("page", WITH_OUR_CODE, ids=pages.name_of)
def test_names_and_arguments_in_blocks(page):
    names = names_of(page)
    for code in pages.python_blocks(page):
        assert not list(code_names.check(ast.parse(code), names)), code


@pytest.mark.parametrize("page", WITH_OUR_CODE, ids=pages.name_of)
def test_names_and_arguments_in_text(page):
    names, methods = names_of(page), code_names.public_methods()
    for tree in code_in_text(page):
        assert not list(code_names.check(tree, names)), ast.unparse(tree)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func)
            if name.partition(".")[0] not in names and name not in OTHERS:
                # A method of some object: `predict(...)`, or `model.predict(...)`.
                found = methods.get(name.rpartition(".")[2])
                if found or pages.name_of(page) not in OF_OTHERS:
                    assert found, f"there is no {name}"
                    wrong = [list(code_names.check_call(call, method)) for method in found]
                    assert [] in wrong, wrong[0]


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_classes_in_text(page):
    known = {*code_names.public_names(), *dir(keras.layers), *dir(builtins), *OTHERS}
    if pages.name_of(page) not in OF_OTHERS:
        named = {
            code for code in pages.inline_code(page) if re.fullmatch("[A-Z]+[a-z]+[A-Z]\\w*", code)
        }
        assert named <= known


def test_mistakes_are_found():
    code = """
from keras_xlnet.models import XLNetTextClassifier, XLNetTextClasifier
from keras_xlnet.evaluation import Perplexity
classifier = XLNetTextClassifier.from_preset("xlnet_small_en", num_labels=2)
classifier.fit(texts, labels, epoch=2, batch_size=8)
classifier.clasify(texts)
keras.losses.meen_squared_error(*classifier.predict(texts))
Perplexity(name="a", bias=1)
XLNetTextClassifier.from_preset("xlnet_small_en", num_classes=2, backbone_dropout=0.1)
"""
    messages = list(code_names.check(ast.parse(code), code_names.public_names()))
    wrong = ["XLNetTextClasifier", "num_labels", "epoch", "clasify", "meen_squared_error", "bias"]
    assert all(any(repr(name) in message for message in messages) for name in wrong)
    assert len(messages) == len(wrong)


# === Files ===


# Of the original, of a page, of other libraries, and what there is not.
FILES_ELSEWHERE = {
    "preprocessing/token_regressor_preprocessor.py",
    "tests/models/test_xlnet_token_regressor.py",
    "data_utils.py",
    "write_records.py",
    "sentencepiece_model_pb2.py",
    "utils_qa.py",
    "keras/src/backend/jax/nn.py",
    "utils.py",
}


def files_in_text(page):
    """Yields the paths in backticks that name a file or folder of the repository."""
    rooms = {path.parent.name for path in (pages.ROOT / "keras_xlnet").glob("*/__init__.py")}
    tops = {path.name for path in pages.ROOT.iterdir() if path.is_dir()}
    for code in pages.inline_code(page):
        code = code.partition(" ")[0]
        if re.fullmatch(r"[\w./-]+", code) and not code.startswith(
            ("../shared", "build/", "models/", "runs/")
        ):
            top, slash, _ = code.partition("/")
            if code.endswith(".py") or slash and top in tops:
                yield code
            elif slash and top in rooms and code.endswith("/"):
                yield code


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_files_in_text_exist(page):
    folders = [pages.ROOT, pages.ROOT / "keras_xlnet", page.parent]
    programs = [
        pages.ROOT / name for name in ("keras_xlnet", "examples", "benchmarks", "research", "tests")
    ]
    for name in files_in_text(page):
        pattern = name.replace("NAME", "*")
        # Texts about a folder name its files without it.
        found = [path for folder in folders for path in folder.glob(pattern)]
        found += [path for folder in programs for path in folder.rglob(pattern) if "/" not in name]
        assert found or name in FILES_ELSEWHERE, name

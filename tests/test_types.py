"""Annotations: every public callable has them. `make lint` checks them with mypy."""

import ast
import importlib
import inspect
import pathlib
import re

import keras
import numpy as np
import pytest

import keras_xlnet
from keras_xlnet.types import Tensor

PACKAGE = pathlib.Path(keras_xlnet.__file__).parent
ROOT = PACKAGE.parent
FILES = [*sorted(PACKAGE.rglob("*.py")), ROOT / "xlnet_command.py"]


def public_functions(tree):
    """Yields functions and methods without a leading underscore, and `__init__`, `__call__`, ..."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node, False
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    if not method.name.startswith("_") or method.name.startswith("__"):
                        yield method, True


def missing_annotations(function, is_method):
    """Yields what a function has no annotation for."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    decorators = [d.id for d in function.decorator_list if isinstance(d, ast.Name)]
    if is_method and "staticmethod" not in decorators:
        named = named[1:]  # `self` or `cls`.
    others = [x for x in (arguments.vararg, arguments.kwarg) if x is not None]
    yield from (x.arg for x in [*named, *others] if x.annotation is None)
    if function.returns is None and function.name != "__init__":
        yield "return"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_public_callables_are_annotated(file):
    missing = [
        f"{file.relative_to(ROOT)}:{function.lineno}: {function.name}: {name}"
        for function, is_method in public_functions(ast.parse(file.read_text(encoding="utf-8")))
        for name in missing_annotations(function, is_method)
    ]
    assert not missing, "without an annotation:\n" + "\n".join(missing)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_exceptions_have_reasons(file):
    # In a comment after the exception, or in the line above.
    lines = file.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if "type: ignore" in line:
            found = re.search(r"# type: ignore\[[a-z, -]+\](  # .+)?$", line)
            reason = found and (found[1] or lines[number - 2].lstrip().startswith("#"))
            assert reason, f"{file.relative_to(ROOT)}:{number}: no error code, or no reason"


def test_type_checkers_use_the_annotations():
    # PEP 561.
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("room", ["ops", "layers", "models", "training", "evaluation"])
def test_help_shows_types(room):
    # Of what is exported, through the decorators.
    exported = importlib.import_module(f"keras_xlnet.{room}")
    for name in exported.__all__:
        value = getattr(exported, name)
        if callable(value):
            parameters = inspect.signature(value).parameters.values()
            assert all(p.annotation is not p.empty for p in parameters), name


def test_tensor_is_what_has_a_shape_and_a_dtype():
    tensors = [np.zeros(2), keras.ops.zeros(2), keras.Input((2,)), keras.Variable(np.zeros(2))]
    assert all(isinstance(x, Tensor) for x in tensors)
    assert not isinstance([0.0, 0.0], Tensor)

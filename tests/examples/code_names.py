"""Finds names and arguments in code that do not exist, without running it."""

import ast
import collections
import functools
import importlib
import inspect
import pkgutil
import re

import keras

import keras_xlnet
from keras_xlnet import models, preprocessing, tokenizers
from keras_xlnet.checkpoints import TASKS
from keras_xlnet.serving.saved_model import SIGNATURES

# Arguments that a function passes on, in Keras and here.
_OF_KERAS = {"name", "dtype", "trainable", "seed"}


class Instance:
    """A value whose class is known.

    Args:
        cls: The class.
    """

    def __init__(self, cls):
        self.cls = cls


def public_names():
    """Returns a dict of all public names: the rooms of the package, and what is in them."""
    found = {"keras": keras, "keras_xlnet": keras_xlnet}
    for module in pkgutil.iter_modules(keras_xlnet.__path__):
        if module.ispkg:
            room = importlib.import_module(f"keras_xlnet.{module.name}")
            found |= {module.name: room}
            found |= {name: getattr(room, name) for name in getattr(room, "__all__", ())}
    return found


def public_methods():
    """Returns a dict from names of methods to the methods of all public classes."""
    found = collections.defaultdict(list)
    for cls in filter(inspect.isclass, public_names().values()):
        for name, method in inspect.getmembers(cls, inspect.isroutine):
            found[name].append(method)
    return found


def check(tree, names):
    """Yields messages about what does not exist, and adds what code defines to `names`.

    Args:
        tree: What `ast.parse` returned.
        names: Dict from names to modules, classes, functions and `Instance`s.
    """
    for node in tree.body if isinstance(tree.body, list) else [tree.body]:
        for part in _in_order(node):
            if isinstance(part, (ast.Import, ast.ImportFrom)):
                yield from _import(part, names)
            elif isinstance(part, (ast.Attribute, ast.Call)):
                yield from _check_node(part, names)
        for part in ast.walk(node):
            if isinstance(part, (ast.FunctionDef, ast.ClassDef)):
                names[part.name] = None
            elif isinstance(part, ast.Assign):
                for target in part.targets:
                    if isinstance(target, ast.Name):
                        names[target.id] = _value(part.value, names)
                    else:
                        _forget(target, names)
            elif isinstance(part, (ast.For, ast.comprehension)):
                _forget(part.target, names)
            elif isinstance(part, ast.arg):
                names[part.arg] = None


def _in_order(node):
    return sorted(ast.walk(node), key=lambda part: getattr(part, "lineno", 0))


def _forget(target, names):
    for part in ast.walk(target):
        if isinstance(part, ast.Name):
            names[part.id] = None


def _import(node, names):
    for alias in node.names:
        name = alias.name if isinstance(node, ast.Import) else node.module
        try:
            value = importlib.import_module(name)
            if isinstance(node, ast.ImportFrom):
                value = getattr(value, alias.name)
        except (ImportError, AttributeError) as error:
            yield f"{ast.unparse(node)}: {error}"
            continue
        whole = isinstance(node, ast.Import) and not alias.asname
        top = alias.name.partition(".")[0]
        names[alias.asname or top] = importlib.import_module(top) if whole else value


def _check_node(node, names):
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, names)
        if owner is not None and not _has(owner, node.attr):
            yield f"{ast.unparse(node)}: there is no {node.attr!r}"
    else:
        function = _value(node.func, names)
        if function is not None:
            yield from check_call(node, function)


def _has(owner, name):
    if not isinstance(owner, Instance):
        return hasattr(owner, name)
    # Fields and what `__init__` sets are not attributes of the class.
    sources = (inspect.getsource(cls) for cls in owner.cls.__mro__[:-1])
    return hasattr(owner.cls, name) or any(re.search(rf"\b{name}\b", text) for text in sources)


def _value(node, names):
    """Returns what an expression is, or `None` if that is not known."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, names)
        if isinstance(owner, Instance):
            method = inspect.getattr_static(owner.cls, node.attr, None)
            if isinstance(method, functools.cached_property) or not inspect.isroutine(method):
                return None
            return getattr(owner.cls, node.attr)
        return getattr(owner, node.attr, None)
    if isinstance(node, ast.Call):
        function = _value(node.func, names)
        if inspect.isclass(function):
            return Instance(function)
        owner = getattr(function, "__self__", None)
        if inspect.isclass(owner) and function.__name__.startswith("from_"):
            return Instance(owner)
        returned = getattr(function, "__annotations__", {}).get("return")
        known = inspect.isclass(returned) and returned.__module__.startswith("keras_xlnet")
        return Instance(returned) if known else None
    return None


def check_call(node, function):
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return
    passes_on = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
    if passes_on and not str(getattr(function, "__module__", "")).startswith("keras_xlnet"):
        return
    known = set(parameters) | (_passed_on(function) if passes_on else set())
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in known:
            yield f"{ast.unparse(node)}: there is no argument {keyword.arg!r}"
    positional = [p for p in parameters.values() if p.kind in (0, 1)]
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    if len(node.args) > len(positional) and not starred:
        if not any(p.kind == p.VAR_POSITIONAL for p in parameters.values()):
            yield f"{ast.unparse(node)}: takes {len(positional)} arguments"


def _passed_on(function):
    """The arguments that a function with `**kwargs` can have."""
    called = [getattr(keras.Model, function.__name__, None)]  # What a model overrides.
    called += inspect.getmro(function) if inspect.isclass(function) else ()
    if not inspect.isclass(function):
        called += [models.XLNetBackbone, *(task.model for task in TASKS.values())]
        called += SIGNATURES.values()
        called += [getattr(m, name) for m in (preprocessing, tokenizers) for name in m.__all__]
    names = {
        name
        for f in called
        if callable(f) and f is not object
        for name in inspect.signature(f).parameters
    }
    return names | {f"backbone_{name}" for name in names} | _OF_KERAS

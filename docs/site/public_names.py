"""The public names of the package: the `__all__` of each of its rooms."""

import dataclasses
import functools
import importlib
import inspect
import pathlib
import re
import types

import keras_xlnet

PACKAGE = pathlib.Path(keras_xlnet.__file__).parent
# Those that most programs begin with come first.
_FIRST = (
    "models",
    "layers",
    "preprocessing",
    "tokenizers",
    "checkpoints",
    "pretraining",
    "training",
    "serving",
)


@dataclasses.dataclass(frozen=True)
class PublicName:
    """A public name.

    Args:
        module: String, where users import it from, such as `"keras_xlnet.layers"`.
        name: String.
    """

    module: str
    name: str

    @property
    def full_name(self):
        return f"{self.module}.{self.name}"

    @property
    def document(self):
        """The page of the name, without its ending."""
        return f"api/{self.module.rpartition('.')[2]}/{self.name}"

    @property
    def value(self):
        return getattr(importlib.import_module(self.module), self.name)

    @property
    def is_constant(self):
        return not callable(self.value)

    @property
    def description(self):
        """The docstring, or the comment above a constant that has `#:` in each line."""
        return _comment_of(self) if self.is_constant else inspect.getdoc(self.value)

    @property
    def summary(self):
        return " ".join(self.description.partition("\n\n")[0].split())


def _comment_of(constant):
    pattern = re.compile(rf"((?:^#: .*\n)+){constant.name} = ", re.MULTILINE)
    for file in sorted((PACKAGE / constant.module.rpartition(".")[2]).glob("*.py")):
        found = pattern.search(file.read_text(encoding="utf-8"))
        if found:
            return re.sub("^#: ", "", found[1], flags=re.MULTILINE).strip()
    raise ValueError(f"{constant.full_name} has no comment that begins with #:")


@functools.cache
def public_names():
    """Returns a dict from modules to lists of their public names."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    rooms = [*_FIRST, *sorted(rooms.difference(_FIRST))]
    found = {}
    for module in ["keras_xlnet", *(f"keras_xlnet.{room}" for room in rooms)]:
        values = vars(importlib.import_module(module))
        names = [PublicName(module, name) for name in values.get("__all__", ())]
        names = [name for name in names if not isinstance(name.value, types.ModuleType)]
        if names:
            found[module] = sorted(names, key=lambda name: name.name.lower())
    return found

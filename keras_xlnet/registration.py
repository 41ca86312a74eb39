"""Registers classes with Keras, and refuses constructor arguments that they do not have.

Upstream: functional models ignore unknown keyword arguments. Keras' layers refuse them without a
suggestion.
Reproduction: docs/upstream.md, "Unknown arguments are ignored".
Delete this file when: it raises. Then the suggestions are all that is lost.
"""

import difflib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import keras

_Class = TypeVar("_Class", bound=type)
# The constructors that refuse unknown arguments. Subclasses inherit them.
_CHECKING: set[Callable[..., Any]] = set()

# Names of other implementations; docs/names.md says whose.
_SYNONYMS = {
    "attn_type": "attention_type",
    "bi_data": "bidirectional_data",
    "bsz_per_host": "batch_size",
    "clamp_len": "clamp_length",
    "d_head": "head_dim",
    "d_inner": "intermediate_dim",
    "d_model": "hidden_dim",
    "dropatt": "attention_dropout",
    "feed_forward_activation": "activation",
    "ff_activation": "activation",
    "hidden_size": "hidden_dim",
    "init_std": "kernel_initializer",
    "initializer_range": "kernel_initializer",
    "kernel_initializer_range": "kernel_initializer",
    "layer_norm_eps": "layer_norm_epsilon",
    "max_len": "sequence_length",
    "max_length": "sequence_length",
    "max_seq_length": "sequence_length",
    "maxlen": "sequence_length",
    "mem_len": "memory_length",
    "memory_len": "memory_length",
    "n_head": "num_heads",
    "n_layer": "num_layers",
    "n_token": "vocabulary_size",
    "num_attention_heads": "num_heads",
    "num_block": "num_layers",
    "num_head": "num_heads",
    "num_hidden_layers": "num_layers",
    "num_labels": "num_classes",
    "num_predict": "num_predictions",
    "num_token": "vocabulary_size",
    "perm_size": "permutation_length",
    "reuse_len": "reuse_length",
    "seq_len": "sequence_length",
    "shared_biases": "tie_attention_biases",
    "summary_type": "pooling",
    "units": "hidden_dim",
    "untie_r": "tie_attention_biases",
    "vocab_size": "vocabulary_size",
}


def register(cls: _Class) -> _Class:
    """Registers a class with Keras in the package `keras_xlnet`, and refuses unknown arguments."""
    return refuse_unknown_arguments(
        keras.saving.register_keras_serializable(package="keras_xlnet")(cls)
    )


def refuse_unknown_arguments(cls: _Class) -> _Class:
    """Returns a class whose constructor users call, after adding a check of its arguments.

    A keyword argument that the constructor does not have is a `TypeError`, which suggests the right
    name. A subclass outside of this package that has a constructor of its own is not checked: it
    may take further arguments.
    """
    inherited: Any = cls.__new__
    if inherited in _CHECKING:
        return cls

    # Not in `__init__`, where Python misses required arguments before it refuses others.
    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_constructed_here(cls):
            _check_names(cls, kwargs)
        return inherited(cls) if inherited is object.__new__ else inherited(cls, *args, **kwargs)

    _CHECKING.add(new)
    attributes = {"__new__": staticmethod(new), "__signature__": _SignatureOfConstructor()}
    for name, value in attributes.items():
        setattr(cls, name, value)
    return cls


class _SignatureOfConstructor:
    """The signature of a class for `inspect.signature`, instead of `__new__`'s."""

    def __get__(self, instance: Any, cls: Any) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("An object has the signature of its `__call__`")
        signature = inspect.signature(cls.__init__)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def _is_constructed_here(cls):
    """Whether `cls` is a class of this package, or a subclass with the constructor of one."""
    first = next(
        base for base in cls.__mro__ if _is_of_this_package(base) or "__init__" in vars(base)
    )
    return _is_of_this_package(first)


def _is_of_this_package(cls):
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


def constructor_arguments(instance: Any) -> list[str]:
    """Returns the names of the constructor arguments of an object, as a class of this package.

    A subclass outside of this package adds its own arguments to the config.
    """
    return _argument_names(next(c for c in type(instance).__mro__ if _is_of_this_package(c)))


def _check_names(cls, given):
    own = _argument_names(cls)
    for name in given:
        if name not in own and name not in _argument_names_of_keras(cls):
            raise TypeError(
                f"`{cls.__name__}` has no argument `{name}`.{suggestion(name, own)} "
                f"Its arguments are: {', '.join(own)}"
            )


def suggestion(name: str, known: Sequence[str]) -> str:
    """Returns the question whether one of the known arguments was meant, `""` if none is like it.

    Args:
        name: String, the name of an argument that is not known.
        known: Strings.
    """
    synonym = _SYNONYMS.get(name)
    if synonym in known:
        return f" Did you mean `{synonym}`?"
    similar = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean `{similar[0]}`?" if similar else ""


@functools.cache
def _argument_names(cls):
    """The arguments that the constructor names, in their order."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(cls.__init__).parameters.values()
    return [p.name for p in parameters if p.kind in named and p.name != "self"]


@functools.cache
def _argument_names_of_keras(cls):
    """The arguments that a constructor passes on to its base class in Keras."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return frozenset()
    if issubclass(cls, keras.Model):
        return frozenset({"name", "trainable", "quantization"})
    names = {"input_shape", "input_dim", "quantization"}
    for base in cls.__mro__[1:-1]:
        if "__init__" in vars(base):
            names |= set(_argument_names(base))
    return frozenset(names)

"""Refuses constructor arguments that a class does not have, and suggests the right name.

Upstream: functional models ignore unknown keyword arguments. Keras' layers refuse them without a
suggestion.
Reproduction: docs/upstream.md, "Unknown arguments are ignored".
Delete this file when: it raises. Then the suggestions are all that is lost.
"""

import difflib
import functools
import inspect
from typing import Any, TypeVar

import keras

_Class = TypeVar("_Class", bound=type)

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
    """Registers a class with Keras in the package `keras_xlnet`, and checks argument names.

    Args:
        cls: A class of Keras objects.

    Returns:
        The class, see `check_arguments`.
    """
    return keras.saving.register_keras_serializable(package="keras_xlnet")(check_arguments(cls))


def check_arguments(cls: _Class) -> _Class:
    """Decorates a class so that its constructor refuses unknown keyword arguments.

    Args:
        cls: A class with an `__init__`.

    Returns:
        The class. It raises `TypeError` for arguments that it does not have; the message suggests
        the right name.
    """
    # For a checker: it refuses to read `__init__` of a class, and to replace `__new__`.
    own: Any = cls
    inherited = own.__new__

    # `inspect.signature` of the class shows the arguments of `__init__`.
    @functools.wraps(own.__init__)
    def checked_new(subclass, *args, **kwargs):
        # A subclass with a constructor of its own may take further arguments.
        if subclass.__init__ is own.__init__:
            _check_names(subclass, kwargs)
        if inherited is object.__new__:
            return inherited(subclass)
        return inherited(subclass, *args, **kwargs)

    own.__new__ = checked_new
    return cls


def _check_names(cls, given):
    own = _argument_names(cls)
    for name in given:
        if name not in own and name not in _argument_names_of_keras(cls):
            raise TypeError(
                f"`{cls.__name__}` has no argument `{name}`.{_suggestion(name, own)} "
                f"Its arguments are: {', '.join(own)}"
            )


def _suggestion(name, known):
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

"""Refuses constructor arguments that a class does not have, and suggests the right name.

Upstream: functional models ignore unknown keyword arguments. Keras' layers refuse them without a
suggestion.
Seen in: Keras 3.12 to 3.15.
Reproduction: `keras.Model(inputs=x, outputs=x, mem_len=384)` raises nothing.
Delete this file when: it raises. Then the suggestions are all that is lost.
"""

import difflib
import functools
import inspect

import keras

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
# What Keras' base classes take from their `**kwargs`.
_OF_KERAS = {"input_dim", "input_shape", "batch_shape", "dynamic", "quantization"}


def register(cls):
    """Registers a class with Keras in the package `keras_xlnet`, and checks argument names.

    Args:
        cls: A class whose `__init__` takes `**kwargs` and passes them to a class of Keras.

    Returns:
        The class. It raises `TypeError` for arguments that neither it nor a base class has.
    """
    inherited = cls.__new__

    # `inspect.signature` of the class shows the arguments of `__init__`.
    @functools.wraps(cls.__init__)
    def checked_new(subclass, *args, **kwargs):
        # A subclass with a constructor of its own may take further arguments.
        if subclass.__init__ is cls.__init__:
            check_argument_names(subclass, kwargs, _argument_names(subclass))
        return inherited(subclass, *args, **kwargs)

    cls.__new__ = checked_new
    return keras.saving.register_keras_serializable(package="keras_xlnet")(cls)


def check_argument_names(cls, given, known):
    """Raises `TypeError` if `given` has a name that is not among `known`.

    Args:
        cls: The class, for the message.
        given: The names of the arguments that were given.
        known: The names of all arguments.

    Raises:
        TypeError: The message names the first unknown argument, and suggests a known one.
    """
    for name in given:
        if name not in known:
            raise TypeError(
                f"`{cls.__name__}` has no argument `{name}`.{_suggestion(name, known)} "
                f"Its arguments are: {', '.join(sorted(known - _OF_KERAS))}"
            )


def _suggestion(name, known):
    synonym = _SYNONYMS.get(name)
    if synonym in known:
        return f" Did you mean `{synonym}`?"
    similar = difflib.get_close_matches(name, sorted(known), n=1)
    return f" Did you mean `{similar[0]}`?" if similar else ""


@functools.cache
def _argument_names(cls):
    names = set(_OF_KERAS)
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if init is not None and base is not object:
            parameters = inspect.signature(init).parameters.values()
            named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            names |= {parameter.name for parameter in parameters if parameter.kind in named}
    return frozenset(names - {"self", "args", "kwargs", "inputs", "outputs"})

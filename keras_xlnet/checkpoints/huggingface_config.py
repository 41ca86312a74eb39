"""`config.json` of Hugging Face's transformers, as arguments of our models and back."""

import pathlib
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import keras

from keras_xlnet.layers import gelu_tanh
from keras_xlnet.preset_files.files import quoted, read_json
from keras_xlnet.types import PathLike

# Theirs -> ours. `gelu` is the erf form in both. The original's, our default, is the tanh form.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_POOLINGS = {"last": "last", "first": "first", "mean": "mean", "cls_index": "cls"}
_SUMMARY = {"summary_use_proj": True, "summary_activation": "tanh"}
_PROBLEM_TYPES = {
    "single_label_classification": "softmax",
    "multi_label_classification": "sigmoid",
    "regression": "linear",
}
_REQUIRED = {
    "vocab_size": "vocabulary_size",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "d_model": "hidden_dim",
    "d_inner": "intermediate_dim",
}
_INTEGERS = (
    *_REQUIRED,
    *"d_head clamp_len mem_len reuse_len start_n_top end_n_top num_labels".split(),
)
_NUMBERS = ("dropout", "summary_last_dropout", "layer_norm_eps", "initializer_range")
_STRINGS = ("ff_activation", "attn_type", "summary_type", "problem_type", "dtype", "torch_dtype")
_TYPES = {
    **dict.fromkeys(_INTEGERS, (int,)),
    **dict.fromkeys(_NUMBERS, (int, float)),
    **dict.fromkeys(_STRINGS, (str,)),
    "architectures": (list,),
    "id2label": (dict,),
}
# Two logits for each token: where an answer starts and where it ends.
SIMPLE_QUESTION_ANSWERING = "XLNetForQuestionAnsweringSimple"


def read_config(file: pathlib.Path) -> dict[str, Any]:
    """Reads `config.json` without null entries, which mean the same as missing ones.

    Raises:
        ValueError: If it is not JSON, or an entry that is used is of another type.
    """
    config = {key: value for key, value in read_json(file).items() if value is not None}
    # Entries of other models have other types: `transformer_xl.arguments_of_config` checks its own.
    expected_types = {} if config.get("model_type") == "transfo-xl" else _TYPES
    for key, types in expected_types.items():
        if key in config and not isinstance(config[key], types):
            expected = " or ".join(kind.__name__ for kind in types)
            raise ValueError(f"{file} has `{key}` {config[key]!r}, expected {expected}")
    labels = config.get("id2label", {})
    numbers = {str(i) for i in range(len(labels))}
    if set(labels) != numbers or not all(isinstance(name, str) for name in labels.values()):
        raise ValueError(f"{file} has `id2label` {labels}, expected names by number")
    return config


def check_required(config: dict[str, Any], names: Collection[str], file: PathLike) -> None:
    """Raises `ValueError` if a configuration lacks some of the entries."""
    missing = sorted(name for name in names if config.get(name) is None)
    if missing:
        raise ValueError(f"{file} has no {missing}")


def check_only(config: dict[str, Any], expected: dict[str, Any], file: PathLike) -> None:
    """Raises `ValueError` if an entry has another value than the only one that is supported."""
    for key, value in expected.items():
        if config.get(key, value) != value:
            raise ValueError(
                f"{file} has `{key}` {quoted(config[key])}, but only {value!r} is supported"
            )


def choose(
    config: dict[str, Any], key: str, default: str, choices: dict[str, Any], file: PathLike
) -> Any:
    """Returns what a name in a configuration stands for, otherwise raises `ValueError`."""
    name = config.get(key, default)
    if not isinstance(name, str) or name not in choices:
        raise ValueError(f"{file} has `{key}` {quoted(name)}, expected one of {sorted(choices)}")
    return choices[name]


# === The encoder ===


def fixed_arguments(config: dict[str, Any], file: PathLike) -> dict[str, Any]:
    """Returns the arguments of `XLNetBackbone` that no override may change.

    Raises:
        ValueError: If the configuration is not an XLNet's.
    """
    if config.get("model_type") != "xlnet":
        raise ValueError(f"{file} has the `model_type` {config.get('model_type')!r}, not 'xlnet'")
    check_required(config, _REQUIRED, file)
    arguments = {ours: config[theirs] for theirs, ours in _REQUIRED.items()}
    arguments["head_dim"] = config.get("d_head")
    arguments["layer_norm_epsilon"] = config.get("layer_norm_eps", 1e-12)
    return arguments


def default_arguments(config: dict[str, Any], has_memory: bool, file: PathLike) -> dict[str, Any]:
    """Returns the arguments of `XLNetBackbone` that overrides may change.

    Args:
        config: Dict from `read_config`.
        has_memory: Whether the model has memory. Fine-tuned models have none.
        file: Path of the file, for errors.
    """
    dropout = config.get("dropout", 0.1)
    clamp_length = config.get("clamp_len", -1)
    attention_type = config.get("attn_type", "bi")
    arguments = {
        "activation": choose(config, "ff_activation", "gelu", ACTIVATIONS, file),
        "dropout": dropout,
        "attention_dropout": dropout,
        "attention_type": attention_type,
        "clamp_length": clamp_length if clamp_length > 0 else None,
        # transformers ignores it for "bi".
        "same_length": attention_type == "uni" and config.get("same_length", False),
        "kernel_initializer": keras.initializers.RandomNormal(
            stddev=config.get("initializer_range", 0.02)
        ),
    }
    if has_memory:
        arguments["memory_length"] = config.get("mem_len")
        arguments["reuse_length"] = config.get("reuse_len") if config.get("mem_len") else None
        arguments["bidirectional_data"] = config.get("bi_data", False)
    return arguments


def encoder_entries(backbone: keras.Model) -> dict[str, Any]:
    """Returns the entries of `config.json` for a backbone.

    Raises:
        ValueError: If transformers has no model that computes the same.
    """
    dim = backbone.num_heads * backbone.head_dim
    if dim != backbone.hidden_dim:
        raise ValueError(
            "transformers has only models with num_heads * head_dim = hidden_dim. Received: "
            f"{backbone.num_heads} * {backbone.head_dim} and {backbone.hidden_dim}"
        )
    return {
        "model_type": "xlnet",
        **{theirs: getattr(backbone, ours) for theirs, ours in _REQUIRED.items()},
        "d_head": backbone.head_dim,
        "ff_activation": _activation_name(backbone.activation),
        "layer_norm_eps": backbone.layer_norm_epsilon,
        "dropout": backbone.dropout,
        "attn_type": backbone.attention_type,
        "mem_len": backbone.memory_length,
        "reuse_len": backbone.reuse_length,
        "clamp_len": backbone.clamp_length or -1,
        "same_length": backbone.same_length,
        "bi_data": backbone.bidirectional_data,
        "untie_r": True,
        "dtype": "float32",
    }


def _activation_name(activation):
    if activation is gelu_tanh:
        return "gelu_new"
    name = getattr(activation, "__name__", None)
    if name not in ("gelu", "relu", "silu"):
        raise ValueError(
            "transformers has the activations gelu, gelu_tanh, relu and silu. Received: a model "
            f"with {name!r}"
        )
    return name


# === The tasks ===


class Group(NamedTuple):
    """Arguments of task models, and their entries in `config.json`.

    Args:
        read: Function of the config and the path of the file that returns a dict of arguments.
        write: Function of a task model that returns a dict of entries.
    """

    read: Callable[..., dict[str, Any]]
    write: Callable[..., dict[str, Any]]


def _read_summary(config, file):
    check_only(config, {**_SUMMARY, "summary_proj_to_labels": False}, file)
    pooling = choose(config, "summary_type", "last", _POOLINGS, file)
    return {"pooling": pooling, "dropout": config.get("summary_last_dropout", 0.1)}


def _write_summary(model):
    poolings = {ours: theirs for theirs, ours in _POOLINGS.items()}
    if model.pooling not in poolings:
        raise ValueError(f"transformers has no pooling {model.pooling!r}, only {sorted(poolings)}")
    return {
        **_SUMMARY,
        "summary_type": poolings[model.pooling],
        "summary_last_dropout": model.dropout,
    }


def _read_classes(config, file):
    names = config.get("id2label")
    if not names:
        return {"num_classes": config.get("num_labels", 2), "class_names": None}
    names = [names[key] for key in sorted(names, key=int)]
    are_invented = names == _invented_names(len(names))
    return {"num_classes": len(names), "class_names": None if are_invented else names}


def _write_classes(model):
    return _labels(model.class_names or _invented_names(model.num_classes))


def _invented_names(num_classes):
    return [f"LABEL_{i}" for i in range(num_classes)]


def _labels(names):
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def has_numbers(config: dict[str, Any]) -> bool:
    """Whether the labels are numbers: a single one, or several that have no names."""
    if num_labels(config) == 1:
        return True
    has_names = _read_classes(config, None)["class_names"] is not None
    return config.get("problem_type") == "regression" and not has_names


def _read_numbers(config, file):
    return {"num_outputs": num_labels(config)} if has_numbers(config) else {}


def _numbers(count):
    return {**_labels(_invented_names(count)), "problem_type": "regression"}


def _read_token_classes(config, file):
    if SIMPLE_QUESTION_ANSWERING in config.get("architectures", ()):
        return {"num_classes": 2, "class_names": ["start", "end"], "activation": "linear"}
    classes = _read_classes(config, file)
    # A softmax over one class would always be 1.
    return {**classes, "activation": "softmax" if classes["num_classes"] > 1 else "linear"}


def _read_problem_type(config, file):
    default = "regression" if num_labels(config) == 1 else "single_label_classification"
    return {"activation": choose(config, "problem_type", default, _PROBLEM_TYPES, file)}


def _write_problem_type(model):
    problem_types = {ours: theirs for theirs, ours in _PROBLEM_TYPES.items()}
    return {"problem_type": problem_types[model.activation]}


def _refuse_untied_logits(config, file):
    if not config.get("tie_word_embeddings", True):
        raise ValueError(
            f"{file} has `tie_word_embeddings` false: 'lm_loss.weight' is not the embeddings, as "
            "it always is in XLNetPermutationLM. The encoder can be loaded by itself"
        )
    return {}


def num_labels(config: dict[str, Any]) -> int:
    """Returns the number of labels: transformers counts their names; there are 2 by default."""
    return _read_classes(config, None)["num_classes"]


# What tasks list as `config`. Another name is an argument that has this name there too.
_GROUPS = {
    # `pooling` and `dropout` of models with a `SequenceSummary`.
    "summary": Group(_read_summary, _write_summary),
    # `num_classes` and `class_names`.
    "classes": Group(_read_classes, _write_classes),
    # The same, and the `activation` that follows from them.
    "token_classes": Group(_read_token_classes, _write_classes),
    # `activation`.
    "problem_type": Group(_read_problem_type, _write_problem_type),
    # `num_outputs`: labels without names, which are numbers.
    "numbers": Group(_read_numbers, write=lambda model: _numbers(model.num_outputs)),
    # No argument: one of these.
    "one_label": Group(read=lambda config, file: {}, write=lambda model: _numbers(1)),
    # No argument: the softmax uses the token embeddings.
    "tied_logits": Group(read=_refuse_untied_logits, write=lambda model: {}),
}


def group_of(name: str) -> Group:
    """Returns the `Group` of a name in the `config` of a task."""
    same = Group(
        read=lambda config, file: {name: config[name]} if name in config else {},
        write=lambda model: {name: getattr(model, name)},
    )
    return _GROUPS.get(name, same)

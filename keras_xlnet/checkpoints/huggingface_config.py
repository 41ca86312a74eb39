"""What `config.json` of Hugging Face's transformers says, in our words and back."""

import keras

from keras_xlnet.checkpoints.tasks import backbone_of
from keras_xlnet.layers import gelu_tanh
from keras_xlnet.presets.json_file import read_json

# Theirs -> ours. `gelu` is the erf form in both; the original's, and ours by default, is tanh.
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_POOLINGS = {"last": "last", "first": "first", "mean": "mean", "cls_index": "cls"}
_PROBLEMS = {
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
# Two logits for each token, where an answer starts and where it ends: a token classifier here.
SIMPLE_QUESTION_ANSWERING = "XLNetForQuestionAnsweringSimple"
ARCHITECTURES = {
    None: "XLNetModel",
    "permutation_lm": "XLNetLMHeadModel",
    "text_classifier": "XLNetForSequenceClassification",
    "text_regressor": "XLNetForSequenceClassification",
    "token_classifier": "XLNetForTokenClassification",
    "multiple_choice": "XLNetForMultipleChoice",
    "question_answering": "XLNetForQuestionAnswering",
}


def read_config(file):
    """What `config.json` says, without what is null: that is the same as nothing said.

    Raises:
        ValueError: If it is no JSON, or a value that is looked at is of another type.
    """
    config = {key: value for key, value in read_json(file).items() if value is not None}
    for key, types in _TYPES.items():
        if key in config and not isinstance(config[key], types):
            expected = " or ".join(kind.__name__ for kind in types)
            raise ValueError(f"{file} has `{key}` {config[key]!r}, expected {expected}")
    labels = config.get("id2label", {})
    if not all(key.isdecimal() and isinstance(name, str) for key, name in labels.items()):
        raise ValueError(f"{file} has `id2label` {labels}, expected names by number")
    return config


def fixed_arguments(config, file):
    """The arguments of `XLNetBackbone` that no override may change.

    Raises:
        ValueError: If the configuration is not an XLNet's.
    """
    if config.get("model_type") != "xlnet":
        raise ValueError(f"{file} is of `model_type` {config.get('model_type')!r}, not 'xlnet'")
    missing = sorted(set(_REQUIRED) - set(config))
    if missing:
        raise ValueError(f"{file} has no {missing}")
    arguments = {ours: config[theirs] for theirs, ours in _REQUIRED.items()}
    arguments["head_dim"] = config.get("d_head")
    arguments["layer_norm_epsilon"] = config.get("layer_norm_eps", 1e-12)
    return arguments


def default_arguments(config, task, file):
    """The arguments of `XLNetBackbone` that are the configuration's unless the caller's differ."""
    activation = config.get("ff_activation", "gelu")
    if activation not in _ACTIVATIONS:
        raise ValueError(
            f"{file} has `ff_activation` {activation!r}, but only {sorted(_ACTIVATIONS)} are known"
        )
    dropout = config.get("dropout", 0.1)
    clamp_length = config.get("clamp_len", -1)
    attention_type = config.get("attn_type", "bi")
    arguments = {
        "activation": _ACTIVATIONS[activation],
        "dropout": dropout,
        "attention_dropout": dropout,
        "attention_type": attention_type,
        "clamp_length": clamp_length if clamp_length > 0 else None,
        # Not looked at for "bi", there.
        "same_length": attention_type == "uni" and config.get("same_length", False),
        "kernel_initializer": keras.initializers.RandomNormal(
            stddev=config.get("initializer_range", 0.02)
        ),
    }
    if task in (None, "permutation_lm"):
        # What is fine-tuned has no memory, there and here.
        arguments["memory_length"] = config.get("mem_len")
        arguments["reuse_length"] = config.get("reuse_len") if config.get("mem_len") else None
        arguments["bidirectional_data"] = config.get("bi_data", False)
    return arguments


def task_arguments(config, task, file):
    """The arguments of a task model that the configuration suggests."""
    if task == "question_answering":
        return {key: config[key] for key in ("start_n_top", "end_n_top") if key in config}
    if task == "token_classifier":
        if SIMPLE_QUESTION_ANSWERING in (config.get("architectures") or ()):
            return {"num_classes": 2, "class_names": ["start", "end"], "activation": "linear"}
        arguments = _classes(config)
        # A softmax over one class would always be 1.
        return {**arguments, "activation": "softmax" if arguments["num_classes"] > 1 else "linear"}
    if task not in ("text_classifier", "text_regressor", "multiple_choice"):
        return {}
    arguments = _summary(config, file)
    if task != "text_classifier":
        return arguments
    arguments |= _classes(config)
    default = "regression" if arguments["num_classes"] == 1 else "single_label_classification"
    problem = config.get("problem_type", default)
    if problem not in _PROBLEMS:
        raise ValueError(f"{file} has `problem_type` {problem!r}, not one of {sorted(_PROBLEMS)}")
    return {**arguments, "activation": _PROBLEMS[problem]}


def task_of(config):
    """The task that the configuration is of; `None` for an encoder or an unknown class."""
    architecture = str(next(iter(config.get("architectures", ())), None))
    if architecture == SIMPLE_QUESTION_ANSWERING:
        return "token_classifier"
    if architecture == ARCHITECTURES["text_regressor"]:
        is_number = _classes(config)["num_classes"] == 1
        return "text_regressor" if is_number else "text_classifier"
    tasks = {name: task for task, name in ARCHITECTURES.items()}
    return tasks.get(architecture)


def config_of(model, task):
    """What `config.json` says of a model.

    Raises:
        ValueError: If transformers has nothing that computes the same.
    """
    backbone = backbone_of(model)
    dim = backbone.num_heads * backbone.head_dim
    if dim != backbone.hidden_dim:
        raise ValueError(
            "transformers knows only models with num_heads * head_dim = hidden_dim. Received: "
            f"{backbone.num_heads} * {backbone.head_dim} and {backbone.hidden_dim}"
        )
    return {
        "architectures": [ARCHITECTURES[task]],
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
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 5,
        "dtype": "float32",
        **_task_config(model, task),
    }


def _classes(config):
    """Number and names of the classes; transformers counts the names, two by default."""
    names = config.get("id2label")
    if not names:
        return {"num_classes": config.get("num_labels", 2), "class_names": None}
    names = [names[key] for key in sorted(names, key=int)]
    invented = names == [f"LABEL_{i}" for i in range(len(names))]
    return {"num_classes": len(names), "class_names": None if invented else names}


def _summary(config, file):
    expected = {"summary_use_proj": True, "summary_activation": "tanh"}
    for key, value in expected.items():
        if config.get(key, value) != value:
            raise ValueError(f"{file} has `{key}` {config[key]!r}, but only {value!r} is known")
    if config.get("summary_proj_to_labels"):
        raise ValueError(f"{file} has `summary_proj_to_labels`, which is not known")
    pooling = config.get("summary_type", "last")
    if pooling not in _POOLINGS:
        raise ValueError(f"{file} has `summary_type` {pooling!r}, not one of {sorted(_POOLINGS)}")
    dropout = config.get("summary_last_dropout", 0.1)
    return {"pooling": _POOLINGS[pooling], "dropout": dropout}


def _task_config(model, task):
    if task == "question_answering":
        return {"start_n_top": model.start_n_top, "end_n_top": model.end_n_top}
    config = {}
    if task in ("text_classifier", "text_regressor", "multiple_choice"):
        poolings = {ours: theirs for theirs, ours in _POOLINGS.items()}
        if model.pooling not in poolings:
            raise ValueError(
                f"transformers has no pooling {model.pooling!r}, only {sorted(poolings)}"
            )
        config = {
            "summary_type": poolings[model.pooling],
            "summary_use_proj": True,
            "summary_activation": "tanh",
            "summary_last_dropout": model.dropout,
        }
    if task in ("text_classifier", "token_classifier"):
        names = model.class_names or [f"LABEL_{i}" for i in range(model.num_classes)]
        config |= _label_config(names)
    if task == "text_classifier":
        problems = {ours: theirs for theirs, ours in _PROBLEMS.items()}
        config["problem_type"] = problems[model.activation]
    if task == "text_regressor":
        config |= {**_label_config(["LABEL_0"]), "problem_type": "regression"}
    return config


def _label_config(names):
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def _activation_name(activation):
    if activation is gelu_tanh:
        return "gelu_new"
    name = getattr(activation, "__name__", None)
    if name not in ("gelu", "relu", "silu"):
        raise ValueError(
            f"transformers is known to have gelu, gelu_tanh, relu and silu. Received: a model with "
            f"{name!r}"
        )
    return name

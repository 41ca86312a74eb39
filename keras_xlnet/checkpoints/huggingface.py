"""Directories of Hugging Face's transformers, in and out. Nothing is ever unpickled."""

import json
import pathlib
import warnings

import numpy as np

from keras_xlnet.checkpoints import huggingface_config, huggingface_files, huggingface_tokenizer
from keras_xlnet.checkpoints.huggingface_names import (
    LAYER_PATTERN,
    MASK_EMBEDDING,
    PREFIX,
    backbone_places,
    head_places,
)
from keras_xlnet.checkpoints.places import OpenCheckpoint, values_of
from keras_xlnet.checkpoints.tasks import backbone_of, build, check_task, task_of, tokenizer_to_save
from keras_xlnet.presets import file_in, local_directory
from keras_xlnet.text import XLNetPreprocessor

_OPTIONAL = (
    "*.safetensors",
    huggingface_files.INDEX,
    *huggingface_tokenizer.FILES,
)


def load_huggingface(directory, task=None, **overrides):
    """Loads an XLNet that Hugging Face's transformers wrote, as `model.safetensors`.

    It computes what transformers computes from the same files, with one thing to know: `gelu` is
    the erf form there, and the original trained its models with the tanh form. The released
    models say `gelu` all the same. For weights that come from the original pass
    `activation="gelu_tanh"`; a configuration that transformers never wrote again gives a warning.

    A text task comes with the preprocessor of the directory's tokenizer files, if there are any.

    Args:
        directory: Directory with `config.json` and `model.safetensors` (or its shards), or
            `hf://owner/name`, which needs `huggingface_hub`.
        task: `None` for the encoder, `"permutation_lm"`, `"text_classifier"`, `"text_regressor"`,
            `"token_classifier"` (which an `XLNetForQuestionAnsweringSimple` is, too),
            `"multiple_choice"` or `"question_answering"`.
        **overrides: Arguments of `XLNetBackbone`, and of the model of the task, that the weights do
            not fix, such as `activation` (of the backbone), `dropout` (of both), `memory_length`,
            `dtype` or `preprocessor`.

    Returns:
        An `XLNetBackbone`, or the model of the task. A head that the files do not have keeps its
        initial weights, and a warning names them.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files are damaged, contradict each other, are another model's or
            pickles, or an argument is not as above. The message names the file and the tensor.

    Source: transformers, `models/xlnet`.
    """
    return open_huggingface(directory, task, overrides).fill()


def open_huggingface(directory, task=None, overrides=None):
    """Builds the model of `load_huggingface`, and returns it as an `OpenCheckpoint`."""
    check_task(task)
    overrides = overrides or {}
    directory = local_directory(directory, [huggingface_files.CONFIG], _OPTIONAL)
    config_file = file_in(directory, huggingface_files.CONFIG)
    config = huggingface_config.read_config(config_file)
    fixed = huggingface_config.fixed_arguments(config, config_file)
    defaults = huggingface_config.default_arguments(config, task, config_file)
    if not overrides.get("memory_length", defaults.get("memory_length")):
        defaults.pop("reuse_length", None)
    files = huggingface_files.HuggingFaceCheckpoint(directory, config)
    if task == "permutation_lm" and not config.get("tie_word_embeddings", True):
        raise ValueError(
            f"{config_file} has `tie_word_embeddings` false: 'lm_loss.weight' of {files} is not "
            "the embeddings, as it always is here. What can be loaded is the encoder"
        )
    _warn_of_gelu(config, config_file, overrides)
    head = huggingface_config.task_arguments(config, task, config_file)
    if task in ("text_classifier", "text_regressor") and "preprocessor" not in overrides:
        head["preprocessor"] = _preprocessor(directory)
    model = build(task, fixed, overrides, head, defaults, config_file=config_file, files=files)
    prefix = PREFIX if any(name.startswith(PREFIX) for name in files.shapes) else ""
    is_simple = "qa_outputs.weight" in files.shapes
    logits = "qa_outputs" if is_simple else "classifier"
    return OpenCheckpoint(
        model,
        files,
        list(backbone_places(backbone_of(model), prefix)),
        list(head_places(model, task, prefix, logits)) if task else [],
        LAYER_PATTERN,
    )


def save_huggingface(model, directory, tokenizer=None):
    """Writes a directory that transformers loads, and that computes the same there.

    The weights are float32, in `model.safetensors`. Attention dropout is `dropout` there: theirs
    has one rate.

    Args:
        model: An `XLNetBackbone` or a task model.
        directory: Where to write. It is made if it does not exist.
        tokenizer: An `XLNetTokenizer`, whose files go with the weights. `None`: that of the
            model's preprocessor, if it has one.

    Raises:
        ValueError: If transformers has no such model: another activation, heads that do not fill
            the hidden dimension, pooling by attention, a quantized model.
    """
    task = task_of(model)
    tokenizer = tokenizer_to_save(model, tokenizer)
    config = huggingface_config.config_of(model, task)
    prefix = PREFIX if task else ""
    places = list(backbone_places(backbone_of(model), prefix))
    if task:
        places += head_places(model, task, prefix)
    values = values_of(places)
    # A model for other tasks has no mask embedding; theirs always has one.
    values.setdefault(prefix + MASK_EMBEDDING, np.zeros((1, 1, config["d_model"]), "float32"))
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    huggingface_files.write_weights(directory, values)
    text = json.dumps(config, indent=2, sort_keys=True)
    (directory / huggingface_files.CONFIG).write_text(text + "\n", encoding="utf-8")
    if tokenizer is not None:
        huggingface_tokenizer.write_tokenizer(directory, tokenizer)


def _preprocessor(directory):
    tokenizer = huggingface_tokenizer.read_tokenizer(directory)
    return None if tokenizer is None else XLNetPreprocessor(tokenizer)


def _warn_of_gelu(config, file, overrides):
    is_conversion = "transformers_version" not in config
    if (
        is_conversion
        and config.get("ff_activation", "gelu") == "gelu"
        and "activation" not in overrides
    ):
        warnings.warn(
            f"{file} says `gelu`, which is the erf form in transformers and so here. If the "
            "weights are a conversion of the original's, they were trained with the tanh form: "
            "pass activation='gelu_tanh'",
            stacklevel=3,
        )

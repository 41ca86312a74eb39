"""Loads and saves directories of Hugging Face's transformers. Nothing is unpickled."""

import dataclasses
import os
import pathlib
import warnings
from typing import Any

import keras
import numpy as np

from keras_xlnet.checkpoints import (
    huggingface_config,
    huggingface_tokenizer,
    sentence_transformers,
    transformer_xl,
)
from keras_xlnet.checkpoints.family import Family, loads
from keras_xlnet.checkpoints.opening import OpenCheckpoint, build, tokenizer_to_save
from keras_xlnet.checkpoints.tasks import (
    get_task,
    match_model,
    not_stated,
    task_of_config,
    task_of_model,
)
from keras_xlnet.checkpoints.weight_mapping import layer_prefixes, values_to_save
from keras_xlnet.checkpoints.xlnet_weights import ENCODER, MASK_EMBEDDING
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preset_files import file_in, local_directory
from keras_xlnet.preset_files.files import CONFIG, WEIGHTS, read_json, write_json
from keras_xlnet.preset_files.safetensors_files import SafetensorsFiles, write_safetensors
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.types import PathLike

_INDEX = "model.safetensors.index.json"
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
_OPTIONAL = (
    "*.safetensors",
    _INDEX,
    *huggingface_tokenizer.FILES,
    *sentence_transformers.FILES,
)
# The prefix of the names of the encoder's weights, if the model has a head.
_PREFIX = "transformer."
_EMBEDDER = "text_embedder"


@loads
def load_huggingface(directory: PathLike, task: str | None = None, **overrides: Any) -> Any:
    """Loads an XLNet or a Transformer-XL that transformers saved as `model.safetensors`.

    The model computes the same as transformers from the same files. In transformers, `gelu` is
    the erf form. The original trained its models with the tanh form, but the released models on
    the Hub have `gelu` in their configuration. For weights that come from the
    original pass `activation="gelu_tanh"`. If the configuration was not written by transformers,
    a warning says so.

    A task that takes text comes with the preprocessor of the directory's tokenizer files, if there
    are any.

    Args:
        directory: Directory with `config.json` and `model.safetensors` (or its shards), or
            `hf://owner/name`, which needs `huggingface_hub`.
        task: `None` for the encoder, or a name in `keras_xlnet.checkpoints.TASKS`, such as
            `"text_classifier"`. An `XLNetForQuestionAnsweringSimple` is a `"token_classifier"`, a
            `TransfoXLLMHeadModel` a `"language_model"`, which attends to an empty memory, as
            transformers does, unless `attend_to_empty_memory=False`.
        **overrides: Arguments of `XLNetBackbone`, and of the task's model, that the weights do not
            fix, such as `activation` (of the backbone), `dropout` (of both), `memory_length`,
            `dtype` or `preprocessor`.

    Returns:
        An `XLNetBackbone`, or the task's model. A head that is not in the files keeps its initial
        weights, and a warning names them.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files are damaged, contradict each other, are pickles or of another
            model, or an argument is invalid. The message names the file and the weight.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> keras_xlnet.checkpoints.save_huggingface(backbone, directory)
    >>> keras_xlnet.checkpoints.load_huggingface(directory, dropout=0.0).hidden_dim
    16

    Source: transformers, `models/xlnet`.
    """
    entry = get_task(task, HUGGINGFACE)
    directory = local_directory(directory, [CONFIG], _OPTIONAL)
    config_file = file_in(directory, CONFIG)
    config = huggingface_config.read_config(config_file)
    is_language_model = config.get("model_type") == transformer_xl.MODEL_TYPE
    if not entry.has_backbone or (task is None and is_language_model):
        return _open_language_model(directory, config, config_file, overrides)
    fixed = huggingface_config.fixed_arguments(config, config_file)
    defaults = huggingface_config.default_arguments(config, entry.has_memory, config_file)
    if config.get("bi_data") and "bidirectional_data" not in defaults | overrides:
        raise ValueError(
            f"{config_file} has `bi_data` True, with which transformers takes the second half of "
            "each batch for text in reverse. Pass `bidirectional_data`"
        )
    if not overrides.get("memory_length", defaults.get("memory_length")):
        defaults.pop("reuse_length", None)
    files = open_files(directory, config)
    _warn_of_gelu(config, config_file, overrides)
    head: dict[str, Any] = {}
    preprocessing: dict[str, Any] = {}
    for group in entry.groups:
        head |= group.read(config, config_file)
    if task == _EMBEDDER and sentence_transformers.is_sentence_transformer(directory):
        head, preprocessing = sentence_transformers.read_modules(directory)
    if entry.takes_text and "preprocessor" not in overrides:
        tokenizer = huggingface_tokenizer.read_tokenizer(directory)
        head["preprocessor"] = entry.preprocessor(tokenizer, **preprocessing)
        _warn_of_segments(config, directory, tokenizer)
    model = build(task, fixed, overrides, head, defaults, config_file=config_file, files=files)
    has_prefix = any(name.startswith(_PREFIX) for name in files.shapes)
    matches = match_model(model, HUGGINGFACE, found=files.shapes)
    return OpenCheckpoint(
        model,
        files,
        matches if has_prefix else _without_prefix(matches),
        {
            prefix if has_prefix else prefix.removeprefix(_PREFIX)
            for prefix in layer_prefixes(ENCODER, HUGGINGFACE)
        },
        # Older releases wrote `torch_dtype`.
        config.get("dtype") or config.get("torch_dtype"),
    )


def _open_language_model(directory, config, config_file, overrides):
    if config.get("model_type") != transformer_xl.MODEL_TYPE:
        raise ValueError(
            f"{config_file} has the `model_type` {config.get('model_type')!r}, not "
            f"{transformer_xl.MODEL_TYPE!r}"
        )
    return transformer_xl.open_language_model(
        *transformer_xl.arguments_of_config(config, config_file),
        overrides,
        HUGGINGFACE,
        config_file=config_file,
        files=open_files(directory, config),
        dtype=config.get("dtype") or config.get("torch_dtype"),
    )


def save_huggingface(
    model: keras.Model, directory: PathLike, tokenizer: XLNetTokenizer | None = None
) -> None:
    """Writes a directory that transformers loads, as a model that computes the same.

    An `XLNetTextEmbedder` becomes a directory that `SentenceTransformer` loads, whose vectors are
    the same, with mean pooling for example, and of length 1.

    The weights are float32, in `model.safetensors`. Attention dropout is not saved: transformers
    has one rate, `dropout`.

    Args:
        model: An `XLNetBackbone` or a task model.
        directory: Where to write. It is created if it does not exist.
        tokenizer: An `XLNetTokenizer`, written with the weights. `None`: that of
            the model's preprocessor, if it has one.

    Raises:
        ValueError: If transformers has no such model: another activation, heads that do not fill
            the hidden dimension, pooling by attention, a quantized model.

    Example:

    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> keras_xlnet.checkpoints.save_huggingface(backbone, directory)
    >>> sorted(path.name for path in directory.iterdir())
    ['config.json', 'model.safetensors']

    Source: transformers, `models/xlnet`.
    """
    task = task_of_model(model)
    entry = get_task(task, HUGGINGFACE)
    tokenizer = tokenizer_to_save(model, tokenizer)
    config = _xlnet_config(model, entry) if entry.has_backbone else transformer_xl.config_of(model)
    if isinstance(tokenizer, XLNetTokenizer):
        tokens = {"bos": "<s>", "eos": "</s>", "pad": "<pad>"}
        config |= {f"{key}_token_id": tokenizer.token_to_id(t) for key, t in tokens.items()}
    if task == _EMBEDDER:
        sentence_transformers.check_embedder(model)
    matches = match_model(model, HUGGINGFACE)
    has_head = task not in (None, _EMBEDDER)
    values = values_to_save(matches if has_head else _without_prefix(matches))
    if entry.has_backbone:
        # transformers has a mask embedding in every XLNet; we have it only where it is used.
        (name,) = MASK_EMBEDDING.names("huggingface")
        name = name if has_head else name.removeprefix(_PREFIX)
        values.setdefault(name, np.zeros((1, 1, config["d_model"]), "float32"))
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    write_safetensors(directory / WEIGHTS, values)
    write_json(directory / CONFIG, config, sort_keys=True)
    length = getattr(getattr(model, "preprocessor", None), "sequence_length", None)
    if tokenizer is not None:
        # transformers pools over padding too: the first or the last token has to be a real one.
        side = "right" if getattr(model, "pooling", None) == "first" else "left"
        huggingface_tokenizer.write_tokenizer(directory, tokenizer, side, length)
    # It may be of another model.
    (directory / sentence_transformers.MODULES).unlink(missing_ok=True)
    if task == _EMBEDDER:
        sentence_transformers.write_modules(directory, model, length)


def _xlnet_config(model, entry):
    config = {
        "architectures": [entry.architectures[0]],
        **huggingface_config.encoder_entries(backbone_of(model)),
    }
    for group in entry.groups:
        config |= group.write(model)
    return config


def _without_prefix(matches):
    return [dataclasses.replace(match, name=match.name.removeprefix(_PREFIX)) for match in matches]


def open_files(
    directory: pathlib.Path, config: dict[str, Any], architecture: str = "XLNetModel"
) -> SafetensorsFiles:
    """Opens `model.safetensors` or its shards.

    Args:
        directory: Path of the directory.
        config: Dict, its `config.json`.
        architecture: Class of transformers to name in the error for a pickle, if the configuration
            names none.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If there are only pickles, or a file is damaged.
    """
    index: dict[str, str] = {}
    if (directory / _INDEX).exists() and not (directory / WEIGHTS).exists():
        index = _read_index(file_in(directory, _INDEX))
    else:
        _refuse_pickles(directory, config, architecture)
    names = sorted(set(index.values())) or [WEIGHTS]
    paths = [file_in(directory, name) for name in names]
    files = SafetensorsFiles(paths, f"the checkpoint in {directory}")
    for name, file in index.items():
        if name not in files.shapes or os.path.basename(files.file_of(name)) != file:
            raise ValueError(f"{directory / _INDEX} says that {name!r} is in {file}: it is not")
    return files


def _read_index(file):
    index = read_json(file).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(v, str) for v in index.values()):
        raise ValueError(f"{file} has no `weight_map` from names to files")
    return index


def _refuse_pickles(directory, config, architecture):
    pickles = [name for name in _PICKLES if (directory / name).exists()]
    if pickles and not (directory / WEIGHTS).exists():
        (architecture, *_) = config.get("architectures") or [architecture]
        raise ValueError(
            f"{directory / pickles[0]} is a PyTorch pickle, which can run any code when it is "
            "loaded, so it is not read. If you trust it, convert it where transformers and torch "
            f'are installed: python -c "from transformers import {architecture} as M; '
            f"M.from_pretrained('{directory}').save_pretrained('{directory}-safetensors')\""
        )


def _warn_of_gelu(config, file, overrides):
    is_conversion = "transformers_version" not in config
    is_gelu = config.get("ff_activation", "gelu") == "gelu"
    if is_conversion and is_gelu and "activation" not in overrides:
        warnings.warn(
            f"{file} has the activation `gelu`, which is the erf form. If the weights were "
            "converted from the original's, they were trained with the tanh form: pass "
            "activation='gelu_tanh'",
            stacklevel=4,
        )


def _warn_of_segments(config, directory, tokenizer):
    version = str(config.get("transformers_version", ""))
    if tokenizer and not huggingface_tokenizer.has_token_type_ids(directory, version):
        warnings.warn(
            f"The tokenizer in {directory} makes no `token_type_ids` in transformers {version}, "
            "which then takes all tokens, `<cls>` too, for segment 0, and computes other numbers. "
            "Here `<cls>` is in segment 2, as in the original. If the model was trained there, "
            "pass inputs with `segment_ids` of 0; if not, add `model_input_names` to "
            "tokenizer_config.json",
            stacklevel=4,
        )


def _detect_task(path):
    if sentence_transformers.is_sentence_transformer(path):
        return _EMBEDDER
    return task_of_config(huggingface_config.read_config(file_in(path, CONFIG)))


def _left_out(model):
    task = task_of_model(model)
    if task == _EMBEDDER:
        return not_stated(model, ("remember_segment_ids",), {"pooling", "prompts"})
    groups, notes = get_task(task).groups, []
    if getattr(model, "pooling", None) == "mean":
        notes.append("pooling='mean' over real tokens only")
    config: dict[str, Any] = {}
    for group in groups:
        config |= group.write(model)
    stated = {name for group in groups for name in group.read(config, CONFIG)}
    return not_stated(model, ("remember_segment_ids",), stated, notes)


HUGGINGFACE = Family(
    "huggingface",
    owner="Hugging Face's transformers",
    files="directories of transformers",
    detect=lambda path: "model_type" in huggingface_tokenizer.read_if_there(path, CONFIG),
    load=load_huggingface,
    save=save_huggingface,
    detect_task=_detect_task,
    has_task=lambda task: task.architectures,
    tokenizer=huggingface_tokenizer.read_tokenizer,
    left_out=_left_out,
)

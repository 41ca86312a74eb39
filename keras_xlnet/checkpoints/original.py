"""Loads and saves checkpoints of the original TensorFlow 1 implementation."""

import dataclasses
import json
import pathlib
from typing import Any

import keras

from keras_xlnet.checkpoints import original_files, transformer_xl
from keras_xlnet.checkpoints.family import Family, loads
from keras_xlnet.checkpoints.opening import OpenCheckpoint, build, tokenizer_to_save
from keras_xlnet.checkpoints.tasks import (
    get_task,
    match_model,
    name_pattern,
    not_stated,
    task_of_model,
    task_of_variables,
)
from keras_xlnet.checkpoints.weight_mapping import layer_prefixes, values_to_save
from keras_xlnet.checkpoints.xlnet_weights import ENCODER
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preset_files import file_in
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.types import PathLike

# Arguments that change the numbers and are not in any file: flags of the original's scripts.
_UNSTATED = (
    *"attention_type memory_length reuse_length clamp_length same_length".split(),
    *"bidirectional_data remember_segment_ids".split(),
)
# An XLNet's are in its file, or refused.
_UNSTATED_OF_TRANSFORMER_XL = ("normalize_first", "layer_norm_epsilon", "activation")


@loads
def load_original(
    path: PathLike,
    task: str | None = None,
    *,
    task_name: str | None = None,
    config_file: PathLike | None = None,
    **overrides: Any,
) -> Any:
    """Loads a checkpoint of the original XLNet or Transformer-XL, released or fine-tuned.

    Variables of an optimizer (slots, `global_step`) are ignored. A task that takes text comes with
    the preprocessor of the original's cased models if the directory has a `spiece.model`.

    Args:
        path: Directory with `xlnet_config.json` and `xlnet_model.ckpt.*` (or one other
            checkpoint), or the prefix of a checkpoint, such as `run/model.ckpt-4000`.
        task: `None` for the encoder, `"permutation_lm"` for the whole pretraining model, or
            `"text_classifier"`, `"text_regressor"`, `"multiple_choice"`, `"question_answering"`;
            `"language_model"` for a checkpoint of Transformer-XL (kimiyoung/transformer-xl). Its
            `memory_length`, `same_length`, `clamp_length` and `activation` were flags of the
            authors' scripts: pass them. `same_length` of their TensorFlow code is
            `memory_length + 1`.
        task_name: Value of the original's `--task_name` (or `--cls_scope`), in lower case. Only
            needed if the checkpoint has heads of several tasks.
        config_file: Path of `xlnet_config.json`, if it is not next to the checkpoint: the
            original's fine-tuning leaves it with the pretrained model.
        **overrides: Arguments of `XLNetBackbone`, and of the task's model, that a checkpoint does
            not fix, such as `dropout`, `memory_length`, `dtype`, `num_classes` or `preprocessor`.

    Returns:
        An `XLNetBackbone`, or the task's model, with the weights of the checkpoint. A head that is
        not in the checkpoint keeps its initial weights, and a warning names them.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files are damaged, contradict each other or are of another model, or an
            argument is invalid. The message names the file and the variable.

    Example:

    >>> import tempfile
    >>> directory = tempfile.mkdtemp()
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> keras_xlnet.checkpoints.save_original(backbone, directory)
    >>> keras_xlnet.checkpoints.load_original(directory, dropout=0.0).hidden_dim
    16

    Source: zihangdai/xlnet, `xlnet.py`, `modeling.py` and `function_builder.py`.
    """
    entry = get_task(task, ORIGINAL)
    files = original_files.OriginalCheckpoint(path)
    is_language_model = task_of_variables(files.shapes) == "language_model"
    if not entry.has_backbone or (task is None and is_language_model):
        fixed = transformer_xl.arguments_of_variables(files)
        opened = transformer_xl.open_language_model(
            fixed,
            {"attend_to_empty_memory": bool(overrides.get("memory_length"))},
            overrides,
            ORIGINAL,
            config_file=files,
            files=files,
        )
        matches = transformer_xl.without_identities(opened.matches, files)
        return dataclasses.replace(opened, matches=matches)
    config_file = config_file or file_in(files.directory, original_files.CONFIG)
    fixed = original_files.read_config(config_file)
    task_name = task_name or _find_task_name(files, entry.sign)
    head = _sizes(files, entry, task_name, overrides)
    if entry.takes_text and "preprocessor" not in overrides:
        head["preprocessor"] = entry.preprocessor(original_files.read_tokenizer(files.directory))
    model = build(task, fixed, overrides, head, config_file=config_file, files=files)
    matches = match_model(model, ORIGINAL, task_name)
    return OpenCheckpoint(model, files, matches, layer_prefixes(ENCODER, ORIGINAL))


def save_original(
    model: keras.Model,
    directory: PathLike,
    task_name: str = "task",
    tokenizer: XLNetTokenizer | None = None,
) -> None:
    """Writes a checkpoint that the original's code loads.

    The files are named as those of the released models: `xlnet_config.json`, `xlnet_model.ckpt.*`
    and, with a tokenizer, `spiece.model`. The weights are float32. Settings that a checkpoint of
    the original does not contain (memory, `attention_type`, dropout, ...) are flags of its scripts.

    Args:
        model: An `XLNetBackbone`, or the model of a task that the original has.
        directory: Where to write. It is created if it does not exist.
        task_name: Value of `--task_name` (or `--cls_scope`) to load it with, in lower case: part
            of the names of a classifier's and a regressor's head.
        tokenizer: An `XLNetTokenizer`. `None`: the tokenizer of the model's
            preprocessor, if it has one.

    Raises:
        ValueError: If the original has no such model: another activation, another epsilon, a token
            classifier, a quantized model.

    Example:

    >>> import pathlib, tempfile
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> backbone = keras_xlnet.models.XLNetBackbone(40, 1, 2, 16, 32)
    >>> keras_xlnet.checkpoints.save_original(backbone, directory)
    >>> (directory / "xlnet_config.json").exists()
    True

    Source: zihangdai/xlnet, `model_utils.py`.
    """
    entry = get_task(task_of_model(model), ORIGINAL)
    tokenizer = tokenizer_to_save(model, tokenizer)
    config = original_files.config_of(backbone_of(model)) if entry.has_backbone else None
    values = values_to_save(match_model(model, ORIGINAL, task_name))
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    original_files.write_checkpoint(directory / original_files.PREFIX, values)
    if config is not None:  # The settings of Transformer-XL are flags of its scripts.
        # As the original writes it, without a newline at its end.
        text = json.dumps(config, indent=4, sort_keys=True)
        (directory / original_files.CONFIG).write_text(text, encoding="utf-8")
    if tokenizer is not None:
        tokenizer.save_assets(str(directory))


def _find_task_name(files, sign):
    """Returns the `{task_name}` of the head in a checkpoint, `"*"` if it has none."""
    if "{task_name}" not in (sign or ""):
        return "*"
    matches = [name_pattern(sign).fullmatch(name) for name in sorted(files.shapes)]
    names = [match[1] for match in matches if match]
    if len(names) > 1:
        raise ValueError(f"{files} has several heads: pass one of {names} as `task_name`")
    return names[0] if names else "*"


def _sizes(files, entry, task_name, overrides):
    """Returns the arguments of the task's model that follow from shapes of variables."""
    sizes = {}
    for argument, path in entry.sizes.items():
        (row,) = (row for row in entry.weights if row.path == path)
        name = row.original.replace("{task_name}", task_name)
        if name in files.shapes:
            sizes[argument] = files.shapes[name][-1]
        elif argument not in overrides:
            raise ValueError(
                f"{files} has no fine-tuned {name!r}, whose shape is `{argument}`: pass "
                f"`{argument}`"
            )
    return sizes


def _is_original(path):
    if not path.is_dir():
        return True
    return (path / original_files.CONFIG).exists() or any(path.glob("*.index"))


def _left_out(model):
    entry = get_task(task_of_model(model))
    names = _UNSTATED if entry.has_backbone else (*_UNSTATED, *_UNSTATED_OF_TRANSFORMER_XL)
    return not_stated(model, names, entry.sizes)


ORIGINAL = Family(
    "original",
    owner="The original",
    files="original checkpoints",
    detect=_is_original,
    load=load_original,
    save=save_original,
    detect_task=lambda path: task_of_variables(original_files.OriginalCheckpoint(path).shapes),
    has_task=lambda task: task.sign,
    tokenizer=original_files.read_tokenizer,
    left_out=_left_out,
    flags={"config_file": str, "task_name": str},
)

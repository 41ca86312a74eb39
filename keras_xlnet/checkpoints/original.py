"""Checkpoints of the original TensorFlow 1 implementation, in and out."""

import json
import pathlib
import re

from keras_xlnet.checkpoints import original_files
from keras_xlnet.checkpoints.original_names import (
    HEAD_PATTERNS,
    LAYER_PATTERN,
    backbone_places,
    head_places,
)
from keras_xlnet.checkpoints.places import OpenCheckpoint, values_of
from keras_xlnet.checkpoints.tasks import backbone_of, build, check_task, task_of, tokenizer_to_save
from keras_xlnet.presets import file_in
from keras_xlnet.text import XLNetPreprocessor


def load_original(path, task=None, *, task_name=None, config_file=None, **overrides):
    """Loads a checkpoint of the original XLNet, as released or as its scripts fine-tune it.

    What an optimizer kept (slots, `global_step`) is left alone. A text task whose directory has a
    `spiece.model` comes with the preprocessor of the original's cased models.

    Args:
        path: Directory with `xlnet_config.json` and `xlnet_model.ckpt.*` (or one other
            checkpoint), or the prefix of a checkpoint, such as `run/model.ckpt-4000`.
        task: `None` for the encoder, `"permutation_lm"` for the whole pretraining model, or
            `"text_classifier"`, `"text_regressor"`, `"multiple_choice"`, `"question_answering"`.
        task_name: What the original's `--task_name` (or `--cls_scope`) was, in small letters.
            Only needed where the checkpoint has heads of several tasks.
        config_file: Path of `xlnet_config.json`, if it is not beside the checkpoint: the
            original's fine-tuning leaves it with the pretrained model.
        **overrides: Arguments of `XLNetBackbone`, and of the model of the task, that a checkpoint
            does not fix, such as `dropout`, `memory_length`, `dtype`, `num_classes` or
            `preprocessor`.

    Returns:
        An `XLNetBackbone`, or the model of the task, with the weights of the checkpoint. A head
        that the checkpoint does not have keeps its initial weights, and a warning names them.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files are damaged, contradict each other or are another model's, or an
            argument is not as above. The message names the file and the variable.

    Source: zihangdai/xlnet, `xlnet.py`, `modeling.py` and `function_builder.py`.
    """
    return open_original(path, task, task_name, config_file, overrides).fill()


def open_original(path, task=None, task_name=None, config_file=None, overrides=None):
    """Builds the model of `load_original`, and returns it as an `OpenCheckpoint`."""
    check_task(task)
    if task == "token_classifier":
        raise ValueError(
            "The original has no token classifier. Make one around `load_original(path)`"
        )
    files = original_files.OriginalCheckpoint(path)
    config_file = config_file or file_in(files.directory, original_files.CONFIG)
    fixed = original_files.read_config(config_file)
    task_name, head = _head(files, task, task_name, overrides or {})
    model = build(task, fixed, overrides or {}, head, config_file=config_file, files=files)
    return OpenCheckpoint(
        model,
        files,
        list(backbone_places(backbone_of(model))),
        list(head_places(model, task, task_name)) if task else [],
        LAYER_PATTERN,
    )


def save_original(model, directory, task_name="task", tokenizer=None):
    """Writes a checkpoint that the original's code loads.

    The files are those of the released models: `xlnet_config.json`, `xlnet_model.ckpt.*` and, with
    a tokenizer, `spiece.model`. The weights are float32. What a checkpoint of the original does
    not hold (memory, `attention_type`, dropout, ...) are flags of its scripts.

    Args:
        model: An `XLNetBackbone`, `XLNetPermutationLM`, `XLNetTextClassifier`,
            `XLNetTextRegressor`, `XLNetMultipleChoice` or `XLNetQuestionAnswering`.
        directory: Where to write. It is made if it does not exist.
        task_name: What `--task_name` (or `--cls_scope`) will be, in small letters: part of the
            names of a classifier's and a regressor's head.
        tokenizer: An `XLNetTokenizer`. `None`: that of the model's preprocessor, if it has one.

    Raises:
        ValueError: If the original has no such model: another activation, another epsilon, a token
            classifier, a quantized model.
    """
    task = task_of(model)
    tokenizer = tokenizer_to_save(model, tokenizer)
    backbone = backbone_of(model)
    config = original_files.config_of(backbone)
    places = list(backbone_places(backbone))
    if task:
        places += head_places(model, task, task_name)
    values = values_of(places)
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    original_files.write_checkpoint(directory / original_files.PREFIX, values)
    text = json.dumps(config, indent=4, sort_keys=True)
    (directory / original_files.CONFIG).write_text(text, encoding="utf-8")
    if tokenizer is not None:
        tokenizer.save_assets(str(directory))


def _head(files, task, task_name, overrides):
    """The scope of a fine-tuned head, and the arguments of the task that the files suggest."""
    head = {}
    if task in HEAD_PATTERNS:
        task_name = _find_scope(files, HEAD_PATTERNS[task], task_name)
        if "preprocessor" not in overrides:
            tokenizer = original_files.read_tokenizer(files.directory)
            head["preprocessor"] = tokenizer and XLNetPreprocessor(tokenizer)
    if task == "text_classifier":
        kernel = HEAD_PATTERNS[task].replace("(.+)", task_name)
        if kernel in files.shapes:
            head["num_classes"] = files.shapes[kernel][-1]
        elif "num_classes" not in overrides:
            raise ValueError(
                f"{files} has no fine-tuned {kernel!r}, which would tell the number of "
                "classes: pass `num_classes`"
            )
    return task_name, head


def _find_scope(files, pattern, task_name):
    if task_name is not None:
        return task_name
    matches = [re.fullmatch(pattern, name) for name in sorted(files.shapes)]
    names = [match[1] for match in matches if match]
    if len(names) > 1:
        raise ValueError(f"{files} has several heads: pass one of {names} as `task_name`")
    return names[0] if names else "*"

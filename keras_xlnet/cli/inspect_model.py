"""`xlnet inspect`: shows what a checkpoint contains and which weights are missing."""

import argparse
import pathlib
from collections.abc import Callable
from typing import Any

from keras_xlnet.checkpoints import detect_format, load_checkpoint, load_tokenizer
from keras_xlnet.checkpoints.bert import OpenBert
from keras_xlnet.checkpoints.huggingface import open_huggingface
from keras_xlnet.checkpoints.keras_hub import open_keras_hub
from keras_xlnet.checkpoints.keras_xlnet_h5 import open_keras_xlnet_h5
from keras_xlnet.checkpoints.original import open_original
from keras_xlnet.cli.arguments import (
    arguments_of_format,
    task_of,
)
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.preset_files import shipped_directory

_OPENERS: dict[str, Callable[..., Any]] = {
    "original": open_original,
    "huggingface": open_huggingface,
    "keras_hub": open_keras_hub,
    "keras_xlnet_h5": open_keras_xlnet_h5,
    "bert": OpenBert,
}
_SIZES = (
    "vocabulary_size num_layers num_heads head_dim hidden_dim intermediate_dim embedding_dim "
    "cutoffs div_val tie_embeddings activation normalize_first attention_type memory_length "
    "reuse_length clamp_length same_length tie_attention_biases"
).split()
_MOST_NAMES = 8


def run(arguments: argparse.Namespace) -> int:
    """Prints the report; returns 1 if weights are missing, otherwise 0."""
    path = arguments.directory
    format = arguments.format or detect_format(path)
    task = task_of(arguments.task, path, format)
    given = arguments_of_format(arguments, format)
    if format in _OPENERS:
        opened = _OPENERS[format](path, task, **given)
        model, unused = opened.model, opened.unused()
        missing = opened.missing_of_encoder() + opened.missing_of_head()
    else:
        # Loading a preset refuses one with missing or unused weights.
        model, missing, unused = load_checkpoint(path, format, task), [], []
    backbone = backbone_of(model)
    rows = [
        ("format", format),
        ("model", f"{type(model).__name__}" + (f" ({task})" if task else "")),
        *((name, _value(getattr(backbone, name))) for name in _SIZES if hasattr(backbone, name)),
        *_parameters(model, backbone),
        *_files(shipped_directory(path) or path),
        ("tokenizer", _tokenizer(load_tokenizer(path, format))),
        ("missing", _names(missing)),
        ("unused", _names(unused)),
    ]
    for label, value in rows:
        print(f"{label:22}{value}")
    return 1 if missing else 0


def _value(value):
    return getattr(value, "__name__", list(value) if isinstance(value, tuple) else value)


def _parameters(model, backbone):
    total = model.count_params()
    embeddings = backbone.token_embedding.count_params()
    layers = sum(block.count_params() for block in backbone.blocks)
    yield "parameters", f"{total:,} ({4 * total / 2**20:,.1f} MiB as float32)"
    yield "  embeddings", f"{embeddings:,}"
    yield "  layers", f"{layers:,} ({backbone.num_layers} of {layers // backbone.num_layers:,})"
    yield "  other", f"{total - embeddings - layers:,}"


def _files(path):
    path = pathlib.Path(path)
    found = path.rglob("*") if path.is_dir() else [path, *path.parent.glob(f"{path.name}.*")]
    for file in sorted(file for file in found if file.is_file()):
        yield "file", f"{file.relative_to(path.parent)} ({file.stat().st_size:,} bytes)"


def _tokenizer(tokenizer):
    if tokenizer is None:
        return "none"
    flags = [name for name in ("lowercase", "remove_accents") if getattr(tokenizer, name)]
    return ", ".join([f"{tokenizer.vocabulary_size():,} pieces", *flags])


def _names(names):
    if not names:
        return "nothing"
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{len(names)}: {shown}" + (f" and {more} more" if more > 0 else "")

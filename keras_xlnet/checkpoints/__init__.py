"""Checkpoints of the original XLNet, of Hugging Face's transformers and of this package."""

from keras_xlnet.checkpoints.formats import (
    FORMATS,
    detect_format,
    detect_task,
    load_checkpoint,
    load_tokenizer,
    save_checkpoint,
)
from keras_xlnet.checkpoints.huggingface import load_huggingface, save_huggingface
from keras_xlnet.checkpoints.original import load_original, save_original
from keras_xlnet.checkpoints.tasks import TASKS

__all__ = [
    "FORMATS",
    "TASKS",
    "detect_format",
    "detect_task",
    "load_checkpoint",
    "load_huggingface",
    "load_original",
    "load_tokenizer",
    "save_checkpoint",
    "save_huggingface",
    "save_original",
]

"""Checkpoints of this package, of the original XLNet and of other implementations."""

from keras_xlnet.checkpoints.bert import BertConversion, convert_bert, load_bert
from keras_xlnet.checkpoints.formats import (
    FORMATS,
    READABLE_FORMATS,
    detect_format,
    detect_task,
    load_checkpoint,
    load_tokenizer,
    save_checkpoint,
)
from keras_xlnet.checkpoints.huggingface import load_huggingface, save_huggingface
from keras_xlnet.checkpoints.keras_hub import load_keras_hub
from keras_xlnet.checkpoints.keras_xlnet_h5 import load_keras_xlnet_h5
from keras_xlnet.checkpoints.original import load_original, save_original
from keras_xlnet.checkpoints.tasks import TASKS

__all__ = [
    "FORMATS",
    "READABLE_FORMATS",
    "TASKS",
    "BertConversion",
    "convert_bert",
    "detect_format",
    "detect_task",
    "load_bert",
    "load_checkpoint",
    "load_huggingface",
    "load_keras_hub",
    "load_keras_xlnet_h5",
    "load_original",
    "load_tokenizer",
    "save_checkpoint",
    "save_huggingface",
    "save_original",
]

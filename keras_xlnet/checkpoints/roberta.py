"""Loads RoBERTa encoders as XLNets.

A RoBERTa is a BERT whose positions begin after the padding id. Its tokenizer is a byte-level BPE,
which an `XLNetTokenizer` cannot express, so the XLNet takes RoBERTa's own ids.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from keras_xlnet.checkpoints import bert_files
from keras_xlnet.checkpoints.bert import RIDGE, OpenBert
from keras_xlnet.checkpoints.family import Family, loads
from keras_xlnet.checkpoints.huggingface_tokenizer import read_if_there
from keras_xlnet.checkpoints.tasks import get_task
from keras_xlnet.conversion.bert_to_xlnet import TokenIds
from keras_xlnet.conversion.bert_vocabulary import random_rows
from keras_xlnet.preset_files import file_in, local_directory
from keras_xlnet.preset_files.files import CONFIG, quoted, read_json
from keras_xlnet.types import PathLike

_MODEL_TYPE = "roberta"
# `<s>`, `</s>` and `<pad>`, with the defaults of `RobertaConfig`.
_SPECIAL = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
_UNKNOWN = 3  # `<unk>`, which no entry names.


@loads
def load_roberta(
    directory: PathLike,
    task: str | None = None,
    *,
    sample_ids: Iterable[Sequence[int]] | None = None,
    ridge: float = RIDGE,
    **overrides: Any,
) -> Any:
    """Loads a RoBERTa encoder that transformers saved, as an XLNet.

    It is converted as `load_bert` converts a BERT. The ids are RoBERTa's own: a row has the ids of
    a text, `</s>` and `<s>`. The segment of `<s>` is 2, and the others are 0.

    Args:
        directory: Directory with `config.json` and `model.safetensors` (or its shards), or
            `hf://owner/name`, which needs `huggingface_hub`.
        task: Only `None`, for the encoder.
        sample_ids: Lists of ids without special tokens: a few hundred texts of the kind that the
            model is for, to fit the positions on. `None` for random ids.
        ridge: As in `load_bert`.
        **overrides: As in `load_bert`.

    Returns:
        An `XLNetBackbone` for RoBERTa's ids.

    Raises:
        FileNotFoundError, ValueError: As `load_bert`.

    Example:

    >>> import tempfile
    >>> keras_xlnet.checkpoints.load_checkpoint(tempfile.mkdtemp(), "roberta")
    Traceback (most recent call last):
    FileNotFoundError: ...config.json is missing

    Source: Liu et al. 2019, "RoBERTa"; transformers, `models/roberta`.
    """
    get_task(task, ROBERTA)
    directory = local_directory(directory, [CONFIG], bert_files.WEIGHTS)
    file = file_in(directory, CONFIG)
    config = bert_files.read_config(file, _MODEL_TYPE)
    vocabulary_size = config.sizes["vocab_size"]
    special = _special_ids(file, vocabulary_size)
    config = dataclasses.replace(config, first_position=special["pad_token_id"] + 1)
    if sample_ids is None:
        others = np.setdiff1d(np.arange(vocabulary_size), [*special.values(), _UNKNOWN])
        rows = [others[row] for row in random_rows(len(others))]
    else:
        rows = _checked_rows(sample_ids, vocabulary_size)
    return OpenBert(
        config,
        bert_files.BertFiles(directory, config),
        TokenIds(
            np.arange(vocabulary_size),
            cls=special["bos_token_id"],
            sep=special["eos_token_id"],
            pad=special["pad_token_id"],
        ),
        rows,
        ridge,
        overrides,
        # The ids are RoBERTa's own.
        tokenize=lambda: (None, None if sample_ids is None else 0.0),
    )


def _special_ids(file, vocabulary_size):
    """Returns the ids of `_SPECIAL` by the names in `config.json`."""
    entries = read_json(file)
    special = {key: entries.get(key, default) for key, default in _SPECIAL.items()}
    for key, index in special.items():
        if type(index) is not int or not 0 <= index < vocabulary_size:
            raise ValueError(
                f"{file} has `{key}` {quoted(index)}, expected an id from 0 to "
                f"{vocabulary_size - 1}"
            )
    return special


def _checked_rows(sample_ids, vocabulary_size):
    rows = [np.asarray(row) for row in sample_ids]
    for row in rows:
        is_ids = row.ndim == 1 and (row.dtype.kind in "iu" or not row.size)
        if not is_ids or not all(0 <= index < vocabulary_size for index in row):
            raise ValueError(
                "`sample_ids` must be a list with the ids of the tokens of each text, from 0 to "
                f"{vocabulary_size - 1}. Received: {quoted(row.tolist())}"
            )
    if not any(row.size for row in rows):
        raise ValueError("`sample_ids` must have at least one text with a token")
    return rows


ROBERTA: Family = Family(
    "roberta",
    owner="RoBERTa",
    files="a RoBERTa",
    detect=lambda path: read_if_there(path, CONFIG).get("model_type") == _MODEL_TYPE,
    load=load_roberta,
    no_tokenizer=(
        "The byte-level BPE of a RoBERTa cannot become an XLNetTokenizer. Make ids with the "
        "AutoTokenizer of transformers (`add_special_tokens=False`), append `</s>` and `<s>`, and "
        "pass them as `token_ids`, with `segment_ids` of 0, and 2 for `<s>`"
    ),
    convert=lambda path, **options: ROBERTA.open(path, **options).convert(),
)

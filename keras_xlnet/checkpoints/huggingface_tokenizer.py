"""The tokenizer files of a Hugging Face directory, in and out."""

import base64
import json
import pathlib

from keras_xlnet.preset_files import file_in
from keras_xlnet.preset_files.files import read_json
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.tokenizers.sentencepiece_proto import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Piece,
    SentencePieceProto,
)
from keras_xlnet.types import PathLike

VOCABULARY = "spiece.model"
_FAST, _CONFIG = "tokenizer.json", "tokenizer_config.json"
FILES = (VOCABULARY, _FAST, _CONFIG)
_NUM_CONTROL = 8  # <unk> to <eod>; <eop> and what follows may be in a text.


def read_tokenizer(directory: PathLike) -> XLNetTokenizer | None:
    """Reads the tokenizer of a directory.

    `spiece.model` is the SentencePiece model itself. Newer releases of transformers write only
    `tokenizer.json`, from which the model is rebuilt.

    Args:
        directory: Path of the directory.

    Returns:
        An `XLNetTokenizer`, or `None` if there are no tokenizer files.

    Raises:
        ValueError: If a file is damaged, or the tokenizer is not an XLNet's.
    """
    directory = pathlib.Path(directory)
    name = next((name for name in (VOCABULARY, _FAST) if (directory / name).exists()), None)
    if name is None:
        return None
    file = file_in(directory, name)
    config = {}
    if name == VOCABULARY:
        proto = file.read_bytes()
    else:
        proto, normalizers = _sentencepiece_model(file)
        config["do_lower_case"] = "Lowercase" in normalizers
    if (directory / _CONFIG).exists():
        config |= read_json(file_in(directory, _CONFIG))
    try:
        return XLNetTokenizer(
            proto,
            lowercase=config.get("do_lower_case", False),
            remove_accents=not config.get("keep_accents", False),
            remove_space=config.get("remove_space", True),
        )
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def write_tokenizer(directory: PathLike, tokenizer: XLNetTokenizer) -> None:
    """Writes the files that transformers loads the tokenizer from.

    Args:
        directory: Path of a directory.
        tokenizer: An `XLNetTokenizer`.
    """
    tokenizer.save_assets(str(directory))
    # It may be of another tokenizer, and transformers prefers it.
    (pathlib.Path(directory) / _FAST).unlink(missing_ok=True)
    special = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "sep_token": "<sep>",
        "pad_token": "<pad>",
        "cls_token": "<cls>",
        "mask_token": "<mask>",
    }
    config = {
        "tokenizer_class": "XLNetTokenizer",
        "do_lower_case": tokenizer.lowercase,
        "keep_accents": not tokenizer.remove_accents,
        "remove_space": tokenizer.remove_space,
        "padding_side": "left",
        **special,
    }
    text = json.dumps(config, indent=2)
    (pathlib.Path(directory) / _CONFIG).write_text(text + "\n", encoding="utf-8")


def _sentencepiece_model(file):
    """Returns the bytes of a SentencePiece model, and the types of the text normalizers."""
    content = read_json(file)
    try:
        if content["model"]["type"] != "Unigram":
            raise TypeError("another type")
        pieces = [
            Piece(piece, float(score), _type(index, score))
            for index, (piece, score) in enumerate(content["model"]["vocab"])
        ]
        normalizers = {entry["type"]: entry for entry in _leaves(content.get("normalizer"))}
        charsmap = normalizers.get("Precompiled", {}).get("precompiled_charsmap") or ""
        charsmap = base64.b64decode(charsmap, validate=True)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{file} is not the tokenizer of an XLNet: it has no Unigram model ({error})"
        raise ValueError(message) from error
    return SentencePieceProto.unigram(pieces, charsmap).serialize(), set(normalizers)


def _type(index, score):
    if index < _NUM_CONTROL:
        return CONTROL if index else UNKNOWN
    # SentencePiece scores learned pieces with log-probabilities, and user-defined ones with 0.
    return USER_DEFINED if score == 0 else NORMAL


def _leaves(normalizer):
    """Returns the normalizers in a tree of sequences."""
    if normalizer is None:
        return []
    if normalizer["type"] != "Sequence":
        return [normalizer]
    return [leaf for part in normalizer["normalizers"] for leaf in _leaves(part)]

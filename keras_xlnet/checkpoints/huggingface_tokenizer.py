"""The tokenizer files of a Hugging Face directory, in and out."""

import base64
import dataclasses
import json
import pathlib
import sys
import unicodedata

from keras_xlnet.preprocessing.packing import SEGMENT_CLS
from keras_xlnet.preset_files import file_in
from keras_xlnet.preset_files.files import read_json
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.tokenizers.digit_comma import ends_in_digit_comma
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS
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
# What transformers calls the first special tokens.
_SPECIAL = tuple(f"{name}_token" for name in "unk bos eos cls sep pad mask".split())
_SPACE = "\u2581"
# Begins what no text can contain: it is not a character.
_NEVER = "\ufdd0"
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


def write_tokenizer(
    directory: PathLike,
    tokenizer: XLNetTokenizer,
    padding_side: str = "left",
    sequence_length: int | None = None,
) -> None:
    """Writes the files that transformers loads the tokenizer from, as one with the same ids.

    Args:
        directory: Path of a directory.
        tokenizer: An `XLNetTokenizer`.
        padding_side: `"left"` or `"right"`.
        sequence_length: Int, the length that transformers truncates texts to if it is asked to
            (`model_max_length`). `None` for no such length.
    """
    tokenizer.save_assets(str(directory))
    directory = pathlib.Path(directory)
    config = {
        # It does what `tokenizer.json` says. The class XLNetTokenizer of transformers 5 drops marks
        # of vowels too, drops accents whatever `keep_accents` says, and splits at `.` or `(`.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "do_lower_case": tokenizer.lowercase,
        "keep_accents": not tokenizer.remove_accents,
        "remove_space": tokenizer.remove_space,
        "padding_side": padding_side,
        # Without it, transformers 5 makes no `token_type_ids` for an XLNet, and so puts all tokens
        # in segment 0, `<cls>` too.
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **dict(zip(_SPECIAL, SPECIAL_TOKENS, strict=False)),
    }
    if sequence_length:
        config["model_max_length"] = sequence_length
    for name, content in ((_CONFIG, config), (_FAST, _fast_tokenizer(tokenizer, directory))):
        text = json.dumps(content, indent=2)
        (directory / name).write_text(text + "\n", encoding="utf-8")


def _fast_tokenizer(tokenizer, directory):
    """Returns the content of `tokenizer.json`, for the `spiece.model` in a directory."""
    model = SentencePieceProto.parse((directory / VOCABULARY).read_bytes())
    normalizers = [_replacement("String", quote, '"') for quote in ("``", "''")]
    if tokenizer.remove_accents:
        codes = [c for c in range(sys.maxunicode) if unicodedata.combining(chr(c))]
        combining = "".join(rf"\x{{{code:x}}}" for code in codes)
        normalizers += [{"type": "NFKD"}, _replacement("Regex", f"[{combining}]", "")]
    if tokenizer.lowercase:
        normalizers.append({"type": "Lowercase"})
    if model.charsmap:
        charsmap = base64.b64encode(model.charsmap).decode()
        normalizers.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    spaces = {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": "always"}
    first, second = (
        [{"Sequence": {"id": name, "type_id": i}}, {"SpecialToken": {"id": "<sep>", "type_id": i}}]
        for i, name in enumerate("AB")
    )
    end = [{"SpecialToken": {"id": "<cls>", "type_id": SEGMENT_CLS}}]
    options = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": index, "content": piece.piece, "special": True, **options}
            for index, piece in enumerate(model.pieces)
            if piece.type in (UNKNOWN, CONTROL)
        ],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, spaces],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": first + end,
            "pair": first + second + end,
            "special_tokens": {
                token: {"id": token, "ids": [SPECIAL_TOKENS.index(token)], "tokens": [token]}
                for token in ("<sep>", "<cls>")
            },
        },
        "decoder": spaces,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": _scored_pieces(model.pieces)},
    }


def _replacement(kind, pattern, content):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def _scored_pieces(pieces):
    """Returns the pieces with the scores that they have while SentencePiece splits a text."""
    normal = [piece.score for piece in pieces if piece.type == NORMAL] or [0.0]
    lowest, highest = min(normal), max(normal)
    scored = []
    for piece, score, kind in map(dataclasses.astuple, pieces):
        if kind == USER_DEFINED:
            # SentencePiece's own formula: above the pieces that such a piece could be split into.
            score = max(len(piece.encode()) * highest - 0.1, lowest)
        elif kind != NORMAL:
            score = lowest
        # Pieces that are always split again, such as `9,`, are not found in a text.
        scored.append((_NEVER * ends_in_digit_comma(piece) + piece, score))
    return scored


def _sentencepiece_model(file):
    """Returns the bytes of a SentencePiece model, and the types of the text normalizers."""
    content = read_json(file)
    try:
        if content["model"]["type"] != "Unigram":
            raise TypeError("another type")
        pieces = [
            Piece(piece.removeprefix(_NEVER), float(score), _type(index, score))
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

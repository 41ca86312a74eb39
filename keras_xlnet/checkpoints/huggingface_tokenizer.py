"""Loads and saves the tokenizer files of a Hugging Face directory."""

import base64
import dataclasses
import pathlib
import sys
import unicodedata
from collections.abc import Collection
from typing import Any

from keras_xlnet.preprocessing.packing import SEGMENT_CLS
from keras_xlnet.preset_files import file_in
from keras_xlnet.preset_files.files import quoted, read_json, write_json
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
FAST, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
_ADDED, _MAP = "added_tokens.json", "special_tokens_map.json"
#: Files of any tokenizer of transformers.
TOKENIZER_FILES = (FAST, TOKENIZER_CONFIG, _ADDED, _MAP)
FILES = (VOCABULARY, *TOKENIZER_FILES)
#: Classes of transformers that follow `tokenizer.json`.
FAST_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")
# Allowed values of settings, the default first.
_OF_CONFIG: dict[str, Any] = {
    "tokenizer_class": (None, "XLNetTokenizer", "XLNetTokenizerFast", *FAST_CLASSES),
    "auto_map": (None,),
    **dict.fromkeys(("do_lower_case", "keep_accents", "remove_space"), (None, True, False)),
}
_NORMALIZERS = ("Replace", "NFKD", "StripAccents", "Lowercase", "Precompiled")
# The names of special tokens in transformers.
_TOKENS = {
    f"{name}_token": token
    for name, token in zip("unk bos eos cls sep pad mask".split(), SPECIAL_TOKENS, strict=False)
}
_SPACE = "\u2581"
# No text can contain this: it is not a character.
_NEVER = "\ufdd0"
_CONTROL = SPECIAL_TOKENS[:-1]  # A text may have `<eop>`.


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
    name = next((name for name in (VOCABULARY, FAST) if (directory / name).exists()), None)
    if name is None:
        return None
    file = file_in(directory, name)
    config = read_if_there(directory, TOKENIZER_CONFIG)
    check_settings(directory / TOKENIZER_CONFIG, "", config, _OF_CONFIG)
    config = {key: value for key, value in config.items() if value is not None}
    fast = read_if_there(directory, FAST)
    if name == VOCABULARY:
        proto = file.read_bytes()
    else:
        proto, normalizers = _sentencepiece_model(file, fast)
        config.setdefault("do_lower_case", "Lowercase" in normalizers)
    try:
        tokenizer = XLNetTokenizer(
            proto,
            lowercase=config.get("do_lower_case", False),
            remove_accents=not config.get("keep_accents", False),
            remove_space=config.get("remove_space", True),
        )
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    pieces = {piece.piece for piece in SentencePieceProto.parse(proto).pieces}
    try:
        check_tokens(directory, config, fast, _TOKENS, pieces)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{directory} has a damaged tokenizer: {error!r}") from error
    return tokenizer


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
    # They may belong to another tokenizer.
    for name in (_ADDED, _MAP):
        (directory / name).unlink(missing_ok=True)
    config = {
        # It follows `tokenizer.json`. The class XLNetTokenizer of transformers 5 also drops vowel
        # signs, drops accents whatever `keep_accents` says, and splits at `.` or `(`.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "do_lower_case": tokenizer.lowercase,
        "keep_accents": not tokenizer.remove_accents,
        "remove_space": tokenizer.remove_space,
        "padding_side": padding_side,
        # Without it, transformers 5 makes no `token_type_ids` for an XLNet, which puts all tokens,
        # even `<cls>`, in segment 0.
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **_TOKENS,
    }
    if sequence_length:
        config["model_max_length"] = sequence_length
    write_json(directory / TOKENIZER_CONFIG, config)
    write_json(directory / FAST, _fast_tokenizer(tokenizer, directory))


def has_token_type_ids(directory: pathlib.Path, version: str) -> bool:
    """Returns whether a release of transformers makes `token_type_ids` with a tokenizer.

    Args:
        directory: Path of the directory.
        version: String, such as `"5.24.0"`.
    """
    names = read_if_there(directory, TOKENIZER_CONFIG).get("model_input_names")
    if names is None:
        return not version.split(".")[0].isdecimal() or int(version.split(".")[0]) < 5
    return "token_type_ids" in names


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
    # Two names of one setting: tokenizers 0.13 requires the first, newer releases the second.
    spaces = {
        "type": "Metaspace",
        "replacement": _SPACE,
        "add_prefix_space": True,
        "prepend_scheme": "always",
    }
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
                token: {"id": token, "ids": [tokenizer.token_to_id(token)], "tokens": [token]}
                for token in ("<sep>", "<cls>")
            },
        },
        "decoder": spaces,
        "model": {
            "type": "Unigram",
            "unk_id": tokenizer.unk_token_id,
            "vocab": _scored_pieces(model.pieces),
        },
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
        # Pieces that are always split again, such as `9,`, never occur in a split text.
        scored.append((_NEVER * ends_in_digit_comma(piece) + piece, score))
    return scored


def _sentencepiece_model(file, content):
    """Returns the bytes of a SentencePiece model, and the types of the text normalizers."""
    try:
        if content["model"]["type"] != "Unigram":
            raise TypeError("another type")
        pieces = [
            Piece(piece.removeprefix(_NEVER), float(score), _type(piece, score))
            for piece, score in content["model"]["vocab"]
        ]
        normalizers = {entry["type"]: entry for entry in _leaves(content.get("normalizer"))}
        charsmap = normalizers.get("Precompiled", {}).get("precompiled_charsmap") or ""
        charsmap = base64.b64decode(charsmap, validate=True)
    except (KeyError, TypeError, ValueError) as error:
        message = f"{file} is not the tokenizer of an XLNet: it has no Unigram model ({error})"
        raise ValueError(message) from error
    for kind in normalizers:
        check_settings(file, "normalizer", {"type": kind}, {"type": _NORMALIZERS})
    return SentencePieceProto.unigram(pieces, charsmap).serialize(), set(normalizers)


def _type(piece, score):
    if piece in _CONTROL:
        return CONTROL if piece in _CONTROL[1:] else UNKNOWN
    # SentencePiece scores learned pieces with log-probabilities, and user-defined ones with 0.
    return USER_DEFINED if score == 0 else NORMAL


def _leaves(normalizer):
    """Returns the normalizers in a tree of sequences."""
    if normalizer is None:
        return []
    if normalizer["type"] != "Sequence":
        return [normalizer]
    return [leaf for part in normalizer["normalizers"] for leaf in _leaves(part)]


# === Settings of any tokenizer of transformers ===


def read_if_there(directory: pathlib.Path, name: str) -> dict[str, Any]:
    """Returns the dict in a JSON file of a directory, `{}` if there is no such file."""
    return read_json(file_in(directory, name)) if (directory / name).exists() else {}


def check_settings(
    file: PathLike, part: str, entries: dict[str, Any] | None, expected: dict[str, Any]
) -> None:
    """Refuses values that are not expected.

    Args:
        file: Path of the file, for errors.
        part: String, the part of the file, for errors.
        entries: Dict of values by name. `None` if there is no such part.
        expected: Dict of tuples of the possible values, the default first.

    Raises:
        ValueError: If a value is another one.
    """
    for key, options in expected.items():
        value = entries.get(key, options[0]) if isinstance(entries, dict) else entries
        # 1 is not True, and 100.0 not 100.
        if (type(value), value) not in [(type(option), option) for option in options]:
            raise ValueError(
                f"{file} has {quoted(value)} as `{part and part + '.'}{key}`, but only "
                f"{' or '.join(map(repr, options))} is supported"
            )


def check_tokens(
    directory: pathlib.Path,
    config: dict[str, Any],
    fast: dict[str, Any],
    named: dict[str, str],
    others: Collection[str],
) -> None:
    """Refuses tokens that transformers finds in a text before it splits the text.

    Args:
        directory: Path of the directory.
        config, fast: Dicts, its `tokenizer_config.json` and `tokenizer.json`.
        named: Dict of the special tokens by their names, such as `"sep_token"`.
        others: Strings that other tokens may be.

    Raises:
        ValueError: If there is another token.
    """
    for name, entries in (
        (TOKENIZER_CONFIG, config),
        (FAST, {"added_tokens": fast.get("added_tokens")}),
        (_ADDED, {"added_tokens": [*read_if_there(directory, _ADDED)]}),
        (_MAP, read_if_there(directory, _MAP)),
    ):
        for key, value in entries.items():
            if not key.endswith(("_token", "_tokens", "_tokens_decoder")):
                continue
            if isinstance(value, dict) and "content" not in value:
                value = [*value.values()]
            for token in value if isinstance(value, list) else [value]:
                content = token["content"] if isinstance(token, dict) else token
                expected = named.get(key)
                is_known = content == expected if expected else content in others
                # Others are flags, such as `split_special_tokens`.
                if isinstance(content, str) and not is_known:
                    raise ValueError(
                        f"{directory / name} has the token {quoted(content)} (`{key}`), expected "
                        + (repr(expected) if expected else "one of the vocabulary's own")
                    )

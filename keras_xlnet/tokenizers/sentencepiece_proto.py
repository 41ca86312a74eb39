"""Reads and writes the parts of a SentencePiece model that this package changes.

No library reads them in every environment of this package. The message classes of `sentencepiece`
need protobuf, which its wheel does not require: with JAX or PyTorch it may be missing. The classes
of sentencepiece 0.2.3 need protobuf 7.36 or newer, but Beam needs protobuf 6 (docs/upstream.md,
"sentencepiece 0.2.3 does not say that it needs protobuf 7"). `tokenizers` needs the
same classes. A `SentencePieceProcessor` returns neither the normalization rules nor the types of
all pieces, and cannot write a model with other pieces.

A model is a sequence of fields: pieces, the settings of the trainer and of the normalizer.
Everything but the pieces stays as bytes.

Source: https://protobuf.dev/programming-guides/encoding and `sentencepiece_model.proto`.
"""

import dataclasses
import struct
from collections.abc import Iterator

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_SETTINGS = {
    "model_type": 3,
    "vocab_size": 4,
    "byte_fallback": 35,
    "unk_id": 40,
    "bos_id": 41,
    "eos_id": 42,
    "pad_id": 43,
}
_MODEL_TYPES = {1: "UNIGRAM", 2: "BPE", 3: "WORD", 4: "CHAR"}


@dataclasses.dataclass(frozen=True)
class Piece:
    """A piece of a vocabulary.

    Args:
        piece: String.
        score: Float, its log-probability.
        type: Int, `NORMAL`, `UNKNOWN`, `CONTROL`, `USER_DEFINED`, `UNUSED` or `BYTE`.
    """

    piece: str
    score: float = 0.0
    type: int = NORMAL


@dataclasses.dataclass(frozen=True)
class SentencePieceProto:
    """A SentencePiece model.

    Args:
        pieces: List of `Piece`.
        trainer: Bytes, the settings of the trainer.
        others: Bytes, the other fields, mainly the settings of the normalizer.
    """

    pieces: list[Piece]
    trainer: bytes = b""
    others: bytes = b""

    @classmethod
    def parse(cls, proto: bytes) -> "SentencePieceProto":
        """Reads the bytes of a model. `ValueError` if they are not fields."""
        pieces, trainer, others = [], b"", b""
        for field, wire_type, value, raw in _fields(proto):
            if field == _PIECES and wire_type == _BYTES:
                pieces.append(_parse_piece(value))
            elif field == _TRAINER and wire_type == _BYTES:
                trainer += value
            else:
                others += raw
        return cls(pieces, trainer, others)

    @classmethod
    def unigram(cls, pieces: list[Piece], charsmap: bytes) -> "SentencePieceProto":
        """Returns a unigram model.

        Args:
            pieces: List of `Piece`.
            charsmap: Bytes, the compiled rules of normalization.
        """
        normalizer = _encode(1, b"nmt_nfkc") + _encode(2, charsmap)
        model = cls([], others=_encode(_NORMALIZER, normalizer))
        return model.with_pieces(pieces, model_type=1)

    def serialize(self) -> bytes:
        """Returns the bytes of the model."""
        parts = [_encode(_PIECES, _serialize_piece(piece)) for piece in self.pieces]
        return b"".join([*parts, _encode(_TRAINER, self.trainer), self.others])

    def with_pieces(self, pieces: list[Piece], **settings: int) -> "SentencePieceProto":
        """Returns the model with other pieces, and with other settings of the trainer."""
        settings = {"vocab_size": len(pieces), **settings}
        # Readers use the last value of a field.
        added = b"".join(_encode(_SETTINGS[name], value) for name, value in settings.items())
        return dataclasses.replace(self, pieces=pieces, trainer=self.trainer + added)

    @property
    def charsmap(self) -> bytes:
        """Bytes, the compiled rules of normalization."""
        for field, _, value, _ in _fields(self.others):
            if field == _NORMALIZER:
                return next((rules for field, _, rules, _ in _fields(value) if field == 2), b"")
        return b""

    @property
    def model_type(self) -> str:
        """String, such as `"UNIGRAM"`."""
        found = 1  # The default.
        for field, wire_type, value, _ in _fields(self.trainer):
            if field == _SETTINGS["model_type"] and wire_type == _VARINT:
                found = value
        return _MODEL_TYPES.get(found, str(found))


def _parse_piece(data):
    values = {field: value for field, _, value, _ in _fields(data)}
    score = struct.unpack("<f", values.get(2, b"\0" * 4))[0]
    return Piece(values.get(1, b"").decode("utf-8"), score, values.get(3, NORMAL))


def _serialize_piece(piece):
    data = _encode(1, piece.piece.encode("utf-8")) + _key(2, _FIXED32)
    return data + struct.pack("<f", piece.score) + _encode(3, piece.type)


def _fields(data: bytes) -> Iterator[tuple]:
    """Yields number, wire type, value and all bytes of each field."""
    place = 0
    while place < len(data):
        begin = place
        key, place = _read_varint(data, place)
        field, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            value, place = _read_varint(data, place)
        else:
            if wire_type == _BYTES:
                size, place = _read_varint(data, place)
            elif wire_type in (_FIXED32, _FIXED64):
                size = 4 if wire_type == _FIXED32 else 8
            else:
                raise ValueError(f"no field has the wire type {wire_type}")
            value, place = data[place : place + size], place + size
        if place > len(data):
            raise ValueError("the last field is cut off")
        yield field, wire_type, value, data[begin:place]


def _read_varint(data, place):
    value = shift = 0
    while True:
        if place >= len(data):
            raise ValueError("the last field is cut off")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _encode(field, value):
    if isinstance(value, bytes):
        return _key(field, _BYTES) + _varint(len(value)) + value
    # Negative numbers have 64 bits.
    return _key(field, _VARINT) + _varint(value % 2**64)


def _key(field, wire_type):
    return _varint(field << 3 | wire_type)


def _varint(value):
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])

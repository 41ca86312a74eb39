"""The reader and writer of SentencePiece models against the message classes of `sentencepiece`."""

import pytest
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

from keras_xlnet.tokenizers.sentencepiece_proto import USER_DEFINED, Piece, SentencePieceProto

MODEL = sentencepiece_model_pb2.ModelProto


@pytest.fixture(scope="module")
def proto(golden_dir):
    return (golden_dir / "spiece.model").read_bytes()


def pieces_of(model):
    return [(piece.piece, piece.score, piece.type) for piece in model.pieces]


def test_pieces_and_settings_are_those_of_the_message(proto):
    found, expected = SentencePieceProto.parse(proto), MODEL.FromString(proto)
    assert pieces_of(found) == pieces_of(expected)
    assert found.model_type == "UNIGRAM"
    written = MODEL.FromString(found.serialize())
    assert pieces_of(written) == pieces_of(expected)
    assert written.trainer_spec == expected.trainer_spec
    assert written.normalizer_spec == expected.normalizer_spec


def test_changed_pieces_and_settings(proto):
    model = SentencePieceProto.parse(proto)
    pieces = [*model.pieces, Piece("<url>", -1.5, USER_DEFINED)]
    changed = model.with_pieces(pieces, byte_fallback=0, pad_id=-1).serialize()
    written = MODEL.FromString(changed)
    assert pieces_of(written)[-1] == ("<url>", -1.5, USER_DEFINED)
    spec = written.trainer_spec
    assert (spec.vocab_size, spec.byte_fallback, spec.pad_id) == (len(pieces), False, -1)
    processor = SentencePieceProcessor(model_proto=changed)
    assert processor.encode("a<url>")[-1] == len(pieces) - 1


@pytest.mark.parametrize("name", ["UNIGRAM", "BPE", "WORD", "CHAR"])
def test_types_of_models(name):
    model = MODEL()
    model.trainer_spec.model_type = model.trainer_spec.ModelType.Value(name)
    assert SentencePieceProto.parse(model.SerializeToString()).model_type == name


@pytest.mark.parametrize("data", [b"\x0a\xff", b"\x0a\x05ab", b"\xff", b"\x0b", b"hello world"])
def test_bytes_that_are_no_model(data):
    with pytest.raises(ValueError):
        SentencePieceProto.parse(data)

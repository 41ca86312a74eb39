"""Offsets point into the text as given, through cleaning and the normalization of SentencePiece."""

import json
import pathlib

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_xlnet.tokenizers import TokenOffsets, XLNetTokenizer
from keras_xlnet.tokenizers.aligned_cleaning import clean_aligned
from keras_xlnet.tokenizers.sentencepiece_proto import Piece, SentencePieceProto
from tests.tokenizers import original_tokenizer as reference

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
PROTO = GOLDEN / "spiece.model"
STRINGS = [
    case["input"]
    for case in json.loads((GOLDEN / "text.json").read_text(encoding="utf-8"))["strings"]
]
WORD_START = "\u2581"
FLAG_SETS = [
    {"lowercase": False, "remove_accents": True},
    {"lowercase": True, "remove_accents": True},
    {"lowercase": True, "remove_accents": False, "remove_space": False},
]
# Characters with rules of their own, which random texts would rarely contain.
TRICKY = "9,19, 'x`  \t\n\x1c\u3000\x00ΣσİßéÅ½…\u0301\u05bf\ufb01ｗ٣²한\ufffd\u200b.'AaΑ\u00ad"
texts = st.text(st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=["Cs"])))


@pytest.fixture(scope="module")
def processor():
    return sentencepiece.SentencePieceProcessor(model_file=str(PROTO))


@pytest.fixture(scope="module", params=FLAG_SETS, ids=["cased", "uncased", "spaces"])
def tokenizer(request):
    return XLNetTokenizer(PROTO, **request.param)


def normalized(tokenizer, processor, text):
    """What the tokenizer looks up in its vocabulary for a part of a text."""
    cleaned = reference.preprocess_text(
        text, tokenizer.lowercase, tokenizer.remove_space, tokenizer.remove_accents
    )
    # A sigma at the end of a word depends on what follows.
    return processor.normalize(cleaned).lstrip(WORD_START).replace("ς", "σ")


def check_offsets(tokenizer, processor, text, ids, offsets):
    start, end, byte_start, byte_end = (part.numpy() for part in offsets)
    assert (start <= end).all() and (np.diff(start) >= 0).all() and (np.diff(end) >= 0).all()
    covered = np.zeros(len(text) + 1, int)
    for index, a, b, c, d in zip(ids.numpy(), start, end, byte_start, byte_end, strict=True):
        assert text.encode()[c:d].decode() == text[a:b]
        assert len(text.encode()[:c].decode()) == a
        covered[a:b] += 1
        piece = tokenizer.id_to_token(int(index)).lstrip(WORD_START).replace("ς", "σ")
        if index == tokenizer.unk_token_id:
            assert b > a
        elif (covered[a:b] == 1).all() and b not in start[start < b]:
            # A part of a character, such as the 1 of ½, has all of it.
            assert piece in normalized(tokenizer, processor, text[a:b])
        elif not piece:
            assert a == b
    others = "".join(c for c, count in zip(text, covered, strict=False) if not count)
    assert processor.normalize(reference.preprocess_text(others, False, True, True)) in (
        "",
        WORD_START,
    )


def check_batch(tokenizer, processor, batch):
    ids, offsets = tokenizer(batch, return_offsets=True)
    assert ids.to_list() == tokenizer(batch).to_list()
    for row, text in enumerate(batch):
        row_offsets = TokenOffsets(*(part[row] for part in offsets))
        check_offsets(tokenizer, processor, text, ids[row], row_offsets)


@settings(max_examples=20)
@given(st.lists(texts, min_size=1, max_size=6))
@example(["A 9,000 cafe\u0301  and\t½ or ﬁne ``quotes'' '''", " \u00ad \u0301x\u0301\u0301 "])
@example(["ΑΣ ΑΣΑ Σ"])
@example(["가\u1100\u1161 ㎞"])
def test_offsets_of_any_text(tokenizer, processor, batch):
    check_batch(tokenizer, processor, batch)


def test_each_token_of_plain_text_is_its_part(tokenizer):
    text = "  She said: 9,000 rivers\tare  quiet. "
    ids, offsets = tokenizer(text, return_offsets=True)
    parts = [text[a:b] for a, b in zip(offsets.start.numpy(), offsets.end.numpy(), strict=True)]
    pieces = [tokenizer.id_to_token(int(index)).lstrip(WORD_START) for index in ids.numpy()]
    assert [part.lower() for part in parts] == [piece.lower() for piece in pieces]


def test_golden_strings_in_one_batch(tokenizer, processor):
    check_batch(tokenizer, processor, STRINGS)


@settings(max_examples=40)
@given(st.binary(max_size=20))
@example(b"a\xff\xe2\x82b \xc3\xa9")
@example(b"\xed\xa0\x80\xf0\x9f")
def test_bytes_that_are_no_utf8(tokenizer, data):
    ids, offsets = tokenizer([data], return_offsets=True)
    assert ids.to_list() == tokenizer([data]).to_list()
    text = data.decode("utf-8", "replace")
    for a, b in zip(offsets.start[0].numpy(), offsets.byte_start[0].numpy(), strict=True):
        assert len(data[:b].decode("utf-8", "replace")) == a <= len(text)


@settings(max_examples=40)
@given(st.lists(texts, min_size=1, max_size=6), st.booleans(), st.booleans(), st.booleans())
def test_cleaning_is_that_of_the_original(batch, lowercase, remove_space, remove_accents):
    flags = (lowercase, remove_space, remove_accents)
    aligned, _ = clean_aligned(tf.constant(batch), *flags)
    found = ["".join(map(chr, codes)) for codes in aligned.codes.to_list()]
    assert found == [reference.preprocess_text(text, *flags) for text in batch]


def test_rows_do_not_depend_on_each_other(tokenizer):
    ids, offsets = tokenizer(STRINGS, return_offsets=True)
    for row in range(0, len(STRINGS), 5):
        alone = tokenizer(STRINGS[row], return_offsets=True)
        np.testing.assert_array_equal(alone[0], ids[row])
        for part, other in zip(alone[1], offsets, strict=True):
            np.testing.assert_array_equal(part, other[row])


def test_shapes_graph_and_seed():
    tokenizer = XLNetTokenizer(PROTO)
    nested = [["the river", "x9,"], ["", "quiet"]]
    ids, offsets = tokenizer(nested, return_offsets=True)
    assert ids.shape.as_list() == offsets.start.shape.as_list() == [2, 2, None]
    ragged = tf.ragged.constant([["the river"], [], ["x9,", "quiet"]])
    assert tokenizer(ragged, return_offsets=True)[1].end.to_list()[1] == []

    dataset = tf.data.Dataset.from_tensor_slices(["the river", "x9,"]).batch(2)
    mapped = dataset.map(lambda x: tokenizer(x, return_offsets=True))
    # The tokenizer of tensorflow_text that has offsets loses its model here, if it is kept.
    keras.utils.set_random_seed(0)
    for name, part in next(iter(mapped))[1]._asdict().items():
        assert part.to_list() == getattr(offsets, name)[0].to_list()
    again = tokenizer(nested, return_offsets=True)[1]
    assert again.start.to_list() == offsets.start.to_list()

    symbolic, places = tokenizer(keras.Input((), dtype="string"), return_offsets=True)
    assert symbolic.shape == places.end.shape == (None, None) and places.end.dtype == "int64"


def test_sampled_splits_have_offsets_too():
    tokenizer = XLNetTokenizer(PROTO)
    text = "the quiet river  described carefully"
    splits = set()
    for _ in range(30):
        ids, offsets = tokenizer([text], sampling_alpha=0.1, return_offsets=True)
        parts = zip(ids[0].numpy(), offsets.start[0].numpy(), offsets.end[0].numpy(), strict=True)
        for index, a, b in parts:
            assert tokenizer.id_to_token(int(index)).lstrip(WORD_START) == text[a:b]
        splits.add(tuple(ids[0].numpy()))
    assert len(splits) > 1


def test_added_tokens_and_another_vocabulary(tmp_path):
    tokenizer = XLNetTokenizer(PROTO).with_tokens(["<☃ url>"])
    text = "☃☃<☃ url>☃ the <☃ url>"
    ids, offsets = tokenizer(text, return_offsets=True)
    assert ids.numpy().tolist() == tokenizer(text).numpy().tolist()
    parts = [text[a:b] for a, b in zip(offsets.start.numpy(), offsets.end.numpy(), strict=True)]
    assert parts.count("<☃ url>") == 2 and "☃☃" in parts and "☃" in parts

    other = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    other.save_assets(tmp_path)
    tokenizer.load_assets(tmp_path)
    ids, offsets = tokenizer("a rose", return_offsets=True)
    assert ids.numpy().tolist() == other("a rose").numpy().tolist()


def test_added_tokens_that_end_in_a_digit_and_a_comma():
    tokenizer = XLNetTokenizer(PROTO).with_tokens(["a7,"])
    text = "the a7,☃ river"
    ids, offsets = tokenizer(text, return_offsets=True)
    assert ids.numpy().tolist() == tokenizer(text).numpy().tolist()
    parts = [text[a:b] for a, b in zip(offsets.start.numpy(), offsets.end.numpy(), strict=True)]
    # Each of its parts, which are not taken from the text, has all of the token.
    assert parts.count("a7,") > 1 and parts[-1].endswith("r") and "☃" in parts


def test_a_vocabulary_without_its_characters_is_refused():
    model = SentencePieceProto.parse(PROTO.read_bytes())
    model = model.with_pieces([*model.pieces, Piece("a☃", -1.0)])
    tokenizer = XLNetTokenizer(model.serialize())
    with pytest.raises(ValueError, match="`return_offsets` needs a vocabulary .* 'a☃'.* '☃'"):
        tokenizer("a", return_offsets=True)


def test_without_a_model():
    with pytest.raises(ValueError, match="has no SentencePiece model"):
        XLNetTokenizer(None)("a", return_offsets=True)

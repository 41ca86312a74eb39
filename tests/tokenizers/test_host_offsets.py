"""Ids and offsets on the host are those of the TensorFlow graph."""

import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor

import keras_xlnet
from keras_xlnet.tokenizers import XLNetTokenizer, aligned_cleaning
from keras_xlnet.tokenizers.added_tokens import add_tokens
from keras_xlnet.tokenizers.cleaning import clean_text
from keras_xlnet.tokenizers.graph_tokenizer import GraphTokenizer
from keras_xlnet.tokenizers.host_cleaning import clean_with_places
from keras_xlnet.tokenizers.host_offsets import HostOffsetFinder
from keras_xlnet.tokenizers.sentencepiece_proto import BYTE, Piece, SentencePieceProto

PACKAGE = pathlib.Path(keras_xlnet.__file__).parent
GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SQUAD = PACKAGE.parents[1] / "shared" / "data" / "squad" / "dev-v2.0-half.json"
SMS = PACKAGE.parent / "examples" / "data" / "SMSSpamCollection"
PROTO = (GOLDEN / "spiece.model").read_bytes()
SHIPPED, MINI = (
    PACKAGE / "shipped" / name / "assets" / "spiece.model"
    for name in ("xlnet_small_en", "xlnet_mini_en")
)
# None begins as another ends: symbols that overlap have splits of equal score. NFKC changes none of
# them, but combines "=" with a mark that follows.
SYMBOLS = ["<☃ url>", "☃♫", "<pad>_", "x 1,0²,", "a7,", "<url>", "zq="]
STRINGS = [
    case["input"]
    for case in json.loads((GOLDEN / "text.json").read_text(encoding="utf-8"))["strings"]
]
# All of (lowercase, remove_space, remove_accents).
FLAG_SETS = [*itertools.product([False, True], repeat=3)]
# Strings with rules of their own, which random texts would rarely contain.
PARTS = [
    *"9,19, 'x`  \t\n\x1c\u3000\x00",
    *"ΣσİßéÅ½…\u0301\u05bf\ufb01ｗ٣²한\ufffd\u200b.'AaΑ\u00ad\uff9e¨ẞ⑨☃▁㎞\U0001d573😀",
    *["``", "''", "'''", "1,000,", "9,", "the ", " of", "हिन्दी", "👩‍👧", "e\u0301", "\u1100\u1161"],
    *["☃☃☃", "♫", "ﬁx", "ΑΣ", "  ", "＜ｕｒｌ＞", *SYMBOLS],
    *[
        "▁▁",
        " ▁",
        "\u0338",
        "zq=\u0338",
        "zqx",
        "<sep>",
        "<unk>",
        ") a",
        "\u180e",
        "\u2028",
        "a" * 30,
    ],
]
TEXTS = st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=3)), max_size=12).map("".join)


@functools.cache
def tokenizers(name, flags):
    """A tokenizer, for the host, and its graph, which is not compiled."""
    protos = {"golden": PROTO, "shipped": SHIPPED.read_bytes(), "mini": MINI.read_bytes()}
    proto = protos[name.partition("+")[0]]
    if "+" in name:
        proto = add_tokens(proto, ["zqx"] if "mini" in name else SYMBOLS)
    lowercase, remove_space, remove_accents = flags
    tokenizer = XLNetTokenizer(proto, lowercase, remove_accents, remove_space)
    processor = SentencePieceProcessor(model_proto=proto)
    return tokenizer, GraphTokenizer(proto, processor, *flags), processor


def check(name, flags, texts):
    tokenizer, graph, processor = tokenizers(name, flags)
    ids, offsets = tokenizer.encode(texts, return_offsets=True)
    graph_ids, graph_offsets = graph.split(tf.constant(texts), None, return_offsets=True)
    expected = tf.stack([graph_offsets.start, graph_offsets.end], axis=-1)
    for row, found in enumerate(ids):
        np.testing.assert_array_equal(found, tokenizer.encode([texts[row]])[0])
        assert found.dtype == np.int32 and offsets[row].dtype == np.int64
        assert offsets[row].shape == (len(found), 2)
        if found.tolist() == graph_ids[row].numpy().tolist():
            np.testing.assert_array_equal(offsets[row], expected[row], str(texts[row]))
        else:  # Two splits of equal score: rounding decides.
            scores = [total_score(processor, pieces) for pieces in (found, graph_ids[row].numpy())]
            assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def total_score(processor, ids):
    return sum(processor.get_score(int(index)) for index in ids)


# The rules of "mini" keep "▁", and put spaces around punctuation.
@pytest.mark.parametrize("name", ["golden+symbols", "shipped", "shipped+symbols"])
@settings(max_examples=12)
@given(st.lists(TEXTS, min_size=1, max_size=12), st.sampled_from(FLAG_SETS))
@example([" \u00ad \u0301x\u0301\u0301 ", "", " ", "\u0301", "ΑΣ ΑΣΑ Σ", "''' ```` ' '"], (1, 1, 1))
@example(
    ["☃♫<☃ url>☃ the <☃ url>", "☃☃♫☃♫♫x☃", "x☃ url", "9,☃9,", "가\u1100\u1161 ㎞ ¨"], (0, 1, 0)
)
@example(["the a7,☃", "＜ｕｒｌ＞ the", "x 1,0², the", "a7,a7,"], (0, 1, 1))
@example(
    ["▁", "a ▁\u180e▁", "▁▃▅ ▁ b▁", ") a", "x ) a", "zq=\u0338 zq=ﾞ \u0338", "zqxzqx zqx½"],
    (0, 1, 0),
)
def test_offsets_of_any_text(name, texts, flags):
    check(name, (*map(bool, flags),), texts)


@pytest.mark.parametrize("flags", FLAG_SETS)
def test_golden_strings(flags):
    check("golden", flags, STRINGS)
    check("shipped", flags, STRINGS)


@settings(max_examples=12)
@given(st.lists(st.binary(max_size=20), min_size=1))
@example([b"a\xff\xe2\x82b \xc3\xa9", b"\xed\xa0\x80\xf0\x9f"])
def test_bytes_that_are_no_utf8(texts):
    check("golden", (True, True, True), texts)


@pytest.mark.parametrize("name", ["golden", "mini"])
def test_surrogates_are_replaced_as_invalid_bytes_are(name):
    tokenizer, _, _ = tokenizers(name, (False, True, True))
    found = tokenizer.encode(["a\ud800 b\udfff"], return_offsets=True)
    expected = tokenizer.encode(["a\ufffd b\ufffd"], return_offsets=True)
    for part, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part[0], other[0])
    for texts in (["a\ud800 b\udfff"], np.array(["a\ud800 b\udfff"]), [["a\ud800 b\udfff"], []]):
        ids = tokenizer(texts)
        np.testing.assert_array_equal(ids.flat_values, expected[0][0])


def test_the_end_of_a_token_has_no_space_that_a_rule_joins():
    tokenizer, _, _ = tokenizers("mini", (True, True, True))
    # The second text has a character that changes, so that each place is looked up.
    for text, rest in [("x ) a, b", ""), ("x ) a, b", "\u00bd")]:
        _, (offsets,) = tokenizer.encode([text + rest], return_offsets=True)
        assert [text[a:b] for a, b in offsets[:5]] == ["x", ")", "a", ",", "b"]


def test_a_text_that_kernels_split_differently_does_not_change_the_others():
    tokenizer, graph, _ = tokenizers("golden", (False, True, True))
    texts = ["the ☃ river", "a ☃☃ x", "the river ☃"]
    expected = tokenizer.encode(texts, return_offsets=True)[1]
    pieces = graph._pieces.tokenize(texts).with_row_splits_dtype(tf.int64)
    # More unknown tokens in the second text than it has unknown characters.
    pieces = tf.concat(
        [pieces[:1], tf.ragged.constant([[0] * 9], row_splits_dtype=tf.int64), pieces[2:]], 0
    )
    cleaned, byte_start = aligned_cleaning.clean_aligned(tf.constant(texts), False, True, True)
    found = graph._require_offset_finder().offsets(cleaned, byte_start, pieces)
    for row in (0, 2):
        np.testing.assert_array_equal(found.start[row], expected[row][:, 0])
        np.testing.assert_array_equal(found.end[row], expected[row][:, 1])
    assert (found.end[1].numpy() <= len(texts[1])).all()


def test_no_texts():
    tokenizer, _, _ = tokenizers("golden", (False, True, True))
    assert tokenizer.encode([], return_offsets=True) == ([], [])


def test_another_vocabulary(tmp_path):
    tokenizer = XLNetTokenizer(PROTO)
    tokenizer.encode(["a"], return_offsets=True)
    other = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    other.save_assets(tmp_path)
    tokenizer.load_assets(tmp_path)
    (offsets,) = tokenizer.encode(["a rose"], return_offsets=True)[1]
    np.testing.assert_array_equal(offsets, other.encode(["a rose"], return_offsets=True)[1][0])


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["xlnet_small_en", "xlnet_mini_en"])
def test_ids_and_offsets_of_all_messages(preset):
    lines = SMS.read_text(encoding="utf-8").split("\n")
    texts = [line.split("\t", 1)[1] for line in lines if line]
    tokenizer = XLNetTokenizer.from_preset(preset)
    ids, offsets = tokenizer.encode(texts, return_offsets=True)
    graph_ids, graph_offsets = tokenizer(texts, return_offsets=True)
    assert len(texts) == 5574 and graph_ids.to_list() == [row.tolist() for row in ids]
    found = np.stack([graph_offsets.start.flat_values, graph_offsets.end.flat_values], axis=1)
    np.testing.assert_array_equal(found, np.concatenate(offsets))


@pytest.mark.slow
def test_contexts_of_squad():
    if not SQUAD.exists():
        pytest.skip(f"no {SQUAD}")
    articles = json.loads(SQUAD.read_text(encoding="utf-8"))["data"]
    texts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
    for flags in [(False, True, True), (True, True, False)]:
        check("shipped", flags, texts)


# === Cleaning ===


@pytest.mark.slow
@pytest.mark.parametrize("flags", FLAG_SETS)
def test_cleaning_of_all_characters(flags):
    codes = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    texts = [" aΣ".join(map(chr, codes[start::2000])) for start in range(2000)]
    found = [clean_with_places(text, *flags) for text in texts]
    assert [row.text for row in found] == [clean_text(text, *flags) for text in texts]
    expected, _ = aligned_cleaning.clean_aligned(tf.constant(texts), *flags)
    assert [len(row.text) for row in found] == expected.codes.row_lengths().numpy().tolist()
    for name in ("start", "end"):
        places = np.concatenate([getattr(row, name) for row in found])
        np.testing.assert_array_equal(places, getattr(expected, name).flat_values)


@settings(max_examples=200)
@given(TEXTS, st.sampled_from(FLAG_SETS))
def test_the_text_with_places_is_the_cleaned_text(text, flags):
    cleaned = clean_with_places(text, *flags)
    assert cleaned.text == clean_text(text, *flags)
    assert len(cleaned.start) == len(cleaned.end) == len(cleaned.text)
    assert (cleaned.start < cleaned.end).all() and (np.diff(cleaned.start) >= 0).all()


# === Vocabularies ===


def test_byte_pieces():
    pieces = [Piece(f"<0x{value:02X}>", type=BYTE) for value in range(256)]
    model = SentencePieceProto.parse(PROTO)
    tokenizer = XLNetTokenizer(
        model.with_pieces([*model.pieces, *pieces], byte_fallback=1).serialize()
    )
    text = "the ☃😀 river"
    (ids,), (offsets,) = tokenizer.encode([text], return_offsets=True)
    parts = [text[start:end] for start, end in offsets]
    assert parts.count("☃") == 3 and parts.count("😀") == 4
    assert len(parts) == len(ids) and parts[-1] == text[offsets[-1, 0] :]


def test_a_vocabulary_without_a_piece_for_each_character():
    model = SentencePieceProto.parse(PROTO)
    proto = model.with_pieces([*model.pieces, Piece("a☃", -1.0)]).serialize()
    text = "a☃ ☃☃ x"
    (ids,), (offsets,) = XLNetTokenizer(proto).encode([text], return_offsets=True)
    assert len(model.pieces) in ids
    assert [text[start:end] for start, end in offsets if end > start] == ["a☃", "☃☃", "x"]


def test_pieces_of_another_text():
    processor = SentencePieceProcessor(model_proto=PROTO)
    finder = HostOffsetFinder(PROTO, processor)
    cleaned = clean_with_places("the ☃ river", False, True, True)
    for text in ("", "the ☃ rivers", "☃"):
        with pytest.raises(ValueError, match="`pieces` must be the ids of the text 'the ☃ river'"):
            finder.offsets(cleaned, np.array(processor.encode(text), "int32"))


# === Without TensorFlow ===


BLOCKED = """
import sys

for name in ("tensorflow", "tensorflow_text", "google.protobuf"):
    sys.modules[name] = None

from keras_xlnet.tokenizers import VocabularyTokenizer, XLNetTokenizer

text = " The  caf\\u00e9, "
tokenizer = XLNetTokenizer(sys.argv[1], lowercase=True, remove_accents=True)
(ids,), (offsets,) = tokenizer.encode([text], return_offsets=True)
print(tokenizer.decode(ids), *offsets[0], *offsets[-1], sep="|")
words = VocabularyTokenizer.train([text], end_token="<eos>")
rows = words.encode([text, "The"])
print(*[row.tolist() for row in rows], words.decode(rows), words.split_at_blanks("The <mask>"))
"""


def test_without_tensorflow_and_protobuf():
    pytest.importorskip("jax")
    path = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    output = subprocess.run(
        [sys.executable, "-c", BLOCKED, str(GOLDEN / "spiece.model")],
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": path, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert output.returncode == 0, output.stderr
    pieces, words = output.stdout.splitlines()
    assert pieces == "the cafe,|1|1|10|11"
    assert words.startswith("[1, 2, 0] [1, 0] ['The café,', 'The'] [array([1]")

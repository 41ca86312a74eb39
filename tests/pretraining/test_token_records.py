"""Errors for damaged, missing and foreign records name the file."""

import json
import pathlib
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.pretraining import TokenRecords, write_token_records
from keras_xlnet.pretraining.tfrecord_files import count_records
from keras_xlnet.pretraining.token_shard import read_shard, serialize_document
from keras_xlnet.tokenizers import XLNetTokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SHARD = "tokens-00000.tfrecord"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("made")
    (directory / "a.txt").write_text("the turtle\nthe doctor\n\nthe window\n")
    tokenizer = XLNetTokenizer(GOLDEN / "spiece.model")
    write_token_records(directory / "a.txt", tokenizer, directory / "r", verbose=0)
    return directory / "r"


@pytest.fixture
def directory(made, tmp_path):
    return pathlib.Path(shutil.copytree(made, tmp_path / "r"))


def edit_info(directory, **changes):
    path = directory / "records.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def flip_byte(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_missing_files_are_named(directory):
    (directory / SHARD).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{SHARD}' does not exist"):
        TokenRecords(directory)
    with pytest.raises(FileNotFoundError, match="must contain finished token records.*'/nowhere'"):
        TokenRecords("/nowhere")


def test_missing_vocabulary_is_named(directory):
    (directory / "spiece.model").unlink()
    with pytest.raises(FileNotFoundError, match=r"spiece\.model"):
        TokenRecords(directory)


@pytest.mark.parametrize("kept", [0, 5, 13, 60])
def test_truncated_shards_are_named(directory, kept):
    shard = directory / SHARD
    shard.write_bytes(shard.read_bytes()[:kept])
    with pytest.raises(ValueError, match=rf"{SHARD}' is truncated or damaged.*Received: {kept}$"):
        TokenRecords(directory)


@pytest.mark.parametrize("position", [3, 9, 30, -1])
def test_flipped_bits_are_found_in_reading(directory, position):
    flip_byte(directory / SHARD, position)
    records = TokenRecords(directory)
    with pytest.raises(ValueError, match=rf"{SHARD}' is damaged"):
        records.read(0)
    with pytest.raises(ValueError, match=rf"{SHARD}' is damaged"):
        list(records.documents())


def test_another_vocabulary_is_refused(directory, tmp_path):
    XLNetTokenizer.train(iter(["a cat sat"] * 9), 22, proto_path=directory / "spiece.model")
    with pytest.raises(ValueError, match=r"spiece\.model' is not the vocabulary"):
        TokenRecords(directory)


def test_another_vocabulary_size_is_refused(directory):
    edit_info(directory, vocabulary_size=32000)
    with pytest.raises(ValueError, match="of 32000 pieces, but spiece.model has 200"):
        TokenRecords(directory)


def test_newer_and_damaged_descriptions_are_refused(directory):
    edit_info(directory, format_version=2)
    with pytest.raises(
        ValueError, match=r"records\.json' has an unsupported format .* up to 1. Received: 2"
    ):
        TokenRecords(directory)
    (directory / "records.json").write_text('{"format_version": 1}')
    with pytest.raises(ValueError, match=r"records\.json' is damaged: it must contain"):
        TokenRecords(directory)
    for content in ("{", "[]"):
        (directory / "records.json").write_text(content)
        with pytest.raises(ValueError, match=r"records\.json' is damaged"):
            TokenRecords(directory)


@pytest.mark.parametrize(
    "changes", [dict(shards=[]), dict(shards=[{"file": "a"}]), dict(tokenizer={"sha256": ""})]
)
def test_incomplete_descriptions_are_refused(directory, changes):
    edit_info(directory, **changes)
    with pytest.raises(
        ValueError, match="must contain vocabulary_size|description of the tokenizer lacks"
    ):
        TokenRecords(directory)


@settings(max_examples=60)
@given(data=st.data())
def test_no_damage_goes_unnoticed(made, data):
    """Any bit of a shard is flipped, or the shard is truncated anywhere."""
    content = (made / SHARD).read_bytes()
    position = data.draw(st.integers(0, len(content) - 1))
    damaged = content[:position]
    if data.draw(st.booleans()):
        damaged += bytes([content[position] ^ 1 << data.draw(st.integers(0, 7))])
        damaged += content[position + 1 :]
    path = str(made / "damaged")
    pathlib.Path(path).write_bytes(damaged)
    try:
        # A file truncated between two records is valid, but records.json has another count.
        assert read_shard(path).num_documents == 1 and position < len(content)
    except ValueError as error:
        assert repr(path) in str(error)


def rewrite_shard(directory, records):
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(directory / SHARD)) as writer:
        for record in records:
            writer.write(record)
    info = json.loads((directory / "records.json").read_text())
    shard = {**info["shards"][0], "bytes": (directory / SHARD).stat().st_size}
    edit_info(directory, shards=[shard])


@pytest.mark.parametrize(
    "contents, message",
    [
        ([], "contains no documents"),
        ([b"no example"], "does not contain token records"),
        ([serialize_document([9, 9], [3])], "has 2 tokens, but .* add up to 3"),
        ([serialize_document([9, 9], [2])], "must have .*, as records.json says"),
    ],
)
def test_foreign_shards_are_named(directory, contents, message):
    rewrite_shard(directory, contents)
    with pytest.raises(ValueError, match=rf"{SHARD}' .*{message}"):
        TokenRecords(directory).read(0)


def test_ids_beyond_the_vocabulary_are_refused(directory):
    documents = list(TokenRecords(directory).documents())
    documents[0][0][0] = 200
    rewrite_shard(directory, [serialize_document(*document) for document in documents])
    with pytest.raises(
        ValueError, match=rf"{SHARD}' must have ids .* 200 pieces. Received: .* to 200"
    ):
        TokenRecords(directory).read(0)


def test_count_records(directory):
    shard = directory / SHARD
    assert count_records(str(shard)) == 2
    content = shard.read_bytes()
    for kept in (len(content) - 1, 5, len(content) // 2):
        shard.write_bytes(content[:kept])
        with pytest.raises(ValueError, match=rf"{SHARD}' is truncated"):
            count_records(str(shard))
    with pytest.raises(FileNotFoundError, match="nothing"):
        count_records("nothing")

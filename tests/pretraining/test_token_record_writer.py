"""Text files to records: contents, interrupted calls, several processes, invalid files."""

import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.pretraining import TokenRecords, write_token_records
from keras_xlnet.pretraining.text_files import plan_shards, read_documents
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.tokenizers.sentences import split_sentences

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
RAW = sorted((GOLDEN / "pretrain_data" / "raw").glob("*.txt"))
BLANK = "\n \t\n"


@pytest.fixture(scope="module")
def tokenizer():
    return XLNetTokenizer(GOLDEN / "spiece.model", remove_accents=True)


def write(files, tokenizer, directory, **kwargs):
    return write_token_records(files, tokenizer, directory, verbose=0, **kwargs)


def bytes_of(directory):
    return {path.name: path.read_bytes() for path in sorted(pathlib.Path(directory).iterdir())}


def shard_bytes_of(directory):
    contents = bytes_of(directory)
    return {name: content for name, content in contents.items() if name.startswith("tokens")}


def texts_of(records):
    """Returns the texts of the sentences of every document."""
    detokenize = records.tokenizer().detokenize
    return [
        [detokenize(part).numpy().decode() for part in np.split(tokens, np.cumsum(lengths)[:-1])]
        for tokens, lengths in records.documents()
    ]


@pytest.mark.parametrize("variant", ["bi", "uni"])
def test_tokens_equal_the_original(variant, golden, tmp_path):
    """The concatenated first halves of the original's forward rows are the tokens of our shards."""
    info = golden("data.json")[f"{variant}_corpus_info"]
    flags = dict(lowercase=info["uncased"], remove_accents=True)
    order = np.random.RandomState({"bi": 0, "uni": 3}[variant]).permutation(len(RAW))
    records = write(
        [RAW[index] for index in order],
        XLNetTokenizer(GOLDEN / "spiece.model", **flags),
        tmp_path,
        end_of_document=info["use_eod"],
    )
    tokens = np.concatenate([tokens for tokens, _ in records.documents()])
    if info["use_eod"]:
        # The original adds <eod> for blank lines, so not after the last document of a file.
        ends = np.cumsum([length for path in order for length in [documents_in(RAW[path])]])
        tokens = without_documents_end(records, ends)
    rows = golden("data.npz")[f"{variant}_rec_input"].reshape(-1, info["bsz_per_host"], 32)
    num_parts = info["bsz_per_host"] // (2 if info["bi_data"] else 1)
    parts = tokens[: len(tokens) // num_parts * num_parts].reshape(num_parts, -1)
    reused = rows[:, :num_parts, :16].transpose(1, 0, 2).reshape(num_parts, -1)
    np.testing.assert_array_equal(reused, parts[:, : reused.shape[1]])


def documents_in(path):
    return len(re.split(r"\n\s*\n", path.read_text(encoding="utf-8").strip()))


def without_documents_end(records, last_documents):
    parts = []
    for number, (tokens, _) in enumerate(records.documents(), start=1):
        parts.append(tokens[:-1] if number in last_documents else tokens)
    return np.concatenate(parts)


words = st.sampled_from(["turtle", "doctor", "window", "a", "Oslo", "9,000", "£", "quickly."])
sentences = st.lists(words, min_size=1, max_size=4).map(" ".join)
documents = st.lists(st.lists(sentences, min_size=1, max_size=4), min_size=1, max_size=4)


@settings(max_examples=10)
@given(files=st.lists(documents, min_size=1, max_size=3), shard_bytes=st.integers(60, 300))
def test_records_contain_the_documents(files, shard_bytes, tokenizer, tmp_path_factory):
    directory = tmp_path_factory.mktemp("records")
    paths = []
    for number, content in enumerate(files):
        paths.append(directory / f"{number}.txt")
        paths[-1].write_text(BLANK.join("\r\n".join(lines) for lines in content), "utf-8")
    records = write(
        paths, tokenizer, directory / "r", end_of_document=False, shard_bytes=shard_bytes
    )
    expected = [lines for content in files for lines in content]
    assert [len(lines) for lines in expected] == [len(n) for _, n in records.documents()]
    for lines, (tokens, lengths) in zip(expected, records.documents(), strict=True):
        ids = tokenizer(lines)
        np.testing.assert_array_equal(tokens, ids.values)
        np.testing.assert_array_equal(lengths, ids.row_lengths())
    assert records.num_documents == len(expected)
    assert records.num_tokens == sum(len(tokens) for tokens, _ in records.documents())


@settings(max_examples=50)
@given(
    lines=st.lists(st.sampled_from(["one", "two three", "", " ", "= x =", "é"]), max_size=30),
    shard_bytes=st.integers(1, 40),
    document_start=st.sampled_from([None, "^= "]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_shards_do_not_change_documents(
    lines, shard_bytes, document_start, newline, tmp_path_factory
):
    path = str(tmp_path_factory.mktemp("text") / "a.txt")
    pathlib.Path(path).write_bytes(newline.join(lines).encode())
    size = os.path.getsize(path)

    def read(bound):
        shards = plan_shards({path: size}, bound)
        return [list(read_documents(parts, "sentences", document_start)) for parts in shards]

    whole, cut = read(10**6), read(shard_bytes)
    assert [document for shard in cut for document in shard] == sum(whole, [])


def test_shards_have_nearly_equal_sizes():
    shards = plan_shards({"a": 1000, "b.gz": 10, "c": 5, "d": 985}, 300)
    sizes = [
        sum(min(p.end, {"a": 1000, "b.gz": 10, "c": 5, "d": 985}[p.path]) - p.begin for p in s)
        for s in shards
    ]
    assert len(sizes) == 7 and sum(sizes) == 2000 and max(sizes) <= 300


def test_contents_of_the_records(tokenizer, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffthe turtle\nthe doctor\n\n\nthe window".encode())
    records = write(path, tokenizer, tmp_path / "r")
    assert texts_of(records) == [["the turtle", "the doctor"], ["the window"]]
    ends = [tokens[-1] for tokens, _ in records.documents()]
    assert ends == [tokenizer.eod_token_id] * 2
    tokens, boundaries, num_documents = records.read(0)
    assert num_documents == 2 and boundaries[0] == 0 and boundaries[-1] == len(tokens)
    assert records.num_tokens == len(tokens) and records.num_sentences == 3
    assert records.vocabulary_size == 200
    assert records.tokenizer().get_config()["remove_accents"] is True
    assert sorted(os.listdir(tmp_path / "r")) == [
        "records.json",
        "spiece.model",
        "tokens-00000.tfrecord",
    ]


def test_compressed_files_and_patterns(tokenizer, tmp_path):
    for number, name in enumerate("ab"):
        text = f"the {['turtle', 'doctor'][number]}\n\n" * 3
        (tmp_path / f"{name}.txt").write_text(text)
        with gzip.open(tmp_path / f"{name}.txt.gz", "wt") as file:
            file.write(text)
    plain = write(str(tmp_path / "*.txt"), tokenizer, tmp_path / "plain", shard_bytes=20)
    packed = write([str(tmp_path / "*.gz")], tokenizer, tmp_path / "packed", shard_bytes=20)
    assert texts_of(plain) == texts_of(packed) == [["the turtle"]] * 3 + [["the doctor"]] * 3


def test_paragraphs(tokenizer, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(" \n = Doctor = \n \n A turtle. A doctor ! \n A window. \n = Turtle = \n A \n")
    records = write(path, tokenizer, tmp_path / "r", lines="paragraphs", document_start="^ = [^=]")
    assert [len(lengths) for _, lengths in records.documents()] == [4, 2]


def test_sentences_of_a_paragraph():
    text = "He paid 3.50 to J. Smith . “Why?” Yes! Ann (a U.S. Army doctor) left... then 2 came. Ok"
    assert split_sentences(text) == [
        "He paid 3.50 to J. Smith .",
        "“Why?”",
        "Yes!",
        "Ann (a U.S. Army doctor) left... then 2 came.",
        "Ok",
    ]
    assert split_sentences("他来了。她走了！「好。」是") == [
        "他来了。",
        "她走了！",
        "「好。」",
        "是",
    ]
    assert split_sentences("  ") == []
    # A letter with accents is one letter, composed or not; a letter with a vowel sign is a word.
    for initial in ("\u00c9", "E\u0301", "E\u0302\u0301"):
        assert len(split_sentences(f"Par {initial}. Zola. Fin")) == 2
    assert split_sentences("घर है. यह") == ["घर है.", "यह"]


@given(st.text(alphabet='aA. !?"。é'))
def test_sentences_keep_every_character(text):
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence == sentence.strip() != "" for sentence in sentences)


def corpus(directory, num_files=3):
    for number in range(num_files):
        text = "the turtle visited the doctor.\nthe window opened.\n\n" * (5 + number)
        (directory / f"{number}.txt").write_text(text)
    return str(directory / "*.txt")


@pytest.mark.slow
def test_two_processes_write_the_same_as_one(tokenizer, tmp_path):
    files = corpus(tmp_path)
    one = write(files, tokenizer, tmp_path / "one", shard_bytes=200)
    write(files, tokenizer, tmp_path / "two", shard_bytes=200, num_processes=2)
    assert len(one.shards) > 3
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two")


KILLED = """
import sys
from keras_xlnet.pretraining import write_token_records
from keras_xlnet.tokenizers import XLNetTokenizer

if __name__ == "__main__":
    spiece, files, directory, num_processes = sys.argv[1:]
    write_token_records(
        files,
        XLNetTokenizer(spiece, remove_accents=True),
        directory,
        shard_bytes=300,
        num_processes=int(num_processes),
        verbose=0,
    )
"""


@pytest.mark.parametrize("num_processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_continues_after_a_kill(num_processes, tokenizer, tmp_path):
    files = corpus(tmp_path, 15)
    directory = tmp_path / "killed"
    (tmp_path / "killed.py").write_text(KILLED)
    arguments = [tmp_path / "killed.py", GOLDEN / "spiece.model", files, directory, num_processes]
    process = subprocess.Popen(
        [sys.executable, *map(str, arguments)], stderr=subprocess.PIPE, start_new_session=True
    )
    first = directory / "tokens-00003.counts.json"
    wait_for(first, process)
    process.send_signal(signal.SIGKILL)
    # Returns when the last worker has exited, because all of them inherit the pipe.
    process.stderr.read()
    assert not (directory / "records.json").exists()
    with pytest.raises(FileNotFoundError, match="no records.json"):
        TokenRecords(directory)
    with pytest.raises(ValueError, match="another value of shard_bytes: 300. Received: 150"):
        write(files, tokenizer, directory, shard_bytes=150)
    kept = first.with_name("tokens-00003.tfrecord")
    written_at = kept.stat().st_mtime_ns
    write(files, tokenizer, directory, shard_bytes=300)
    assert kept.stat().st_mtime_ns == written_at
    write(files, tokenizer, tmp_path / "whole", shard_bytes=300)
    assert bytes_of(directory) == bytes_of(tmp_path / "whole")


def wait_for(path, process):
    deadline = time.monotonic() + 240
    while not path.exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)


TEXTS = ["the turtle\nthe doctor", " \n", "the window?\n\nthe turtle"]


@pytest.mark.parametrize("form", ["iterator", "series", "column", "streamed", "tf.data"])
def test_texts_are_documents(form, tokenizer, tmp_path):
    if form == "iterator":
        texts = iter(TEXTS)
    elif form == "series":
        texts = pd.Series(TEXTS, index=[3, 1, 2])
    elif form == "tf.data":
        texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    else:
        table = pytest.importorskip("datasets").Dataset.from_dict({"text": TEXTS})
        texts = (table.to_iterable_dataset() if form == "streamed" else table)["text"]
    records = write(texts, tokenizer, tmp_path / "records", shard_bytes=30)
    (tmp_path / "a.txt").write_text("the turtle\nthe doctor\n\nthe window?\nthe turtle\n\n")
    of_file = write(tmp_path / "a.txt", tokenizer, tmp_path / "of_file", shard_bytes=30)
    assert texts_of(records) == texts_of(of_file)
    assert texts_of(records) == [["the turtle", "the doctor"], ["the window?", "the turtle"]]


def test_records_of_texts_are_kept(tokenizer, tmp_path):
    write(iter(TEXTS), tokenizer, tmp_path)
    before = (tmp_path / "tokens-00000.tfrecord").stat().st_mtime_ns
    write((text for text in TEXTS), tokenizer, tmp_path)
    assert (tmp_path / "tokens-00000.tfrecord").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="another value of files"):
        write(iter(["the turtle"]), tokenizer, tmp_path)


def test_bad_texts_are_named(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="`files` must be strings. Received in row 1: 7"):
        write(iter(["the turtle", 7]), tokenizer, tmp_path)
    with pytest.raises(ValueError, match="files without a token, the first of them 'texts'"):
        write(iter([" ", ""]), tokenizer, tmp_path)
    with pytest.raises(ValueError, match="`document_start` must be None for texts"):
        write(iter(TEXTS), tokenizer, tmp_path, document_start="^ =")
    with pytest.raises(FileNotFoundError, match=r"pass an iterator such as iter\(texts\)"):
        write(["is it a turtle?"], tokenizer, tmp_path)


def test_finished_records_are_kept(tokenizer, tmp_path):
    files = corpus(tmp_path)
    write(files, tokenizer, tmp_path / "r")
    before = (tmp_path / "r" / "tokens-00000.tfrecord").stat().st_mtime_ns
    assert write(files, tokenizer, tmp_path / "r").num_documents == 18
    assert (tmp_path / "r" / "tokens-00000.tfrecord").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="another value of end_of_document: True. Received: False"):
        write(files, tokenizer, tmp_path / "r", end_of_document=False)
    (tmp_path / "0.txt").write_text("another text")
    with pytest.raises(ValueError, match="another value of files"):
        write(files, tokenizer, tmp_path / "r")


CUT_GZIP = gzip.compress(b"the turtle\n" * 50)[:-9]
BAD_FILES = {
    "latin-1": ("a.txt", "café".encode("latin-1"), r"a\.txt' is not UTF-8 text: .* at byte 3"),
    "third-line": ("a.txt", b"ok\nfine\nca\xff", r"a\.txt' is not UTF-8 text: .* at byte 10"),
    "no-gzip": ("a.txt.gz", b"no gzip", r"a\.txt\.gz' is not a complete gzip file"),
    "cut-gzip": ("a.txt.gz", CUT_GZIP, r"a\.txt\.gz' is not a complete gzip file"),
    "empty": ("a.txt", b"", r"Received: 1 files without a token, the first of them '.*a\.txt'"),
    "blank": ("a.txt", b" \n\n \n", r"Received: 1 files without a token, .* '.*a\.txt'"),
}


# With ids: a gzip file contains the time, so without them two test processes would not collect
# tests of the same names.
@pytest.mark.parametrize("name, content, message", BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_are_named(name, content, message, tokenizer, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        write(tmp_path / name, tokenizer, tmp_path / "r")


@pytest.mark.slow
def test_errors_in_worker_processes_are_raised(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"the turtle\n\n" * 10 + b"\xff")
    with pytest.raises(ValueError, match=r"a\.txt' is not UTF-8 text: .* at byte 120"):
        write(tmp_path / "a.txt", tokenizer, tmp_path / "r", shard_bytes=61, num_processes=2)


def test_bad_arguments_are_named(tokenizer, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must exist. Received: '/nowhere/a\.txt'"):
        write("/nowhere/a.txt", tokenizer, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"must match .* the pattern '/nowhere/\*\.txt'"):
        write("/nowhere/*.txt", tokenizer, tmp_path)
    with pytest.raises(ValueError, match=r"the directory '.*'. Use '.*\*\.txt'"):
        write(tmp_path, tokenizer, tmp_path / "r")
    with pytest.raises(ValueError, match="`files` must name at least one"):
        write([], tokenizer, tmp_path)
    (tmp_path / "a.txt").write_text("the turtle")
    for name, value, message in [
        ("lines", "words", "`lines` must be one of"),
        ("shard_bytes", 0, "`shard_bytes` must be a positive integer. .*=0"),
        ("num_processes", True, "`num_processes` must be a positive integer. .*=True"),
        ("document_start", "(", "`document_start` must be a regular expression"),
    ]:
        with pytest.raises(ValueError, match=message):
            write(tmp_path / "a.txt", tokenizer, tmp_path / "r", **{name: value})
    with pytest.raises(ValueError, match="`tokenizer` must be an XLNetTokenizer"):
        write(tmp_path / "a.txt", "spiece.model", tmp_path / "r")


def test_progress_bar(tokenizer, tmp_path, capsys):
    write_token_records(corpus(tmp_path), tokenizer, tmp_path / "r", shard_bytes=450)
    assert re.search(r"3/3\b", capsys.readouterr().out)


def test_json_is_readable(tokenizer, tmp_path):
    write(corpus(tmp_path), tokenizer, tmp_path / "r")
    info = json.loads((tmp_path / "r" / "records.json").read_text(encoding="utf-8"))
    assert info["format_version"] == 1 and info["shards"][0]["documents"] == 18

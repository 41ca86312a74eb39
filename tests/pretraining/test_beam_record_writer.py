"""Records by Apache Beam: the same bytes, other formats and file systems, interrupted calls."""

import gzip
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest

from keras_xlnet.pretraining import (
    TokenRecords,
    beam_record_writer,
    write_token_records,
    write_token_records_with_beam,
)
from keras_xlnet.pretraining.file_systems import BEAM_FILES
from keras_xlnet.tokenizers import XLNetTokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
WORDS = ["turtle", "doctor", "window", "a", "Oslo", "9,000", "£", "quickly."]
# Not DirectRunner, which tries to download the program Prism before it takes this runner.
TWO_PROCESSES = [
    "--runner=FnApiRunner",
    "--direct_num_workers=2",
    "--direct_running_mode=multi_processing",
]


@pytest.fixture(scope="module")
def tokenizer():
    return XLNetTokenizer(GOLDEN / "spiece.model", remove_accents=True)


@pytest.fixture
def beam_write(tokenizer):
    pytest.importorskip("apache_beam")

    def write(files, directory, **kwargs):
        return write_token_records_with_beam(files, tokenizer, directory, **kwargs)

    return write


def random_documents(count, seed=0):
    """Returns different documents of one to four lines of words."""
    generator = random.Random(seed)
    return [
        "\n".join(
            " ".join(generator.choices(WORDS, k=generator.randint(1, 6))) + f" {number}."
            for _ in range(generator.randint(1, 4))
        )
        for number in range(count)
    ]


def text_corpus(directory, count=40):
    documents = random_documents(count)
    half = len(documents) // 2
    (directory / "a.txt").write_text("\n\n".join(documents[:half]), "utf-8")
    (directory / "b.txt").write_text("\n\n".join(documents[half:]) + "\n", "utf-8")
    with gzip.open(directory / "c.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n\n".join(random_documents(5, seed=1)))
    return str(directory / "*.txt*")


def json_lines(documents, field="text"):
    return "".join(
        json.dumps({"id": number, field: text}) + "\n" for number, text in enumerate(documents)
    )


def write_parquet(path, documents, rows_per_group, **types):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    ids = pyarrow.array(range(len(documents)))
    texts = pyarrow.array(documents, **types)
    table = pyarrow.table({"id": ids, "text": texts})
    parquet.write_table(table, path, row_group_size=rows_per_group)


def bytes_of(directory):
    return {path.name: path.read_bytes() for path in sorted(pathlib.Path(directory).iterdir())}


def documents_of(records):
    return [(tokens.tolist(), lengths.tolist()) for tokens, lengths in records.documents()]


@pytest.mark.parametrize(
    "arguments",
    [
        {"shard_bytes": 200},
        {"shard_bytes": 300, "lines": "paragraphs", "document_start": "turtle [0-9]"},
        {"end_of_document": False},
    ],
    ids=["small-shards", "paragraphs", "one-shard"],
)
def test_text_gives_the_same_bytes(arguments, beam_write, tokenizer, tmp_path):
    files = text_corpus(tmp_path)
    # Each bundle runs twice, as if the runner had tried it again.
    flags = ["--runner=FnApiRunner", "--direct_runner_bundle_repeat=1"]
    records = beam_write(files, tmp_path / "beam", pipeline_options=flags, **arguments)
    write_token_records(files, tokenizer, tmp_path / "plain", verbose=0, **arguments)
    assert len(records.shards) > 5 or "shard_bytes" not in arguments
    assert bytes_of(tmp_path / "beam") == bytes_of(tmp_path / "plain")


@pytest.mark.slow
def test_two_processes_give_the_same_bytes(beam_write, tokenizer, tmp_path):
    files = text_corpus(tmp_path)
    beam_write(files, tmp_path / "beam", shard_bytes=200, pipeline_options=TWO_PROCESSES)
    write_token_records(files, tokenizer, tmp_path / "plain", verbose=0, shard_bytes=200)
    assert bytes_of(tmp_path / "beam") == bytes_of(tmp_path / "plain")


def test_formats_give_the_same_documents(beam_write, tokenizer, tmp_path):
    lines = "paragraphs"
    documents = [*random_documents(30), "", "\ufeffa turtle\r\n\n \n a doctor.\n A window"]
    (tmp_path / "a.txt").write_text("\n\n".join(documents[:30]), "utf-8")
    (tmp_path / "b.txt").write_bytes(b"a turtle\r\n a doctor.\n A window")
    (tmp_path / "a.jsonl").write_text("\n" + json_lines(documents), "utf-8")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json_lines(documents).encode()))
    write_parquet(tmp_path / "a.parquet", documents, rows_per_group=7)
    texts = [tmp_path / "a.txt", tmp_path / "b.txt"]
    expected = write_token_records(texts, tokenizer, tmp_path / "r", lines=lines, verbose=0)
    for name in ("a.jsonl", "a.jsonl.gz", "a.parquet"):
        file_format = name.split(".")[1]
        records = beam_write(
            tmp_path / name,
            tmp_path / f"{name}-r",
            file_format=file_format,
            lines=lines,
            shard_bytes=300,
        )
        assert documents_of(records) == documents_of(expected)
        assert len(records.shards) > 3 or name.endswith("gz")


def test_column_types_and_names(beam_write, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    documents = ["the turtle", "the doctor", "the turtle"] * 5
    (tmp_path / "a.jsonl").write_text(json_lines(documents, field="body"))
    expected = beam_write(
        tmp_path / "a.jsonl", tmp_path / "r", file_format="jsonl", text_field="body"
    )
    for number, kind in enumerate(
        [pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())]
    ):
        path = tmp_path / f"{number}.parquet"
        write_parquet(path, documents, rows_per_group=4, type=kind)
        records = beam_write(path, tmp_path / f"r{number}", file_format="parquet", shard_bytes=60)
        assert documents_of(records) == documents_of(expected)


def test_a_file_system_that_tensorflow_does_not_know(beam_write, tokenizer, tmp_path):
    from tests.pretraining.renamed_file_system import RenamedFileSystem

    files = text_corpus(tmp_path)
    assert RenamedFileSystem.scheme() == "renamed"
    renamed = "renamed:/" + str(tmp_path)
    result = beam_write(f"{renamed}/*.txt*", f"{renamed}/beam", shard_bytes=200)
    assert result is None
    write_token_records(files, tokenizer, tmp_path / "plain", verbose=0, shard_bytes=200)
    found, expected = bytes_of(tmp_path / "beam"), bytes_of(tmp_path / "plain")
    infos = [json.loads(contents.pop("records.json")) for contents in (found, expected)]
    assert found == expected
    assert infos[0]["shards"] == infos[1]["shards"]
    assert [path for path, _, _ in infos[0]["files"]] == [
        path.replace("/", "renamed://", 1) for path, _, _ in infos[1]["files"]
    ]
    assert documents_of(TokenRecords(tmp_path / "beam")) == documents_of(
        TokenRecords(tmp_path / "plain")
    )
    with pytest.raises(FileNotFoundError, match="must match at least one file. .*x/"):
        beam_write(f"{renamed}/x/*.txt", f"{renamed}/r")
    with pytest.raises(FileNotFoundError, match=r"must exist. .*x\.txt"):
        beam_write(f"{renamed}/x.txt", f"{renamed}/r")


def test_a_file_that_another_attempt_has_written_is_kept(tmp_path):
    pytest.importorskip("apache_beam")
    from tests.pretraining.renamed_file_system import RenamedFileSystem

    assert RenamedFileSystem.scheme() == "renamed"
    for _ in range(2):
        with BEAM_FILES.replacing(f"renamed:/{tmp_path}/a") as path:
            pathlib.Path(path).write_bytes(b"records")
    assert bytes_of(tmp_path) == {"a": b"records"}
    with pytest.raises(Exception, match="interrupted"):  # noqa: SIM117
        with BEAM_FILES.replacing(f"renamed:/{tmp_path}/b") as path:
            raise RuntimeError("interrupted")
    assert bytes_of(tmp_path).keys() == {"a"}


def test_continues_after_a_failure(beam_write, tokenizer, tmp_path, monkeypatch):
    files = text_corpus(tmp_path)
    write_shard, calls = beam_record_writer.write_shard, []

    def fail_once(directory, settings, index, parts, files):
        calls.append(index)
        if len(calls) == 4:
            raise RuntimeError("out of memory")
        return write_shard(directory, settings, index, parts, files)

    monkeypatch.setattr(beam_record_writer, "write_shard", fail_once)
    with pytest.raises(RuntimeError, match="out of memory"):
        beam_write(files, tmp_path / "r", shard_bytes=200)
    assert not (tmp_path / "r" / "records.json").exists()
    with pytest.raises(ValueError, match="another value of shard_bytes: 200. Received: 150"):
        beam_write(files, tmp_path / "r", shard_bytes=150)
    beam_write(files, tmp_path / "r", shard_bytes=200)
    assert sorted(calls) == sorted([*range(len(calls) - 1), calls[3]])
    write_token_records(files, tokenizer, tmp_path / "whole", verbose=0, shard_bytes=200)
    assert bytes_of(tmp_path / "r") == bytes_of(tmp_path / "whole")


def test_either_writer_continues_the_other(beam_write, tokenizer, tmp_path, monkeypatch):
    files = text_corpus(tmp_path)
    beam_write(files, tmp_path / "r")
    before = (tmp_path / "r" / "records.json").stat().st_mtime_ns
    write_token_records(files, tokenizer, tmp_path / "r", verbose=0)
    beam_write(files, tmp_path / "r")
    assert (tmp_path / "r" / "records.json").stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="another value of file_format: None. Received: 'jsonl'"):
        beam_write(files, tmp_path / "r", file_format="jsonl")


KILLED = """
import sys
from keras_xlnet.pretraining import write_token_records_with_beam
from keras_xlnet.tokenizers import XLNetTokenizer

if __name__ == "__main__":
    spiece, files, directory, *flags = sys.argv[1:]
    write_token_records_with_beam(
        files,
        XLNetTokenizer(spiece, remove_accents=True),
        directory,
        shard_bytes=300,
        pipeline_options=flags,
    )
"""


@pytest.mark.slow
def test_continues_after_a_kill(beam_write, tokenizer, tmp_path):
    files = text_corpus(tmp_path, 1500)
    directory = tmp_path / "killed"
    (tmp_path / "killed.py").write_text(KILLED)
    arguments = [tmp_path / "killed.py", GOLDEN / "spiece.model", files, directory, *TWO_PROCESSES]
    process = subprocess.Popen([sys.executable, *map(str, arguments)], start_new_session=True)
    deadline = time.monotonic() + 120
    while len(list(directory.glob("*.counts.json"))) < 3:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    # With its workers, as if the machine had failed.
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (directory / "records.json").exists()
    finished = {
        path.name.replace("counts.json", "tfrecord") for path in directory.glob("*.counts.json")
    }
    times = {name: (directory / name).stat().st_mtime_ns for name in finished}
    beam_write(files, directory, shard_bytes=300)
    assert times == {name: (directory / name).stat().st_mtime_ns for name in finished}
    write_token_records(files, tokenizer, tmp_path / "whole", verbose=0, shard_bytes=300)
    assert bytes_of(directory) == bytes_of(tmp_path / "whole")


GOOD_LINE = b'{"text": "the turtle"}\n'
BAD_LINES = {
    "not-json": (GOOD_LINE + b'\n{"text": \n', r"a\.jsonl' is not JSON at line 3: Expecting"),
    "no-object": (GOOD_LINE + b'["text"]\n', r"a\.jsonl', line 2: must be a JSON object with .*"),
    "no-field": (GOOD_LINE + b'{"body": "a"}', r"line 2: .* the field 'text'. .*body"),
    "null": (GOOD_LINE + b'{"text": null}', r"byte 23: the field 'text' must be a .*: None"),
    "number": (b'{"text": 3}', r"a\.jsonl', byte 0: the field 'text' must be a string. .*3"),
    "surrogate": (b'{"text": "a \\ud800"}', r"byte 0: .* must be Unicode .* at character 2"),
    "latin-1": ('{"text": "é"}'.encode("latin-1"), r"a\.jsonl' is not UTF-8 text: .* byte 10"),
    "empty": (b"\n\n", r"1 files without a token, the first of them '.*a\.jsonl'"),
    "empty-texts": (b'{"text": " "}\n' * 3, r"1 files without a token, .* '.*a\.jsonl'"),
}


@pytest.mark.parametrize("content, message", BAD_LINES.values(), ids=BAD_LINES)
def test_bad_lines_are_named(content, message, beam_write, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        beam_write(tmp_path / "a.jsonl", tmp_path / "r", file_format="jsonl")
    (tmp_path / "a.jsonl").write_bytes(GOOD_LINE)
    # A corrected file is another one, so its records need another directory.
    with pytest.raises(ValueError, match="another value of files: .*Delete the directory"):
        beam_write(tmp_path / "a.jsonl", tmp_path / "r", file_format="jsonl")


def test_a_bad_line_in_the_last_shard_is_counted_from_the_first(beam_write, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(GOOD_LINE * 10 + b"x\n")
    with pytest.raises(ValueError, match="is not JSON at line 11: "):
        beam_write(tmp_path / "a.jsonl", tmp_path / "r", file_format="jsonl", shard_bytes=50)


def test_bad_parquet_files_are_named(beam_write, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    arguments = [path, tmp_path / "r"]
    path.write_bytes(b"the turtle")
    with pytest.raises(ValueError, match=r"a\.parquet' is not a Parquet file: "):
        beam_write(*arguments, file_format="parquet")
    write_parquet(path, ["the turtle"] * 9, rows_per_group=3)
    with pytest.raises(ValueError, match=r"column 'body' of strings. .*id \(int64\), text \(str"):
        beam_write(path, tmp_path / "r1", file_format="parquet", text_field="body")
    with pytest.raises(ValueError, match="column 'id' of strings"):
        beam_write(path, tmp_path / "r1", file_format="parquet", text_field="id")
    assert not (tmp_path / "r1").exists()
    write_parquet(path, ["the turtle"] * 7 + [None], rows_per_group=3)
    with pytest.raises(ValueError, match=r"a\.parquet', row 7: the field 'text' must .*: None"):
        beam_write(path, tmp_path / "r2", file_format="parquet", shard_bytes=20)
    write_parquet(path, [], rows_per_group=3, type="string")
    with pytest.raises(ValueError, match=r"1 files without a token, .* '.*a\.parquet'"):
        beam_write(path, tmp_path / "r3", file_format="parquet")
    write_parquet(path, ["the turtle"] * 9, rows_per_group=9)
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * (len(content) // 4) + content[len(content) // 4 + 4 :])
    with pytest.raises(ValueError, match=r"a\.parquet' is not .* UTF-8 text, in row group 0: "):
        beam_write(path, tmp_path / "r4", file_format="parquet")
    not_utf8 = pyarrow.array([b"the turtle", b"caf\xe9"]).view(pyarrow.string())
    pyarrow.parquet.write_table(pyarrow.table({"text": not_utf8}), path)
    with pytest.raises(
        ValueError, match=r"a\.parquet' is not .* UTF-8 text, in row group 0: .*xe9"
    ):
        beam_write(path, tmp_path / "r5", file_format="parquet")


def test_bad_arguments_are_named(beam_write, tmp_path):
    (tmp_path / "a.txt").write_text("the turtle")
    for name, value, message in [
        ("file_format", "csv", "`file_format` must be one of"),
        ("text_field", 3, "`text_field` must be a string. .*=3"),
        ("lines", "words", "`lines` must be one of"),
        ("shard_bytes", 0, "`shard_bytes` must be a positive integer. .*=0"),
        ("document_start", "(", "`document_start` must be a regular expression"),
        ("pipeline_options", "--runner=x", "`pipeline_options` must be a PipelineOptions, a list"),
    ]:
        with pytest.raises(ValueError, match=message):
            beam_write(tmp_path / "a.txt", tmp_path / "r", **{name: value})
    with pytest.raises(ValueError, match="`document_start` must be None if file_format='jsonl'"):
        beam_write(tmp_path / "a.txt", tmp_path, file_format="jsonl", document_start="^ =")
    with pytest.raises(ValueError, match=r"`directory` must not contain .*=.*r\*'"):
        beam_write(tmp_path / "a.txt", tmp_path / "r*")
    with pytest.raises(FileNotFoundError, match=r"must exist. Received: '/nowhere/a\.txt'"):
        beam_write("/nowhere/a.txt", tmp_path / "r")
    with pytest.raises(ValueError, match="`files` must name at least one"):
        beam_write([], tmp_path / "r")
    with pytest.raises(ValueError, match="`tokenizer` must be an XLNetTokenizer"):
        write_token_records_with_beam(tmp_path / "a.txt", "spiece.model", tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.slow
def test_errors_of_worker_processes_have_the_same_message(beam_write, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(GOOD_LINE * 10 + b"x\n")
    with pytest.raises(RuntimeError, match=r"a\.jsonl' is not JSON at line 11: "):
        beam_write(
            tmp_path / "a.jsonl",
            tmp_path / "r",
            file_format="jsonl",
            shard_bytes=50,
            pipeline_options=TWO_PROCESSES,
        )


def test_without_beam(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[beam\]"'):
        write_token_records_with_beam("a.txt", tokenizer, tmp_path)

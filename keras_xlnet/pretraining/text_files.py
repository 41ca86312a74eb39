"""Documents in text files, divided into shards that are read independently of each other."""

import bisect
import gzip
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keras_xlnet.pretraining.file_systems import TENSORFLOW_FILES, Files
from keras_xlnet.tokenizers.sentences import split_sentences

_BYTES_PER_READ = 2**20
_UTF8_BOM = b"\xef\xbb\xbf"


class FilePart(NamedTuple):
    """The documents of a file that begin at or after byte `begin` and before byte `end`."""

    path: str
    begin: int
    end: float


def plan_shards(sizes: dict[str, int], shard_bytes: int) -> list[list[FilePart]]:
    """Divides the files of a corpus into shards of nearly equal size.

    A plain text file is split where a shard ends. A compressed file is not split: it belongs to
    the shard in which it begins.

    Args:
        sizes: Dict from path to number of bytes, in reading order.
        shard_bytes: Int, the largest size of a shard. Only compressed files can exceed it.

    Returns:
        List of lists of `FilePart`, none of them empty.
    """
    total = sum(sizes.values())
    count = max(1, math.ceil(total / shard_bytes))
    bounds = [total * index // count for index in range(1, count)]
    shards: list[list[FilePart]] = [[] for _ in range(count)]
    offset = 0
    for path, size in sizes.items():
        for begin, end in _split_file(path, offset, size, bounds):
            shards[bisect.bisect_right(bounds, offset + begin)].append(FilePart(path, begin, end))
        offset += size
    return [parts for parts in shards if parts]


def _split_file(path, offset, size, bounds):
    if _is_compressed(path):
        return [(0, math.inf)]
    inner = [bound - offset for bound in bounds if offset < bound < offset + size]
    begins = [0, *inner]
    return list(zip(begins, [*inner, math.inf], strict=True))


def read_documents(
    parts: Iterable[FilePart],
    lines: str,
    document_start: str | None,
    files: Files = TENSORFLOW_FILES,
) -> Iterator[list[str]]:
    """Reads the documents that begin in parts of text files.

    Args:
        parts: Iterable of `FilePart`.
        lines: String, `"sentences"` or `"paragraphs"`; see `write_token_records`.
        document_start: String or `None`, a regular expression; see `write_token_records`.
        files: `TensorFlowFiles` or `BeamFiles`, with which files are opened.

    Yields:
        List of strings: the sentences of a document. Documents without sentences are skipped.

    Raises:
        ValueError: If a file is not UTF-8 text or not a complete gzip file.
    """
    starts_document = re.compile(document_start).search if document_start else _is_blank
    for part in parts:
        for document in _documents(part, starts_document, files):
            yield sentences_of(document, lines)


def sentences_of(document: list[str], lines: str) -> list[str]:
    """Returns the sentences of a document, which is a list of lines that are not blank."""
    if lines == "paragraphs":
        return [sentence for line in document for sentence in split_sentences(line)]
    return document


def read_lines(part: FilePart, files: Files) -> Iterator[tuple[int, str]]:
    """Yields (byte offset, text) of all lines that begin at or after the beginning of a part."""
    # Reading starts one byte early: if that byte is a newline, a line begins with the part.
    offset = max(part.begin - 1, 0)
    with files.open(part.path) as file:
        file.seek(offset)
        for line in _raw_lines(file, part.path):
            if offset >= part.begin:
                yield offset, _decoded(line, offset, part.path)
            offset += len(line)


def _is_blank(line):
    return not line.strip()


def _documents(part, starts_document, files):
    # A part ends with the document that contains byte `end`, and the next part begins with the
    # first document that starts at or after that byte. So each document is read exactly once.
    lines: list[str] = []
    inside = part.begin == 0
    for offset, line in read_lines(part, files):
        if starts_document(line):
            if lines:
                yield lines
            if offset >= part.end:
                return
            lines, inside = [], True
        if inside and line.strip():
            lines.append(line.strip())
    if lines:
        yield lines


def _raw_lines(file, path):
    # Not `readline`: GFile's drops carriage returns, which makes the offsets wrong.
    rest = b""
    for block in _blocks(file, path):
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _blocks(file, path):
    if not _is_compressed(path):
        yield from iter(lambda: file.read(_BYTES_PER_READ), b"")
        return
    decompressed = gzip.GzipFile(fileobj=file)
    try:
        yield from iter(lambda: decompressed.read(_BYTES_PER_READ), b"")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path!r} is not a complete gzip file: {error}") from error


def _decoded(line, offset, path):
    if offset == 0:
        line = line.removeprefix(_UTF8_BOM)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path!r} is not UTF-8 text: {error.reason} at byte {offset + error.start}."
        ) from error


def _is_compressed(path):
    return path.endswith(".gz")

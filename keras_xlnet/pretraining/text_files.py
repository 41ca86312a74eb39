"""Text files as a stream of documents, cut into shares that can be read on their own."""

import bisect
import gzip
import math
import re
import zlib
from typing import NamedTuple

import tensorflow as tf

from keras_xlnet.pretraining.sentences import split_sentences

_CHUNK_BYTES = 2**20
_UTF8_BOM = b"\xef\xbb\xbf"


class FilePart(NamedTuple):
    """The documents of a file that begin at bytes `begin` to `end`."""

    path: str
    begin: int
    end: float


def plan_shards(sizes, shard_bytes):
    """Cuts a corpus into shares of nearly equal size, of which none needs another one.

    A plain file is cut where a share ends; a compressed one goes whole into the share in which it
    begins.

    Args:
        sizes: dict, path -> bytes, in reading order.
        shard_bytes: int, the largest share; only compressed files can make it larger.

    Returns:
        list of lists of `FilePart`, none empty.
    """
    total = sum(sizes.values())
    count = max(1, math.ceil(total / shard_bytes))
    bounds = [total * index // count for index in range(1, count)]
    shards = [[] for _ in range(count)]
    offset = 0
    for path, size in sizes.items():
        for begin, end in _cut(path, offset, size, bounds):
            shards[bisect.bisect_right(bounds, offset + begin)].append(FilePart(path, begin, end))
        offset += size
    return [parts for parts in shards if parts]


def _cut(path, offset, size, bounds):
    if _is_compressed(path):
        return [(0, math.inf)]
    inner = [bound - offset for bound in bounds if offset < bound < offset + size]
    begins = [0, *inner]
    return list(zip(begins, [*inner, math.inf], strict=True))


def read_documents(parts, layout, document_start):
    """Reads the documents that begin in some parts of files.

    Args:
        parts: iterable of `FilePart`.
        layout: `"sentences"` or `"paragraphs"`, what a line is.
        document_start: str or None, a regular expression; see `write_token_records`.

    Yields:
        list of str: the sentences of a document that has any.

    Raises:
        ValueError: a file is not UTF-8, or is no complete gzip file.
    """
    starts_document = re.compile(document_start).search if document_start else _is_blank
    for part in parts:
        for lines in _documents(part, starts_document):
            if layout == "paragraphs":
                yield [sentence for line in lines for sentence in split_sentences(line)]
            else:
                yield lines


def _is_blank(line):
    return not line.strip()


def _documents(part, starts_document):
    # Whoever reads the part before goes on to the first start of a document at or after `end`,
    # which is where the next part begins: a document at a cut is read once.
    lines, inside = [], part.begin == 0
    for offset, line in _lines(part):
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


def _lines(part):
    """Yields (byte offset, text) of the lines that begin in a part, and of all after them."""
    # One byte early: where that byte ends a line, the line after it is whole.
    offset = max(part.begin - 1, 0)
    with tf.io.gfile.GFile(part.path, "rb") as file:
        file.seek(offset)
        for line in _raw_lines(file, part.path):
            if offset >= part.begin:
                yield offset, _decoded(line, offset, part.path)
            offset += len(line)


def _raw_lines(file, path):
    # GFile.readline leaves carriage returns out, so that offsets would be wrong.
    rest = b""
    for chunk in _chunks(file, path):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _chunks(file, path):
    if not _is_compressed(path):
        yield from iter(lambda: file.read(_CHUNK_BYTES), b"")
        return
    unzipped = gzip.GzipFile(fileobj=file)
    try:
        yield from iter(lambda: unzipped.read(_CHUNK_BYTES), b"")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"files: {path!r} is no complete gzip file: {error}") from error


def _decoded(line, offset, path):
    if offset == 0:
        line = line.removeprefix(_UTF8_BOM)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"files: {path!r} is not UTF-8 text: {error.reason} at byte {offset + error.start}."
        ) from error


def _is_compressed(path):
    return path.endswith(".gz")

"""Writes text files as token records, from which batches for pretraining are made."""

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from keras_xlnet.arguments import check_choice, check_positive_int
from keras_xlnet.pretraining.file_systems import TENSORFLOW_FILES
from keras_xlnet.pretraining.record_metadata import (
    FORMAT_VERSION,
    begin_records,
    fingerprint,
    finish_records,
    remove_temporary_files,
)
from keras_xlnet.pretraining.shard_writing import write_shards
from keras_xlnet.pretraining.text_files import plan_shards
from keras_xlnet.pretraining.token_records import TokenRecords
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.tokenizers.cleaning import replace_surrogates
from keras_xlnet.tokenizers.text_columns import texts_of_corpus
from keras_xlnet.types import PathLike


def write_token_records(
    files: PathLike | Iterable[Any],
    tokenizer: XLNetTokenizer,
    directory: PathLike,
    *,
    lines: str = "sentences",
    document_start: str | None = None,
    end_of_document: bool = True,
    shard_bytes: int = 2**25,
    num_processes: int = 1,
    verbose: int = 1,
) -> TokenRecords:
    """Tokenizes text files and writes token records, from which `PermutationBatches` reads.

    The records contain the token ids of every document and the lengths of its sentences. They do
    not depend on batch size, sequence length, number of hosts or direction: these are chosen when
    the records are read.

    If a call is interrupted, the same call continues it and keeps finished shards. The same files
    and settings give the same bytes for any number of processes.

    Args:
        files: Path or glob pattern of UTF-8 text files, or a list of them. Files whose name ends
            in `.gz` are decompressed. They are read in the given order, and the matches of a
            pattern in alphabetical order. Or any other iterable of strings, each a document:
            a generator, `iter(texts)`, a column of a table, also of a streamed dataset, or an
            unbatched `tf.data.Dataset`. The texts are first copied to a temporary file.
        tokenizer: An `XLNetTokenizer`.
        directory: Path, where to write the shards, their description `records.json`, and the
            vocabulary `spiece.model`. It is created if it does not exist.
        lines: String, what each line of the files or texts contains. `"sentences"`: one sentence,
            as the original expects. `"paragraphs"`: any number of whole sentences, which are split
            after `. ! ?` if white space and no lower-case letter follows (see `split_sentences`).
        document_start: `None` if blank lines separate documents. Otherwise a regular expression
            that is searched for in each line; a line with a match begins a document, and blank
            lines have no meaning. For the headings ` = Title = ` of WikiText use `"^ = [^=]"`.
            `None` for texts, which are documents.
        end_of_document: Bool, whether to append `<eod>` to the last sentence of each document.
        shard_bytes: Int, the largest number of bytes of text in a shard. Memory is reset at every
            shard, so a shard should be many batches long.
        num_processes: Int, number of processes. Each further process starts a new Python
            interpreter ("spawn"), so a script needs `if __name__ == "__main__":`.
        verbose: 0 or 1, whether to show a progress bar.

    Returns:
        The `TokenRecords` of the directory.

    Raises:
        FileNotFoundError: If a file does not exist or a pattern has no match.
        ValueError: If an argument is invalid, a text is not a string, a file is not UTF-8 text or
            not a complete gzip file, the files contain no text, or the directory contains records
            of other files or settings.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> from keras_xlnet.pretraining import write_token_records
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("the cat sat\\non the mat\\n\\nthe dog ran\\n" * 20)
    >>> tokenizer = XLNetTokenizer.train(str(folder / "a.txt"), vocabulary_size=32)
    >>> records = write_token_records(
    ...     str(folder / "*.txt"), tokenizer, folder / "records", verbose=0)
    >>> records.num_documents
    21

    Source: `_create_data` in the original's `data_utils.py`. Its records also fix batch size,
    sequence length and direction.
    """
    check_writer_arguments(tokenizer, lines, document_start, shard_bytes)
    check_positive_int("num_processes", num_processes)
    directory = os.fspath(directory)
    texts = texts_of_corpus(files)
    if texts is not None and document_start is not None:
        raise ValueError(
            "`document_start` must be None for texts, each of which is a document. Received: "
            f"document_start={document_start!r}"
        )
    with _as_files(texts, files) as (found, sizes):
        settings = new_settings(
            found, tokenizer, lines, document_start, end_of_document, shard_bytes
        )
        if not begin_records(directory, settings, tokenizer, TENSORFLOW_FILES):
            plan = plan_shards(sizes, shard_bytes)
            shards = write_shards(plan, directory, settings, num_processes, verbose)
            finish_records(directory, settings, shards, TENSORFLOW_FILES)
    remove_temporary_files(directory, TENSORFLOW_FILES)
    return TokenRecords(directory)


@contextlib.contextmanager
def _as_files(texts: Iterator[str] | None, files: Any) -> Iterator[tuple[Any, dict[str, int]]]:
    """Yields the description of the files for the settings, and their sizes by path.

    Texts are written to a file, each a document; the description has their SHA-256.
    """
    if texts is None:
        found = TENSORFLOW_FILES.describe(files)
        yield found, {path: size for path, size, _ in found}
        return
    digest = hashlib.sha256()
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "texts.txt")
        with open(path, "wb") as file:
            for text in texts:
                lines = filter(str.strip, replace_surrogates(text).split("\n"))
                document = "\n".join([*lines, "", ""]).encode()
                digest.update(document)
                file.write(document)
        size = os.path.getsize(path)
        yield [["texts", size, digest.hexdigest()]], {path: size}


def new_settings(
    found: list[list[Any]],
    tokenizer: XLNetTokenizer,
    lines: str,
    document_start: str | None,
    end_of_document: bool,
    shard_bytes: int,
) -> dict[str, Any]:
    """Returns everything that determines the records: the files, the tokenizer, the arguments."""
    return {
        "format_version": FORMAT_VERSION,
        "tokenizer": fingerprint(tokenizer),
        "vocabulary_size": tokenizer.vocabulary_size(),
        "lines": lines,
        "document_start": document_start,
        "end_of_document": bool(end_of_document),
        "shard_bytes": shard_bytes,
        "files": found,
    }


def check_writer_arguments(
    tokenizer: XLNetTokenizer, lines: str, document_start: str | None, shard_bytes: int
) -> None:
    """Raises `ValueError` if an argument of `write_token_records` is invalid."""
    if not isinstance(tokenizer, XLNetTokenizer):
        raise ValueError(
            f"`tokenizer` must be an XLNetTokenizer. Received: tokenizer={tokenizer!r}"
        )
    check_choice("lines", lines, ("sentences", "paragraphs"))
    check_positive_int("shard_bytes", shard_bytes)
    try:
        re.compile(document_start or "")
    except (re.error, TypeError) as error:
        raise ValueError(
            "`document_start` must be a regular expression or None. Received: "
            f"document_start={document_start!r}"
        ) from error

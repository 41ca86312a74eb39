"""Opens and checks token records."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from keras_xlnet.pretraining.record_metadata import (
    FORMAT_VERSION,
    INFO_FILE,
    load_tokenizer,
    read_json,
)
from keras_xlnet.pretraining.tfrecord_files import read_records
from keras_xlnet.pretraining.token_shard import TokenShard, parse_document, read_shard
from keras_xlnet.registration import refuse_unknown_arguments
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.types import PathLike

_SHARD_KEYS = {"file", "bytes", "documents", "sentences", "tokens"}


@refuse_unknown_arguments
class TokenRecords:
    """The token records that `write_token_records` wrote to a directory.

    The constructor checks that every file exists and has the right size, and that the vocabulary
    is the one with which the records were made. Checksums are verified when a shard is read.

    Args:
        directory: Path, the directory of the records.

    Raises:
        FileNotFoundError: If there are no finished records, or a file is missing.
        ValueError: If a file is damaged, the vocabulary is a different one, or the records were
            written by a newer release.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> from keras_xlnet.pretraining import TokenRecords, write_token_records
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("a cat sat\\non a mat\\n\\na dog ran\\n" * 20)
    >>> tokenizer = XLNetTokenizer.train(str(folder / "a.txt"), vocabulary_size=30)
    >>> _ = write_token_records(folder / "a.txt", tokenizer, folder / "records", verbose=0)
    >>> records = TokenRecords(folder / "records")
    >>> records.num_documents, records.vocabulary_size
    (21, 30)
    >>> tokens, sentence_lengths = next(records.documents())
    >>> records.tokenizer().detokenize(tokens).numpy(), len(sentence_lengths)
    (b'a cat sat on a mat', 2)
    """

    def __init__(self, directory: PathLike) -> None:
        self.directory = os.fspath(directory)
        path = os.path.join(self.directory, INFO_FILE)
        if not tf.io.gfile.exists(path):
            raise FileNotFoundError(
                "`directory` must contain finished token records. Received: "
                f"directory={self.directory!r}, which has no {INFO_FILE}. Call "
                "write_token_records to write them or to continue an interrupted call."
            )
        self._info = _read_info(path)
        self._check_files()
        self._tokenizer = load_tokenizer(self.directory, self._info["tokenizer"])
        if self._tokenizer.vocabulary_size() != self.vocabulary_size:
            raise ValueError(
                f"{path!r} is damaged: it describes a vocabulary of {self.vocabulary_size} "
                f"pieces, but spiece.model has {self._tokenizer.vocabulary_size()}."
            )

    @property
    def vocabulary_size(self) -> int:
        """Int, the number of pieces of the tokenizer."""
        return self._info["vocabulary_size"]

    @property
    def num_documents(self) -> int:
        """Int, the number of documents in all shards."""
        return sum(shard["documents"] for shard in self.shards)

    @property
    def num_sentences(self) -> int:
        """Int, the number of sentences in all shards."""
        return sum(shard["sentences"] for shard in self.shards)

    @property
    def num_tokens(self) -> int:
        """Int, the number of tokens in all shards."""
        return sum(shard["tokens"] for shard in self.shards)

    @property
    def shards(self) -> list[dict[str, Any]]:
        """List of dicts with keys `file`, `bytes`, `documents`, `sentences` and `tokens`."""
        return self._info["shards"]

    def tokenizer(self) -> XLNetTokenizer:
        """Returns the `XLNetTokenizer` with which the records were made."""
        return self._tokenizer

    def documents(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Reads all documents in the order of the text files.

        Yields:
            Tuples of int32 token ids `(num_tokens,)` and int64 sentence lengths
            `(num_sentences,)`, which add up to `num_tokens`.

        Raises:
            ValueError: If a shard is damaged.
        """
        for index in range(len(self.shards)):
            yield from map(parse_document, read_records(self._path(index)))

    def read(self, index: int) -> TokenShard:
        """Reads one shard into memory.

        Args:
            index: Int, the index in `shards`.

        Returns:
            A named tuple: `tokens`, int32 `(num_tokens,)`, the concatenated documents;
            `boundaries`, int64 `(num_sentences + 1,)`, where sentences begin, followed by
            `num_tokens`; `num_documents`, int.

        Raises:
            ValueError: If the shard is damaged, or is not the one that `records.json` describes.
        """
        shard, expected = read_shard(self._path(index)), self.shards[index]
        found = {
            "documents": shard.num_documents,
            "sentences": len(shard.boundaries) - 1,
            "tokens": len(shard.tokens),
        }
        if any(found[name] != expected[name] for name in found):
            raise ValueError(
                f"The record file {self._path(index)!r} must have {expected}, as {INFO_FILE} "
                f"says. Received: {found}"
            )
        if not 0 <= shard.tokens.min() <= shard.tokens.max() < self.vocabulary_size:
            raise ValueError(
                f"The record file {self._path(index)!r} must have ids of a vocabulary of "
                f"{self.vocabulary_size} pieces. Received: ids from {shard.tokens.min()} to "
                f"{shard.tokens.max()}"
            )
        return shard

    def _path(self, index):
        return os.path.join(self.directory, self.shards[index]["file"])

    def _check_files(self):
        for index, shard in enumerate(self.shards):
            path = self._path(index)
            if not tf.io.gfile.exists(path):
                raise FileNotFoundError(f"The shard {path!r} does not exist.")
            size = tf.io.gfile.stat(path).length
            if size != shard["bytes"]:
                raise ValueError(
                    f"The record file {path!r} is truncated or damaged: it must have "
                    f"{shard['bytes']} bytes. Received: {size}"
                )


def _read_info(path):
    info = read_json(path)
    version = info.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ValueError(
            f"{path!r} has an unsupported format version: this release of keras_xlnet reads "
            f"versions up to {FORMAT_VERSION}. Received: {version!r}"
        )
    shards = info.get("shards")
    if (
        not isinstance(info.get("vocabulary_size"), int)
        or not isinstance(info.get("tokenizer"), dict)
        or not isinstance(shards, list)
        or not all(isinstance(shard, dict) and shard.keys() >= _SHARD_KEYS for shard in shards)
        or not shards
    ):
        raise ValueError(
            f"{path!r} is damaged: it must contain vocabulary_size, tokenizer, and shards with "
            f"{sorted(_SHARD_KEYS)}."
        )
    return info

"""Token records on disk, opened and checked."""

import os

import tensorflow as tf

from keras_xlnet.pretraining.record_info import (
    FORMAT_VERSION,
    INFO_FILE,
    load_tokenizer,
    read_json,
)
from keras_xlnet.pretraining.tfrecord_files import read_records
from keras_xlnet.pretraining.token_shard import parse_document, read_shard

_SHARD_KEYS = {"file", "bytes", "documents", "sentences", "tokens"}


class TokenRecords:
    """The token records that `write_token_records` made.

    Opening them checks what is cheap to check: that every file is there and has its size, and that
    the vocabulary is the one that the records were made with. The checksums are checked when a
    shard is read.

    Args:
        directory: where `write_token_records` wrote.

    Raises:
        FileNotFoundError: there are no records, or a file of them is missing.
        ValueError: the records are not finished, a file is damaged or of another vocabulary, or
            the records were made by a newer release.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.text import XLNetTokenizer
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

    def __init__(self, directory):
        self.directory = os.fspath(directory)
        path = os.path.join(self.directory, INFO_FILE)
        if not tf.io.gfile.exists(path):
            raise FileNotFoundError(
                f"directory: there are no finished token records at {self.directory!r}: no "
                f"{INFO_FILE}. write_token_records makes them, or goes on where it was stopped."
            )
        self._info = _checked_info(path)
        self._check_files()
        self._tokenizer = load_tokenizer(self.directory, self._info["tokenizer"])
        if self._tokenizer.vocabulary_size() != self.vocabulary_size:
            raise ValueError(
                f"{path!r} tells of a vocabulary of {self.vocabulary_size} pieces; spiece.model "
                f"beside it has {self._tokenizer.vocabulary_size()}."
            )

    @property
    def vocabulary_size(self):
        """int: the number of pieces of the tokenizer."""
        return self._info["vocabulary_size"]

    @property
    def num_documents(self):
        """int: the number of documents in all shards."""
        return sum(shard["documents"] for shard in self.shards)

    @property
    def num_sentences(self):
        """int: the number of sentences in all shards."""
        return sum(shard["sentences"] for shard in self.shards)

    @property
    def num_tokens(self):
        """int: the number of tokens in all shards."""
        return sum(shard["tokens"] for shard in self.shards)

    @property
    def shards(self):
        """list of dicts with the `file`, `bytes`, `documents`, `sentences` and `tokens` of each."""
        return self._info["shards"]

    def tokenizer(self):
        """The `XLNetTokenizer` that the records were made with."""
        return self._tokenizer

    def documents(self):
        """Reads all documents in the order of the files that they came from.

        Yields:
            Tuples of int32 token ids `(num_tokens,)` and int64 sentence lengths
            `(num_sentences,)`, which add up to `num_tokens`.

        Raises:
            ValueError: a shard is damaged.
        """
        for index in range(len(self.shards)):
            yield from map(parse_document, read_records(self._path(index)))

    def read(self, index):
        """Reads one shard whole.

        Args:
            index: int, the position in `shards`.

        Returns:
            A named tuple: `tokens` `(num_tokens,)` int32, the documents end to end; `boundaries`
            `(num_sentences + 1,)` int64, where sentences begin, and at last `num_tokens`;
            `num_documents`.

        Raises:
            ValueError: the shard is damaged, or is not the one that `records.json` describes.
        """
        shard, expected = read_shard(self._path(index)), self.shards[index]
        found = {
            "documents": shard.num_documents,
            "sentences": len(shard.boundaries) - 1,
            "tokens": len(shard.tokens),
        }
        if any(found[name] != expected[name] for name in found):
            raise ValueError(
                f"The record file {self._path(index)!r} has {found}; {INFO_FILE} expects {expected}"
            )
        if not 0 <= shard.tokens.min() <= shard.tokens.max() < self.vocabulary_size:
            raise ValueError(
                f"The record file {self._path(index)!r} has ids from {shard.tokens.min()} to "
                f"{shard.tokens.max()}; the vocabulary has {self.vocabulary_size} pieces."
            )
        return shard

    def _path(self, index):
        return os.path.join(self.directory, self.shards[index]["file"])

    def _check_files(self):
        for index, shard in enumerate(self.shards):
            path = self._path(index)
            if not tf.io.gfile.exists(path):
                raise FileNotFoundError(f"directory: the shard {path!r} is missing.")
            size = tf.io.gfile.stat(path).length
            if size != shard["bytes"]:
                raise ValueError(
                    f"The record file {path!r} is truncated or damaged: it has {size} bytes, "
                    f"expected {shard['bytes']}."
                )


def _checked_info(path):
    info = read_json(path)
    version = info.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ValueError(
            f"{path!r} has the format version {version!r}; this release of keras_xlnet reads "
            f"versions up to {FORMAT_VERSION}."
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
            f"{path!r} is damaged: it must have vocabulary_size, tokenizer, and shards with "
            f"{sorted(_SHARD_KEYS)}."
        )
    return info

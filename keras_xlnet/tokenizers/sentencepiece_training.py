"""Trains a SentencePiece model with the settings of the released XLNet models."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Sequence
from typing import Any

from keras_xlnet.arguments import check_positive_int
from keras_xlnet.lazy_modules import sentencepiece
from keras_xlnet.tokenizers.cleaning import clean_text
from keras_xlnet.tokenizers.text_columns import texts_of_corpus
from keras_xlnet.tokenizers.text_paths import find_text_files, open_file


def train_proto(
    files: Any,
    vocabulary_size: int,
    lowercase: bool,
    remove_space: bool,
    remove_accents: bool,
    user_defined_symbols: Sequence[str],
    character_coverage: float,
    input_sentence_size: int,
) -> bytes:
    """Trains a unigram model; see `XLNetTokenizer.train` for the arguments.

    Returns:
        Bytes, the serialized SentencePiece model.
    """
    check_positive_int("vocabulary_size", vocabulary_size)
    # The trainer has this limit, but its error does not name the argument.
    if not isinstance(input_sentence_size, int) or input_sentence_size <= 100:
        raise ValueError(
            "`input_sentence_size` must be an integer above 100. Received: "
            f"input_sentence_size={input_sentence_size!r}"
        )
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_sentences(_lines(files), lowercase, remove_space, remove_accents),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocabulary_size,
            character_coverage=character_coverage,
            control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
            user_defined_symbols=["<eop>", *user_defined_symbols],
            shuffle_input_sentence=True,
            input_sentence_size=input_sentence_size,
            # One thread, so that the same corpus gives the same model: floating-point sums depend
            # on the order in which threads finish.
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _training_error(error, vocabulary_size) from error
    return model.getvalue()


def _lines(files):
    # Paths are checked before training, because an error inside the trainer is hard to understand.
    return texts_of_corpus(files) or _lines_of_files(find_text_files(files))


def _lines_of_files(paths):
    for path in paths:
        with open_file(path, "rb") as file:
            lines = gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file
            yield from (line.rstrip(b"\r\n") for line in lines)


def _sentences(lines, lowercase, remove_space, remove_accents):
    for line in lines:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        cleaned = clean_text(text, lowercase, remove_space, remove_accents)
        if cleaned:
            yield cleaned


def _training_error(error, vocabulary_size):
    """Returns a `ValueError` that names the argument, for an error of the trainer."""
    message = str(error)
    if "!sentences_.empty()" in message:
        return ValueError(
            "`files` must contain at least one line of text of at most 4192 bytes. Received: a "
            "corpus without such a line"
        )
    received = f"Received: vocabulary_size={vocabulary_size}"
    if largest := re.search(r"value <= (\d+)", message):
        return ValueError(
            f"`vocabulary_size` must be at most {largest[1]} for this corpus. {received}"
        )
    if smallest := re.search(r"(\d+) vs (\d+)", message):
        return ValueError(
            f"`vocabulary_size` must be at least {smallest[2]} for the characters of this corpus "
            f"and the special pieces. {received}"
        )
    return ValueError(f"SentencePiece failed to train on this corpus: {message}")

"""Trains a SentencePiece model with the flags of the released XLNet models."""

import gzip
import io
import itertools
import os
import re

import sentencepiece
import tensorflow as tf

from keras_xlnet.text.find_files import find_files
from keras_xlnet.text.normalization import preprocess_text
from keras_xlnet.text.string_inputs import as_strings

_BATCH_SIZE = 1024


def train_proto(
    files,
    vocabulary_size,
    lowercase,
    remove_space,
    remove_accents,
    user_defined_symbols,
    character_coverage,
    input_sentence_size,
):
    """Trains a unigram model; see `XLNetTokenizer.train` for the arguments.

    Returns:
        bytes: the serialised SentencePiece model.
    """
    if not isinstance(vocabulary_size, int) or vocabulary_size < 1:
        raise ValueError(f"vocabulary_size must be a positive int. Received: {vocabulary_size!r}")
    # The trainer's own limit; its message would not say so.
    if not isinstance(input_sentence_size, int) or input_sentence_size <= 100:
        raise ValueError(
            f"input_sentence_size must be an int above 100. Received: {input_sentence_size!r}"
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
            # The sums of the threads are added up in floats: a fixed number of threads makes a
            # fixed result.
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _explained(error, vocabulary_size) from error
    return model.getvalue()


def _lines(files):
    if not isinstance(files, (str, os.PathLike, list, tuple)):
        return iter(files)
    # Looked at before training starts: an error inside the trainer's loop would name no argument.
    try:
        return _lines_of_files(find_files(files))
    except FileNotFoundError as error:
        hint = "Texts in memory are passed as an iterator, such as iter(texts)."
        raise FileNotFoundError(f"{error} {hint}") from error


def _lines_of_files(paths):
    for path in paths:
        with tf.io.gfile.GFile(path, "rb") as file:
            lines = gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file
            yield from (line.rstrip(b"\r\n") for line in lines)


def _sentences(lines, lowercase, remove_space, remove_accents):
    while batch := list(itertools.islice(lines, _BATCH_SIZE)):
        texts = preprocess_text(as_strings(batch, "files"), lowercase, remove_space, remove_accents)
        yield from filter(None, texts.numpy())


def _explained(error, vocabulary_size):
    if "!sentences_.empty()" in str(error):
        return ValueError(
            "files must hold at least one line of text of at most 4192 bytes. Received a corpus "
            "without such a line."
        )
    largest = re.search(r"value <= (\d+)", str(error))
    if largest:
        return ValueError(
            f"vocabulary_size={vocabulary_size} is more than this corpus can fill: it must be at "
            f"most {largest[1]}."
        )
    smallest = re.search(r"(\d+) vs (\d+)", str(error))
    if smallest:
        return ValueError(
            f"vocabulary_size={vocabulary_size} is too small for the characters of this corpus "
            f"and the special pieces: it must be at least {smallest[2]}."
        )
    return ValueError(f"SentencePiece could not train on this corpus: {error}")

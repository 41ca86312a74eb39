"""Writes the shards of token records, in one or several processes.

`files` is `TensorFlowFiles` or `BeamFiles`, with which files are read and written.
"""

import concurrent.futures
import functools
import multiprocessing
import os
import threading
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_xlnet.pretraining.document_fields import read_fields
from keras_xlnet.pretraining.file_systems import TENSORFLOW_FILES, Files
from keras_xlnet.pretraining.record_metadata import load_tokenizer, read_json, write_json
from keras_xlnet.pretraining.text_files import FilePart, read_documents
from keras_xlnet.pretraining.token_shard import serialize_document

_SENTENCES_PER_CALL = 2048


def write_shards(
    plan: list[list[FilePart]],
    directory: str,
    settings: dict[str, Any],
    num_processes: int,
    verbose: int,
) -> list[dict[str, Any]]:
    """Writes the shards that are not in a directory yet.

    Args:
        plan: List of lists of `FilePart`, the text of each shard.
        directory: String, where to write.
        settings: Dict with the `tokenizer` (its fingerprint) and the arguments `lines`,
            `document_start` and `end_of_document` of `write_token_records`.
        num_processes: Int.
        verbose: 0 or 1, whether to show a progress bar.

    Returns:
        List of a dict for each shard that has tokens.
    """
    counts: dict[int, Any] = {
        index: read_counts(directory, index, TENSORFLOW_FILES) for index in range(len(plan))
    }
    jobs = [(directory, settings, index, plan[index]) for index in counts if counts[index] is None]
    progress = keras.utils.Progbar(len(plan), unit_name="shard", verbose=verbose)
    progress.update(len(plan) - len(jobs))
    for index, written in _run(jobs, min(num_processes, len(jobs))):
        counts[index] = written
        progress.add(1)
    return describe_shards(directory, list(counts.values()), TENSORFLOW_FILES)


def read_counts(directory: str, index: int, files: Files) -> dict[str, Any] | None:
    """Returns the counts of a shard, `None` if it is not finished."""
    path = _counts_path(directory, index)
    return read_json(path, files) if files.exists(path) else None


def write_shard(
    directory: str, settings: dict[str, Any], index: int, parts: Sequence[FilePart], files: Files
) -> tuple[int, dict[str, Any]]:
    """Writes a shard and then its counts. A shard without counts is not finished.

    Args:
        directory: String, where to write.
        settings: Dict, as for `write_shards`. Its entries `file_format` and `text_field` say how
            to read files that are not plain text.
        index: Int, the index of the shard.
        parts: List of `FilePart`, the text of the shard.
        files: See above.

    Returns:
        Tuple of `index` and a dict of the numbers of `bytes`, `documents`, `sentences` and
        `tokens`.
    """
    tokenizer = _tokenizer(directory, tuple(settings["tokenizer"].items()), files)
    documents = _read(parts, settings, files)
    counts = dict.fromkeys(("documents", "sentences", "tokens"), 0)
    with files.replacing(os.path.join(directory, _shard_file(index))) as temporary:
        with tf.io.TFRecordWriter(temporary) as writer:
            for tokens, lengths in _encode(documents, tokenizer, settings["end_of_document"]):
                writer.write(serialize_document(tokens, lengths))
                for name, count in zip(counts, (1, len(lengths), len(tokens)), strict=True):
                    counts[name] += count
        counts = {"bytes": tf.io.gfile.stat(temporary).length, **counts}
    write_json(_counts_path(directory, index), counts, files)
    return index, counts


def describe_shards(
    directory: str, counts: Sequence[dict[str, Any]], files: Files
) -> list[dict[str, Any]]:
    """Describes the shards that have tokens, and removes the files of the others.

    Args:
        directory: String.
        counts: List of dicts, the counts of every shard.
        files: See above.

    Returns:
        List of dicts: the counts of each shard that has tokens, and the name of its `file`.
    """
    for index, shard in enumerate(counts):
        if not shard["tokens"]:
            files.delete(directory, _shard_file(index))
    return [
        {"file": _shard_file(index), **shard}
        for index, shard in enumerate(counts)
        if shard["tokens"]
    ]


def _run(jobs, num_processes):
    if num_processes <= 1:
        yield from (_write_shard(*job) for job in jobs)
        return
    # Not "fork": TensorFlow has threads, which a forked process does not have.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(num_processes, context, _start_worker)
    try:
        futures = [pool.submit(_write_shard, *job) for job in jobs]
        yield from (future.result() for future in concurrent.futures.as_completed(futures))
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker():
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent():
    # So that a worker ends when its parent is killed.
    multiprocessing.parent_process().join()  # type: ignore[union-attr]  # A worker has one.
    os._exit(1)


def _write_shard(directory, settings, index, parts):
    return write_shard(directory, settings, index, parts, TENSORFLOW_FILES)


# Kept from shard to shard, because TensorFlow compiles a new tokenizer in its first call.
@functools.lru_cache(maxsize=1)
def _tokenizer(directory, expected, files):
    return load_tokenizer(directory, dict(expected), files)


def _read(parts, settings, files):
    if "file_format" not in settings:
        return read_documents(parts, settings["lines"], settings["document_start"], files)
    return read_fields(
        parts, settings["file_format"], settings["text_field"], settings["lines"], files
    )


def _encode(documents, tokenizer, end_of_document):
    """Yields `(tokens, sentence_lengths)` of documents that have tokens."""
    for group in _groups(documents):
        ids = tokenizer([sentence for document in group for sentence in document])
        values, row_lengths = ids.values.numpy(), ids.row_lengths().numpy()
        sentence_ends = np.cumsum([len(document) for document in group])
        token_ends = np.concatenate([[0], np.cumsum(row_lengths)])[sentence_ends]
        for tokens, lengths in zip(
            np.split(values, token_ends[:-1]),
            np.split(row_lengths, sentence_ends[:-1]),
            strict=True,
        ):
            # The tokenizer can remove all characters of a sentence.
            lengths = lengths[lengths > 0]
            if end_of_document and len(lengths):
                tokens = np.append(tokens, tokenizer.eod_token_id)
                lengths[-1] += 1
            if len(lengths):
                yield tokens, lengths


def _groups(documents):
    """Yields lists of documents: few large calls of the tokenizer are faster than many small."""
    group, num_sentences = [], 0
    for document in documents:
        group.append(document)
        num_sentences += len(document)
        if num_sentences >= _SENTENCES_PER_CALL:
            yield group
            group, num_sentences = [], 0
    if group:
        yield group


def _shard_file(index):
    return f"tokens-{index:05d}.tfrecord"


def _counts_path(directory, index):
    return os.path.join(directory, f"tokens-{index:05d}.counts.json")

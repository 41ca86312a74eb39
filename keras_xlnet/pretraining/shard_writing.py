"""Writes the shards of token records, in one or several processes."""

import concurrent.futures
import multiprocessing
import os
import threading

import keras
import numpy as np
import tensorflow as tf

from keras_xlnet.pretraining.record_metadata import load_tokenizer, read_json, write_json
from keras_xlnet.pretraining.text_files import read_documents
from keras_xlnet.pretraining.token_shard import serialize_document

_SENTENCES_PER_CALL = 2048


def write_shards(plan, directory, settings, num_processes, verbose):
    """Writes the shards that are not in a directory yet.

    Args:
        plan: List of lists of `FilePart`, the text of each shard.
        directory: String, where to write.
        settings: Dict with the `tokenizer` (its fingerprint) and the arguments `lines`,
            `document_start` and `end_of_document` of `write_token_records`.
        num_processes: Int.
        verbose: 0 or 1, whether to show a progress bar.
    """
    todo = [index for index in range(len(plan)) if not _is_written(directory, index)]
    jobs = [(directory, settings, index, plan[index]) for index in todo]
    progress = keras.utils.Progbar(len(plan), unit_name="shard", verbose=verbose)
    progress.update(len(plan) - len(todo))
    for _ in _run(jobs, min(num_processes, len(todo))):
        progress.add(1)


def describe_shards(directory, num_shards):
    """Returns a dict for each shard that has tokens, and removes the files of the others."""
    shards = []
    for index in range(num_shards):
        counts = read_json(_counts_path(directory, index))
        if counts["tokens"]:
            shards.append({"file": _shard_file(index), **counts})
        else:
            tf.io.gfile.remove(os.path.join(directory, _shard_file(index)))
    return shards


def _run(jobs, num_processes):
    if num_processes <= 1:
        yield from (_write_shard(*job) for job in jobs)
        return
    # Not "fork": TensorFlow runs threads, and a forked child can wait for their locks forever.
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
    # Without this, a worker whose parent is killed waits for its next job forever.
    multiprocessing.parent_process().join()
    os._exit(1)


def _write_shard(directory, settings, index, parts):
    """Writes a shard and then its counts. A shard without counts is not finished."""
    tokenizer = load_tokenizer(directory, settings["tokenizer"])
    documents = read_documents(parts, settings["lines"], settings["document_start"])
    path = os.path.join(directory, _shard_file(index))
    temporary = f"{path}.{os.getpid()}.tmp"
    counts = dict.fromkeys(("documents", "sentences", "tokens"), 0)
    with tf.io.TFRecordWriter(temporary) as writer:
        for tokens, lengths in _encode(documents, tokenizer, settings["end_of_document"]):
            writer.write(serialize_document(tokens, lengths))
            for name, count in zip(counts, (1, len(lengths), len(tokens)), strict=True):
                counts[name] += count
    size = tf.io.gfile.stat(temporary).length
    tf.io.gfile.rename(temporary, path, overwrite=True)
    write_json(_counts_path(directory, index), {"bytes": size, **counts})


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


def _is_written(directory, index):
    return tf.io.gfile.exists(_counts_path(directory, index))


def _shard_file(index):
    return f"tokens-{index:05d}.tfrecord"


def _counts_path(directory, index):
    return os.path.join(directory, f"tokens-{index:05d}.counts.json")

"""Text files to token records: what pretraining reads, made once."""

import concurrent.futures
import multiprocessing
import os
import re
import threading

import keras
import numpy as np
import tensorflow as tf

from keras_xlnet.pretraining.record_info import (
    FORMAT_VERSION,
    INFO_FILE,
    fingerprint,
    load_tokenizer,
    read_json,
    write_json,
)
from keras_xlnet.pretraining.text_files import plan_shards, read_documents
from keras_xlnet.pretraining.token_records import TokenRecords
from keras_xlnet.pretraining.token_shard import serialize_document
from keras_xlnet.text import XLNetTokenizer
from keras_xlnet.text.find_files import find_files

_LAYOUTS = ("sentences", "paragraphs")
_UNFINISHED_FILE = "unfinished.json"
_LEFTOVERS = (_UNFINISHED_FILE, "tokens-*.counts.json", "*.tmp")
_SENTENCES_A_CALL = 2048


def write_token_records(
    files,
    tokenizer,
    directory,
    *,
    layout="sentences",
    document_start=None,
    end_of_document=True,
    shard_bytes=2**25,
    num_processes=1,
    verbose=1,
):
    """Turns text files into token records, from which `PermutationBatches` draws.

    The records are the token ids of every document and where its sentences end. Nothing in them
    depends on a batch size, a sequence length, a number of hosts or a direction: those are drawn
    when the records are read.

    A call that was killed is repeated to go on: shards that are done are kept. The same files and
    settings give the same bytes, whatever the number of processes.

    Args:
        files: a path or glob pattern of UTF-8 text files, or a list of them; those whose name ends
            in `.gz` are decompressed. They are read in the order given, the matches of a pattern
            sorted.
        tokenizer: an `XLNetTokenizer`.
        directory: where to write the shards, `records.json`, which describes them, and
            `spiece.model`. It is made if it is not there.
        layout: what a line is: `"sentences"`: a sentence, as the original wants it; or
            `"paragraphs"`: any number of whole sentences, which are told apart at `. ! ?` before
            white space and no lower-case letter (see `split_sentences`).
        document_start: None: blank lines stand between documents. Or a regular expression that
            the first line of a document matches somewhere, and blank lines mean nothing; for the
            headings ` = Title = ` of WikiText `"^ = [^=]"`.
        end_of_document: bool, whether `<eod>` comes after each document, as a token of its last
            sentence.
        shard_bytes: int, the most bytes of text in a shard. Streams of tokens restart at every
            shard, so a shard should be many batches long.
        num_processes: int, number of processes. More than one start a Python interpreter each
            ("spawn"), so a script that asks for them needs `if __name__ == "__main__":`.
        verbose: 0 or 1, whether to show a progress bar.

    Returns:
        The `TokenRecords` of the directory.

    Raises:
        FileNotFoundError: a file does not exist or a pattern matches nothing.
        ValueError: an argument is no such thing; a file is not UTF-8 or no complete gzip file; the
            files hold no text; the directory has records of other files or settings.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.text import XLNetTokenizer
    >>> from keras_xlnet.pretraining import write_token_records
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("the cat sat\\non the mat\\n\\nthe dog ran\\n" * 20)
    >>> tokenizer = XLNetTokenizer.train(str(folder / "a.txt"), vocabulary_size=32)
    >>> records = write_token_records(
    ...     str(folder / "*.txt"), tokenizer, folder / "records", verbose=0)
    >>> records.num_documents
    21

    Source: `_create_data` in the original's `data_utils.py`, which fixes all the rest here too.
    """
    _check(tokenizer, layout, document_start, shard_bytes, num_processes)
    directory = os.fspath(directory)
    statistics = {path: tf.io.gfile.stat(path) for path in find_files(files)}
    settings = {
        "format_version": FORMAT_VERSION,
        "tokenizer": fingerprint(tokenizer),
        "vocabulary_size": tokenizer.vocabulary_size(),
        "layout": layout,
        "document_start": document_start,
        "end_of_document": bool(end_of_document),
        "shard_bytes": shard_bytes,
        "files": [[path, stat.length, stat.mtime_nsec] for path, stat in statistics.items()],
    }
    if not _begin(directory, settings, tokenizer):
        plan = plan_shards({path: stat.length for path, stat in statistics.items()}, shard_bytes)
        _write_shards(plan, directory, settings, num_processes, verbose)
        _finish(directory, settings, len(plan))
    _remove_leftovers(directory)
    return TokenRecords(directory)


def _check(tokenizer, layout, document_start, shard_bytes, num_processes):
    if not isinstance(tokenizer, XLNetTokenizer):
        raise ValueError(f"tokenizer must be an XLNetTokenizer. Received: {tokenizer!r}")
    if layout not in _LAYOUTS:
        raise ValueError(f"layout must be one of {_LAYOUTS}. Received: {layout!r}")
    for name, value in (("shard_bytes", shard_bytes), ("num_processes", num_processes)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a positive int. Received: {value!r}")
    try:
        re.compile(document_start or "")
    except (re.error, TypeError) as error:
        raise ValueError(
            f"document_start must be a regular expression or None. Received: {document_start!r}"
        ) from error


def _begin(directory, settings, tokenizer):
    """Prepares the directory. Returns whether the records are there already."""
    tf.io.gfile.makedirs(directory)
    for name in (INFO_FILE, _UNFINISHED_FILE):
        path = os.path.join(directory, name)
        if tf.io.gfile.exists(path):
            _require_same_settings(path, settings)
            return name == INFO_FILE
    tokenizer.save_assets(directory)
    write_json(os.path.join(directory, _UNFINISHED_FILE), settings)
    return False


def _require_same_settings(path, settings):
    found = read_json(path)
    different = [name for name in settings if found.get(name) != settings[name]]
    if different:
        name = different[0]
        raise ValueError(
            f"directory: {path!r} belongs to records made with another {name}: "
            f"{found.get(name)!r}. Received now: {settings[name]!r}. Delete that directory or "
            "choose another one."
        )


def _write_shards(plan, directory, settings, num_processes, verbose):
    todo = [index for index in range(len(plan)) if not _is_written(directory, index)]
    jobs = [(directory, settings, index, plan[index]) for index in todo]
    progress = keras.utils.Progbar(len(plan), unit_name="shard", verbose=verbose)
    progress.update(len(plan) - len(todo))
    for _ in _results(jobs, min(num_processes, len(todo))):
        progress.add(1)


def _results(jobs, num_processes):
    if num_processes <= 1:
        yield from (_write_shard(*job) for job in jobs)
        return
    # Not "fork": TensorFlow has threads, and a forked child hangs on the locks that they held.
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
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    # A worker whose parent is killed would wait for its next shard for ever.
    multiprocessing.parent_process().join()
    os._exit(1)


def _write_shard(directory, settings, index, parts):
    """Writes a shard, then its counts: a shard without them is not finished."""
    tokenizer = load_tokenizer(directory, settings["tokenizer"])
    texts = read_documents(parts, settings["layout"], settings["document_start"])
    path = os.path.join(directory, _shard_file(index))
    temporary = f"{path}.{os.getpid()}.tmp"
    counts = dict.fromkeys(("documents", "sentences", "tokens"), 0)
    with tf.io.TFRecordWriter(temporary) as writer:
        for tokens, lengths in _encode(texts, tokenizer, settings["end_of_document"]):
            writer.write(serialize_document(tokens, lengths))
            for name, count in zip(counts, (1, len(lengths), len(tokens)), strict=True):
                counts[name] += count
    size = tf.io.gfile.stat(temporary).length
    tf.io.gfile.rename(temporary, path, overwrite=True)
    write_json(_counts_path(directory, index), {"bytes": size, **counts})


def _encode(documents, tokenizer, end_of_document):
    """Yields `(tokens, sentence_lengths)` of documents, many of them a call of the tokenizer."""
    for chunk in _chunks(documents):
        ids = tokenizer([sentence for document in chunk for sentence in document])
        values, row_lengths = ids.values.numpy(), ids.row_lengths().numpy()
        sentence_ends = np.cumsum([len(document) for document in chunk])
        token_ends = np.concatenate([[0], np.cumsum(row_lengths)])[sentence_ends]
        for tokens, lengths in zip(
            np.split(values, token_ends[:-1]),
            np.split(row_lengths, sentence_ends[:-1]),
            strict=True,
        ):
            # A sentence of nothing but what the tokenizer drops is none.
            lengths = lengths[lengths > 0]
            if end_of_document and len(lengths):
                tokens = np.append(tokens, tokenizer.eod_token_id)
                lengths[-1] += 1
            if len(lengths):
                yield tokens, lengths


def _chunks(documents):
    chunk, num_sentences = [], 0
    for document in documents:
        chunk.append(document)
        num_sentences += len(document)
        if num_sentences >= _SENTENCES_A_CALL:
            yield chunk
            chunk, num_sentences = [], 0
    if chunk:
        yield chunk


def _finish(directory, settings, num_shards):
    shards = []
    for index in range(num_shards):
        counts = read_json(_counts_path(directory, index))
        if counts["tokens"]:
            shards.append({"file": _shard_file(index), **counts})
        else:
            tf.io.gfile.remove(os.path.join(directory, _shard_file(index)))
    if not shards:
        raise ValueError(
            f"files must hold text. Received {len(settings['files'])} files without a token, the "
            f"first of them {settings['files'][0][0]!r}."
        )
    write_json(os.path.join(directory, INFO_FILE), {**settings, "shards": shards})


def _remove_leftovers(directory):
    for pattern in _LEFTOVERS:
        for path in tf.io.gfile.glob(os.path.join(directory, pattern)):
            tf.io.gfile.remove(path)


def _is_written(directory, index):
    return tf.io.gfile.exists(_counts_path(directory, index))


def _shard_file(index):
    return f"tokens-{index:05d}.tfrecord"


def _counts_path(directory, index):
    return os.path.join(directory, f"tokens-{index:05d}.counts.json")

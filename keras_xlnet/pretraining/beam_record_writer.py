"""Writes token records by an Apache Beam pipeline."""

import concurrent.futures
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from keras_xlnet.arguments import check_choice
from keras_xlnet.lazy_modules import requires_extra
from keras_xlnet.pretraining.document_fields import parquet_bytes
from keras_xlnet.pretraining.file_systems import BEAM_FILES
from keras_xlnet.pretraining.record_metadata import (
    begin_records,
    finish_records,
    remove_temporary_files,
)
from keras_xlnet.pretraining.shard_writing import describe_shards, read_counts, write_shard
from keras_xlnet.pretraining.text_files import FilePart, plan_shards
from keras_xlnet.pretraining.token_record_writer import check_writer_arguments, new_settings
from keras_xlnet.pretraining.token_records import TokenRecords
from keras_xlnet.tokenizers import XLNetTokenizer
from keras_xlnet.tokenizers.text_paths import GLOB_CHARACTERS
from keras_xlnet.types import PathLike

_FOOTERS_AT_ONCE = 16


def write_token_records_with_beam(
    files: PathLike | Sequence[PathLike],
    tokenizer: XLNetTokenizer,
    directory: PathLike,
    *,
    file_format: str = "text",
    text_field: str = "text",
    lines: str = "sentences",
    document_start: str | None = None,
    end_of_document: bool = True,
    shard_bytes: int = 2**25,
    pipeline_options: Any = None,
) -> TokenRecords | None:
    """Writes token records as `write_token_records` does, on many machines.

    An Apache Beam pipeline writes one shard per element, on any runner: local processes,
    Dataflow, Flink, Spark. Text files give the same bytes as with `write_token_records`, for any
    runner and any number of workers. docs/beam.md has the commands.

    If a call is interrupted, the same call continues it and keeps finished shards. A shard that is
    written twice, because the runner retries it, has the same bytes.

    Workers import `keras_xlnet`, so the package has to be installed there. They read `files` and
    write to `directory`, so both must be paths that every worker can open.

    Args:
        files: Path or glob pattern, or a list of them, on any file system that Beam knows:
            local paths, `gs://`, `s3://`, `hdfs://`. Files whose name ends in `.gz` are
            decompressed (text and JSON lines). They are read in the given order, and the matches
            of a pattern in alphabetical order.
        tokenizer: An `XLNetTokenizer`.
        directory: Path, where to write, on any file system that Beam knows.
        file_format: String. `"text"`: as for `write_token_records`. `"jsonl"`: each line is a
            JSON object, whose field `text_field` is the text of a document. `"parquet"`: each row
            is a document, whose text is in the column `text_field`.
        text_field: String, the field or column with the text. Plain text has none.
        lines: String, `"sentences"` or `"paragraphs"`, what each line of a text contains; see
            `write_token_records`.
        document_start: `None` or a regular expression; see `write_token_records`. Must be `None`
            unless `file_format` is `"text"`.
        end_of_document: Bool, whether to append `<eod>` to the last sentence of each document.
        shard_bytes: Int, the largest number of bytes of files in a shard. For Parquet files, the
            uncompressed bytes of the column are counted.
        pipeline_options: `apache_beam.options.pipeline_options.PipelineOptions`, or a list of
            flags such as `["--runner=DataflowRunner", "--project=..."]`. `None` for one process
            on this machine.

    Returns:
        The `TokenRecords` of the directory. `None` if the directory is on a file system that
        TensorFlow cannot read; copy it to one that it can.

    Raises:
        ImportError: If Apache Beam is not installed.
        FileNotFoundError: If a file does not exist or a pattern has no match.
        ValueError: If an argument is invalid, a file is not in the format, a text is missing, the
            files contain no text, or the directory contains records of other files or settings.
            Errors in a file are found by the workers: most runners raise a `RuntimeError` with
            the same message instead.

    Example:

    >>> import json, pathlib, tempfile
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> from keras_xlnet.pretraining import write_token_records_with_beam
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> documents = ["the cat sat\\non the mat", "the dog ran"] * 20
    >>> _ = (folder / "a.jsonl").write_text(
    ...     "".join(json.dumps({"text": document}) + "\\n" for document in documents))
    >>> tokenizer = XLNetTokenizer.train(iter(documents), vocabulary_size=30)
    >>> records = write_token_records_with_beam(
    ...     str(folder / "*.jsonl"), tokenizer, folder / "records", file_format="jsonl")
    >>> records.num_documents, records.num_sentences
    (40, 60)
    """
    with requires_extra("beam", "`write_token_records_with_beam`"):
        import apache_beam as beam
        from apache_beam.io.filesystems import FileSystems
    directory = os.fspath(directory)
    check_writer_arguments(tokenizer, lines, document_start, shard_bytes)
    _check_arguments(directory, file_format, text_field, document_start)
    options = _pipeline_options(pipeline_options)
    FileSystems.set_options(options)
    found = BEAM_FILES.describe(files)
    settings = new_settings(found, tokenizer, lines, document_start, end_of_document, shard_bytes)
    if file_format != "text":
        settings |= {"file_format": file_format, "text_field": text_field}
    # Before anything is written, because it detects Parquet files without the column.
    sizes = _sizes(found, file_format, text_field, BEAM_FILES)
    if not begin_records(directory, settings, tokenizer, BEAM_FILES):
        plan = plan_shards(sizes, shard_bytes)
        with beam.Pipeline(options=options) as pipeline:
            _build(pipeline, plan, directory, settings)
    remove_temporary_files(directory, BEAM_FILES)
    return _open(directory)


def _check_arguments(directory, file_format, text_field, document_start):
    if GLOB_CHARACTERS.search(directory):
        raise ValueError(
            "`directory` must not contain characters of glob patterns. Received: "
            f"directory={directory!r}"
        )
    check_choice("file_format", file_format, ("text", "jsonl", "parquet"))
    if not isinstance(text_field, str):
        raise ValueError(f"`text_field` must be a string. Received: text_field={text_field!r}")
    if file_format != "text" and document_start is not None:
        raise ValueError(
            f"`document_start` must be None if file_format={file_format!r}, because each object "
            f"or row is a document. Received: document_start={document_start!r}"
        )


def _pipeline_options(value):
    from apache_beam.options.pipeline_options import PipelineOptions

    if isinstance(value, PipelineOptions):
        return value
    if value is None:
        # The default of Beam would download a program, if it can: see docs/beam.md.
        return PipelineOptions(["--runner=FnApiRunner"])
    if not isinstance(value, (list, tuple)) or not all(isinstance(flag, str) for flag in value):
        raise ValueError(
            "`pipeline_options` must be a PipelineOptions, a list of flags or None. Received: "
            f"pipeline_options={value!r}"
        )
    return PipelineOptions(list(value))


def _sizes(found, file_format, text_field, files):
    """Returns a dict from path to number of bytes, which `plan_shards` divides."""
    if file_format != "parquet":
        return {path: size for path, size, _ in found}
    paths = [path for path, _, _ in found]
    # Most of the time is waiting for a file system.
    with concurrent.futures.ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        sizes = pool.map(lambda path: parquet_bytes(path, text_field, files), paths)
        return dict(zip(paths, sizes, strict=True))


def _build(pipeline, plan, directory, settings):
    import apache_beam as beam

    # Plain tuples, which need no coder of their own.
    jobs = [(index, [tuple(part) for part in parts]) for index, parts in enumerate(plan)]
    for_shards = {name: value for name, value in settings.items() if name != "files"}
    _ = (
        pipeline
        | "Shards" >> beam.Create(jobs)
        # Otherwise a runner writes all shards on the worker that creates their list.
        | "Distribute" >> beam.Reshuffle()
        | "WriteShards" >> beam.Map(_write_shard, directory, for_shards)
        | "CollectCounts" >> beam.combiners.ToList()
        | "Finish" >> beam.Map(_finish, directory, settings)
    )


def _write_shard(job, directory, settings):
    index, parts = job
    counts = read_counts(directory, index, BEAM_FILES)
    if counts is not None:
        return index, counts
    parts = [FilePart(*part) for part in parts]
    return write_shard(directory, settings, index, parts, BEAM_FILES)


def _finish(counts, directory, settings):
    # In the pipeline and not after it, because a cluster can finish a job after the process that
    # started it has ended.
    counts = [shard for _, shard in sorted(dict(counts).items())]
    shards = describe_shards(directory, counts, BEAM_FILES)
    finish_records(directory, settings, shards, BEAM_FILES)


def _open(directory):
    try:
        return TokenRecords(directory)
    except tf.errors.UnimplementedError:
        return None

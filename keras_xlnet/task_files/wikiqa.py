"""Questions and candidate sentences of WikiQA, in four files of equally many lines."""

from typing import Any

from keras_xlnet.task_files.reporting import (
    check_has_rows,
    file_error,
    file_in_folder,
    lines_of,
    read_text,
    shown,
)
from keras_xlnet.types import PathLike

_FILES = {"query_id": "id.txt", "query": "a.toks", "document": "b.toks", "relevance": "sim.txt"}


def read_wikiqa(folder: PathLike) -> dict[str, list[Any]]:
    """Reads a split of WikiQA in the form of four files: `a.toks`, `b.toks`, `sim.txt`, `id.txt`.

    Args:
        folder: The folder with the files of one split, such as `WikiQA/train`.

    Returns:
        Dict of lists with one entry a pair, in the order of the files: `query_id`, `query` and
        `document` (a sentence), strings, and `relevance`, 1 or 0. Texts are tokenized and in lower
        case, as in the files. The rows of a query stand together.

    Raises:
        FileNotFoundError: If there is no such folder, or a file of the four is missing.
        TaskFileError: If the files have different numbers of lines, a line is empty, a query is not
            the text of the same id before, or a relevance is not 0 or 1. The message names the
            line.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.task_files import read_wikiqa
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.toks").write_text("when did it rise ?\\nwhen did it rise ?\\n")
    >>> _ = (folder / "b.toks").write_text("the sun rose at six .\\nit was red .\\n")
    >>> _ = (folder / "sim.txt").write_text("1\\n0\\n")
    >>> _ = (folder / "id.txt").write_text("7\\n7\\n")
    >>> wikiqa = read_wikiqa(folder)
    >>> wikiqa["document"], wikiqa["relevance"]
    (['the sun rose at six .', 'it was red .'], [1, 0])

    Source: Yang et al. 2015, "WikiQA: a challenge dataset for open-domain question answering";
    castorini/data, `WikiQA/README.md`, for the files.
    """
    paths = {name: file_in_folder(folder, file) for name, file in _FILES.items()}
    columns: dict[str, list[Any]] = {
        name: lines_of(read_text(path)) for name, path in paths.items()
    }
    count = len(columns["query_id"])
    check_has_rows(paths["query_id"], count)
    for name, path in paths.items():
        if len(columns[name]) != count:
            must = f"have as many lines as {_FILES['query_id']}, {count}"
            raise file_error(path, "", must, str(len(columns[name])))
        for line, text in enumerate(columns[name], 1):
            if not text.strip():
                raise file_error(path, f"line {line}", "not be empty", shown(text))
    _check_queries(paths["query"], columns)
    columns["relevance"] = [
        _relevance(paths["relevance"], line, text)
        for line, text in enumerate(columns["relevance"], 1)
    ]
    return columns


def _check_queries(path, columns):
    # A line that is missing from one file and another too many elsewhere would go unnoticed.
    first: dict[str, str] = {}
    for line, (identity, query) in enumerate(
        zip(columns["query_id"], columns["query"], strict=True), 1
    ):
        if first.setdefault(identity, query) != query:
            must = f"be the query of id {identity}, {shown(first[identity])}"
            raise file_error(path, f"line {line}", must, shown(query))


def _relevance(path, line, text):
    if text not in ("0", "1"):
        raise file_error(path, f"line {line}", "be 0 or 1", shown(text))
    return int(text)

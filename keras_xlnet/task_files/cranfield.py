"""Documents, queries and relevance judgements of the Cranfield collection."""

import re
from typing import Any, NamedTuple

from keras_xlnet.task_files.reporting import (
    check_has_rows,
    file_error,
    file_in_folder,
    in_cell,
    lines_of,
    read_text,
    shown,
)
from keras_xlnet.types import PathLike

_ID_LINE = re.compile(r"\.I\s+(\S+)\s*")
_MARKERS = (".T", ".A", ".B", ".W")
_DOCUMENTS = "cran.all.1400"
_QUERIES = "cran.qry"
_RELEVANCE = "QRelsCorrectedforTRECeval"


class Cranfield(NamedTuple):
    """A collection for retrieval, each part a dict of equally long lists.

    Args:
        documents: `id`, `title` and `text`, strings.
        queries: `id` and `text`, strings.
        relevance: `query_id` and `document_id`, strings, and `relevance`, int, from 1 to 5.
    """

    documents: dict[str, list[str]]
    queries: dict[str, list[str]]
    relevance: dict[str, list[Any]]


def read_cranfield(folder: PathLike) -> Cranfield:
    """Reads the Cranfield collection: `cran.all.1400`, `cran.qry`, `QRelsCorrectedforTRECeval`.

    The relevance in that last file is larger for better documents, as nDCG and trec_eval need it.
    Cleverdon's own codes, which `cranqrel` has, go the other way: they are 5 minus these.

    - 4 (his code 1, 128 judgements): a complete answer to the question
    - 3 (his code 2, 387 judgements): a high degree of relevance
    - 2 (his code 3, 734 judgements): useful, as background or for methods
    - 1 (his code 4, 363 judgements): of minimum interest, such as a historical one
    - 5 (-1 in `cranqrel`, 225 judgements): not documented

    Each query has exactly one document of relevance 5. The collection does not say what it is, and
    some programs take the -1 of `cranqrel` for "no interest". But its words are nearer to the words
    of the query than in any other grade, and queries that follow each other often share it:
    it is probably the paper whose author asked the question. Documents without a judgement for a
    query count as of no interest.

    Two documents, 471 and 995, have neither title nor text: they stay, with empty strings. The text
    of the others begins with the title, but for a space in two of them.

    Args:
        folder: The folder with the three files.

    Returns:
        A `Cranfield`. Titles and texts have the line breaks of the file. The ids of queries are
        the ids of the relevance judgements: `"1"` to `"225"`.

    Raises:
        FileNotFoundError: If there is no such folder, or a file of the three is missing.
        TaskFileError: If a record has no id, a duplicate id, or no text marker; a query
            is empty; or a judgement does not have four columns, names a query or document that is
            missing or duplicate. The message names the line.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.task_files import read_cranfield
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "cran.all.1400").write_text(
    ...     ".I 1\\n.T\\nshear flow .\\n.A\\nglauert\\n.W\\nshear flow .\\npast a plate .\\n")
    >>> _ = (folder / "cran.qry").write_text(".I 004\\n.W\\nwhat is shear flow .\\n")
    >>> _ = (folder / "QRelsCorrectedforTRECeval").write_text("1 0 1 4\\n")
    >>> collection = read_cranfield(folder)
    >>> collection.documents
    {'id': ['1'], 'title': ['shear flow .'], 'text': ['shear flow .\\npast a plate .']}
    >>> collection.queries
    {'id': ['1'], 'text': ['what is shear flow .']}
    >>> collection.relevance
    {'query_id': ['1'], 'document_id': ['1'], 'relevance': [4]}

    Source: Cleverdon, Mills and Keen 1966, "Factors determining the performance of indexing
    systems", volume 1, page 21, for the meaning of the codes.
    """
    documents = _read_documents(folder)
    queries = _read_queries(folder)
    return Cranfield(documents, queries, _read_relevance(folder, documents, queries))


def _read_documents(folder):
    path = file_in_folder(folder, _DOCUMENTS)
    columns: dict[str, list[str]] = {"id": [], "title": [], "text": []}
    for line, identity, parts in _records(path):
        for marker in (".T", ".W"):
            if marker not in parts:
                raise file_error(path, f"line {line}", f"have a part {marker}", shown(list(parts)))
        columns["id"].append(identity)
        columns["title"].append("\n".join(parts[".T"]))
        columns["text"].append("\n".join(parts[".W"]))
    return columns


def _read_queries(folder):
    path = file_in_folder(folder, _QUERIES)
    columns: dict[str, list[str]] = {"id": [], "text": []}
    for number, (line, _, parts) in enumerate(_records(path), 1):
        text = "\n".join(parts.get(".W", ()))
        if not text.strip():
            raise file_error(path, f"line {line}", "have a query after .W", shown(text))
        # The judgements count the queries from 1 to 225. The ids of cran.qry (001, 002, 004, ...
        # 365) are from a longer list that contains these: as ids they would match the
        # wrong judgements.
        columns["id"].append(str(number))
        columns["text"].append(text)
    return columns


def _records(path):
    """Returns a list of (line, id, dict from marker to lines)."""
    records: list[tuple[int, str, dict[str, list[str]]]] = []
    part: list[str] | None = None
    identities = set()
    for line, text in enumerate(lines_of(read_text(path)), 1):
        found = _ID_LINE.fullmatch(text)
        if found:
            if found[1] in identities:
                raise file_error(path, f"line {line}", "be a unique id", shown(text))
            identities.add(found[1])
            records.append((line, found[1], {}))
            part = None
        elif text.rstrip() in _MARKERS and records:
            # Some abstracts of the collection have a line ".A", ".B" or ".W" in their middle: the
            # text goes on after it.
            parts = records[-1][2]
            part = parts[".W"] if ".W" in parts else parts.setdefault(text.rstrip(), [])
        elif part is None:
            must = "be an id, as in '.I 1', or one of " + ", ".join(_MARKERS)
            raise file_error(path, f"line {line}", must, shown(text))
        else:
            part.append(text)
    check_has_rows(path, records)
    return records


def _read_relevance(folder, documents, queries):
    path = file_in_folder(folder, _RELEVANCE)
    known = {"query_id": set(queries["id"]), "document_id": set(documents["id"])}
    columns: dict[str, list[Any]] = {"query_id": [], "document_id": [], "relevance": []}
    pairs = set()
    for line, text in enumerate(lines_of(read_text(path)), 1):
        fields = text.split()
        if len(fields) != 4:
            must = "have four columns: query, 0, document, relevance"
            raise file_error(path, f"line {line}", must, shown(text))
        row = dict(zip(("query_id", "document_id"), (fields[0], fields[2]), strict=True))
        for name, identity in row.items():
            if identity not in known[name]:
                file = _QUERIES if name == "query_id" else _DOCUMENTS
                must = f"be in {file}, which has {len(known[name])} ids"
                raise file_error(path, in_cell(line, name), must, shown(identity))
            columns[name].append(identity)
        if tuple(row.values()) in pairs:
            raise file_error(path, f"line {line}", "judge a pair once", shown(text))
        pairs.add(tuple(row.values()))
        if fields[3] not in tuple("12345"):
            must = "be an integer from 1 to 5"
            raise file_error(path, in_cell(line, "relevance"), must, shown(fields[3]))
        columns["relevance"].append(int(fields[3]))
    check_has_rows(path, pairs)
    return columns

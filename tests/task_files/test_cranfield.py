"""The Cranfield collection: exact values, every error, and the real files where they are."""

import collections
import pathlib
import re

import numpy as np
import pytest

from keras_xlnet.task_files import Cranfield, TaskFileError, read_cranfield

CRANFIELD = pathlib.Path(__file__).parents[3] / "shared" / "data" / "tasks" / "cranfield"
DOCUMENTS = """\
.I 1
.T
wings in a
 slipstream .
.A
brenckman,m.\t
.B
j. ae. scs. 25, 1958, 324.
.W
wings in a
 slipstream .
  an experimental study
.I 2
.T
.A
.B
.W
.I 3
.T
heat .
.A
.B
.W
heat .
 .5 of the flow
.A
application to flows
.B
unity .
.W
of the flow .
"""
QUERIES = ".I 001\n.W\nwhat about\nwings .\n.I 004\n.W\n what about heat .\n"
RELEVANCE = "1 0 1 5\n1 0 3 1\n2 0 3 4\n"
FILES = {"cran.all.1400": DOCUMENTS, "cran.qry": QUERIES, "QRelsCorrectedforTRECeval": RELEVANCE}


def write(folder, changes=None, end="\n"):
    for name, content in {**FILES, **(changes or {})}.items():
        (folder / name).write_bytes(content.replace("\n", end).encode())
    return folder


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_collection(tmp_path, end):
    collection = read_cranfield(write(tmp_path, end=end))
    assert isinstance(collection, Cranfield)
    assert collection.documents == {
        "id": ["1", "2", "3"],
        "title": ["wings in a\n slipstream .", "", "heat ."],
        # Markers inside of the text of document 3, as in document 240 of the collection.
        "text": [
            "wings in a\n slipstream .\n  an experimental study",
            "",
            "heat .\n .5 of the flow\napplication to flows\nunity .\nof the flow .",
        ],
    }
    # Numbers of the queries, not the ids of cran.qry.
    assert collection.queries == {
        "id": ["1", "2"],
        "text": ["what about\nwings .", " what about heat ."],
    }
    assert collection.relevance == {
        "query_id": ["1", "1", "2"],
        "document_id": ["1", "3", "3"],
        "relevance": [5, 1, 4],
    }


def test_last_line_without_newline(tmp_path):
    # As in the file, whose other lines end with "\r\n".
    write(tmp_path, {"QRelsCorrectedforTRECeval": "1 0 1 5\r\n2 0 3 4"})
    assert read_cranfield(tmp_path).relevance["relevance"] == [5, 4]


MARKERS = "must be an id, as in '.I 1', or one of .T, .A, .B, .W"


@pytest.mark.parametrize(
    "file, content, message",
    [
        ("cran.all.1400", "", ": must have at least one row. Received: none"),
        ("cran.all.1400", "text\n", f", line 1: {MARKERS}. Received: 'text'"),
        ("cran.all.1400", ".T\n", f", line 1: {MARKERS}. Received: '.T'"),
        ("cran.all.1400", ".I 1\ntext\n", f", line 2: {MARKERS}. Received: 'text'"),
        ("cran.all.1400", ".I\n.T\n", f", line 1: {MARKERS}. Received: '.I'"),
        (
            "cran.all.1400",
            ".I 1\n.T\na\n.W\nb\n.I 1\n.T\na\n.W\nb\n",
            ", line 6: must be a unique id. Received: '.I 1'",
        ),
        (
            "cran.all.1400",
            ".I 1\n.T\na\n.W\nb\n.I 2\n.T\na\n.A\n",
            ", line 6: must have a part .W. Received: ['.T', '.A']",
        ),
        (
            "cran.all.1400",
            ".I 1\n.W\nb\n",
            ", line 1: must have a part .T. Received: ['.W']",
        ),
        ("cran.qry", ".I 001\n.W\n \n", ", line 1: must have a query after .W. Received: ' '"),
        ("cran.qry", ".I 001\n.T\na\n", ", line 1: must have a query after .W. Received: ''"),
        ("QRelsCorrectedforTRECeval", "", ": must have at least one row. Received: none"),
        (
            "QRelsCorrectedforTRECeval",
            # The form of cranqrel.
            "1 184 2\n",
            ", line 1: must have four columns: query, 0, document, relevance. Received: '1 184 2'",
        ),
        (
            "QRelsCorrectedforTRECeval",
            "1 0 1 5\n\n",
            ", line 2: must have four columns: query, 0, document, relevance. Received: ''",
        ),
        (
            "QRelsCorrectedforTRECeval",
            "1 0 1 5\n004 0 1 5\n",
            ", line 2, column 'query_id': must be in cran.qry, which has 2 ids. Received: '004'",
        ),
        (
            "QRelsCorrectedforTRECeval",
            "1 0 4 5\n",
            ", line 1, column 'document_id': must be in cran.all.1400, which has 3 ids. "
            "Received: '4'",
        ),
        (
            "QRelsCorrectedforTRECeval",
            "1 0 1 -1\n",
            ", line 1, column 'relevance': must be an integer from 1 to 5. Received: '-1'",
        ),
        (
            "QRelsCorrectedforTRECeval",
            "1 0 1 5\n1 0 1 4\n",
            ", line 2: must judge a pair once. Received: '1 0 1 4'",
        ),
    ],
)
def test_wrong_files(tmp_path, file, content, message):
    write(tmp_path, {file: content})
    with pytest.raises(TaskFileError) as info:
        read_cranfield(tmp_path)
    assert str(info.value) == f"{tmp_path / file}{message}"


@pytest.mark.parametrize("file", FILES)
def test_missing_files(tmp_path, file):
    (write(tmp_path) / file).unlink()
    with pytest.raises(FileNotFoundError) as info:
        read_cranfield(tmp_path)
    assert str(info.value) == f"`folder` must have the file {file!r}. Received: {str(tmp_path)!r}"


@pytest.fixture(scope="module")
def real():
    if not CRANFIELD.exists():
        pytest.skip("needs ../shared/data")
    return read_cranfield(CRANFIELD)


def test_real_files(real):
    assert {name: len(column) for name, column in real.documents.items()} == {
        "id": 1400,
        "title": 1400,
        "text": 1400,
    }
    assert {name: len(column) for name, column in real.queries.items()} == {"id": 225, "text": 225}
    counts = collections.Counter(real.relevance["relevance"])
    assert counts == {1: 363, 2: 734, 3: 387, 4: 128, 5: 225}
    empty = [
        i for i, text in zip(real.documents["id"], real.documents["text"], strict=True) if not text
    ]
    assert empty == ["471", "995"]


def test_each_real_query_has_one_document_of_relevance_5(real):
    rows = zip(real.relevance["query_id"], real.relevance["relevance"], strict=True)
    queries = [query for query, relevance in rows if relevance == 5]
    assert sorted(queries) == sorted(real.queries["id"])


def vectors(texts, idf):
    """Rows of TF-IDF of length 1."""
    index = {word: i for i, word in enumerate(idf)}
    rows = np.zeros((len(texts), len(idf)))
    for row, text in zip(rows, texts, strict=True):
        for word, count in collections.Counter(re.findall("[a-z]+", text)).items():
            if word in index:
                row[index[word]] = (1 + np.log(count)) * idf[word]
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)


def test_larger_relevance_is_nearer_to_the_query(real):
    # What the documentation says of the relevance, of 5 too, and that the judgements number the
    # queries: under the ids of cran.qry, or the codes of cranqrel, it would not hold.
    frequency = collections.Counter(
        word for text in real.documents["text"] for word in set(re.findall("[a-z]+", text))
    )
    idf = {word: np.log(1400 / count) for word, count in frequency.items()}
    documents, queries = (vectors(x["text"], idf) for x in (real.documents, real.queries))
    near = collections.defaultdict(list)
    for query, document, relevance in zip(*real.relevance.values(), strict=True):
        near[relevance].append(queries[int(query) - 1] @ documents[int(document) - 1])
    means = [np.mean(near[relevance]) for relevance in (1, 2, 3, 4, 5)]
    assert means == sorted(means)
    assert means[-1] > 1.3 * means[-2]

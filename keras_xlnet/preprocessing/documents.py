"""Queries with lists of documents as arrays, and documents in the order of their scores.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

import dataclasses
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.encoded import Encoded, encode_columns
from keras_xlnet.preprocessing.packing import Layout, rows_of_lists
from keras_xlnet.preprocessing.texts import read_columns
from keras_xlnet.results import Result


@dataclasses.dataclass(frozen=True, repr=False)
class RankedDocument(Result):
    """A document in a ranking.

    Args:
        index: Int, its place in the list that was given.
        text: String.
        score: Float, the higher the more relevant.

    Example:

    >>> from keras_xlnet.preprocessing import RankedDocument
    >>> RankedDocument(2, "a rose", 1.23456)
    RankedDocument(index=2, text='a rose', score=1.235)
    """

    index: int
    text: str
    score: float


def encode_documents(x: Any, tokenizer: Any, layout: Layout, shorten: bool = True) -> Encoded:
    """Returns what `XLNetRankerPreprocessor.encode` does.

    Args:
        x, shorten: As in that method.
        tokenizer: An `XLNetTokenizer` or a `HostTokenizer`.
        layout: A `Layout`.
    """
    columns = read_columns(x, [("query", "documents")])
    counts = [len(texts) for texts in columns["documents"]]
    queries = [q for q, n in zip(columns["query"], counts, strict=True) for _ in range(n)]
    documents = [text for texts in columns["documents"] for text in texts]
    flat, num_cut = encode_columns(queries, documents, tokenizer, layout, shorten)
    features = {key: rows_of_lists(values, counts, 0) for key, values in flat.items()}
    return Encoded(features, columns, num_cut=num_cut)


def rank_documents(scores: np.ndarray, encoded: Encoded) -> list[list[RankedDocument]]:
    """Returns a list of `RankedDocument` for each query, the most relevant one first.

    Args:
        scores: Float array `(queries, documents)`.
        encoded: What `encode_documents` returned.
    """
    pairs = zip(encoded.columns["documents"], scores, strict=True)
    return [_ranked(documents, row[: len(documents)]) for documents, row in pairs]


def _ranked(documents, scores):
    order = np.argsort(-scores, kind="stable")
    return [RankedDocument(int(i), documents[i], float(scores[i])) for i in order]

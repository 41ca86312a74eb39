"""Queries with lists of documents in the forms that users have them, and their checks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.texts import columns_of_rows, has_text, one_text, several_texts

# The relevance where a list has no document.
NO_DOCUMENT = -1


def is_rankings(x: Any) -> bool:
    """Whether `x` are queries with documents, as text."""
    return has_text(x, "query", "documents")


def ranking_columns(x: Any) -> dict[str, list[Any]]:
    """Returns a dict of `query`, a list of strings, and `documents`, a list of lists of strings.

    Args:
        x: A dict with these keys, a tuple of the two columns, or a list of rows `(query,
            documents)`.

    Raises:
        ValueError: If something is not a string, the lengths differ or a query has no documents.
            The message names the row.
    """
    if isinstance(x, dict):
        if set(x) != {"query", "documents"}:
            raise ValueError(
                f'`x` must be a dict with the keys "query" and "documents". Received: {sorted(x)}'
            )
        queries, documents = x["query"], x["documents"]
    elif isinstance(x, tuple) and len(x) == 2:
        queries, documents = x
    else:
        queries, documents = columns_of_rows(x, "(query, documents)")
    if len(queries) != len(documents):
        raise ValueError(
            "`query` and `documents` must have equal lengths. Received: "
            f"{len(queries)} and {len(documents)}"
        )
    return {
        "query": [one_text("query", row, query) for row, query in enumerate(queries)],
        "documents": [
            several_texts("documents", row, texts) for row, texts in enumerate(documents)
        ],
    }


def relevance_labels(y: Any, documents: Sequence[Sequence[str]]) -> np.ndarray:
    """Returns the relevance of documents, float32 `(queries, most documents)`, -1 for none.

    Args:
        y: List with a list of numbers of at least 0 for each query, one a document.
        documents: List of lists of strings.

    Raises:
        ValueError: If there are not as many numbers as documents, or one is negative or missing.
            The message names the row.
    """
    if not hasattr(y, "__len__") or len(y) != len(documents):
        given = f"{len(y)} rows" if hasattr(y, "__len__") else repr(y)
        raise ValueError(
            f"`y` must have the relevance of the documents of {len(documents)} queries. "
            f"Received: {given}"
        )
    labels = np.full((len(documents), max(map(len, documents))), NO_DOCUMENT, "float32")
    for row, (relevance, texts) in enumerate(zip(y, documents, strict=True)):
        if not hasattr(relevance, "__len__") or len(relevance) != len(texts):
            given = len(relevance) if hasattr(relevance, "__len__") else relevance
            raise ValueError(
                "`y` must have a number for each document. Received in row "
                f"{row}: {given} for {len(texts)} documents"
            )
        numbers = np.asarray(relevance, "float32")
        if not ((numbers >= 0) & np.isfinite(numbers)).all():
            raise ValueError(
                "`y` must be finite numbers of at least 0. Received in row "
                f"{row}: {list(relevance)}"
            )
        labels[row, : len(numbers)] = numbers
    return labels

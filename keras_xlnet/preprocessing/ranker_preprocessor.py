"""Queries with lists of documents, ordered by relevance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.arguments import check_count
from keras_xlnet.preprocessing.documents import (
    RankedDocument,
    encode_documents,
    rank_documents,
)
from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.labels import Classes
from keras_xlnet.preprocessing.text_preprocessor import XLNetTextPreprocessor
from keras_xlnet.registration import register

# The relevance of a missing document.
NO_DOCUMENT = -1


@register
class XLNetRankerPreprocessor(XLNetTextPreprocessor):
    """Converts queries with lists of documents to the arrays of `XLNetRanker`.

    A query and a document are packed as a pair, `[query, <sep>, document, <sep>, <cls>]`, and
    the longer one is truncated. Arguments are as in `XLNetTextClassifierPreprocessor`. The
    call takes pairs of a query and a document.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetRankerPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = XLNetRankerPreprocessor(tokenizer, sequence_length=16)
    >>> encoded = preprocessor.encode([("rose", ["a rose", "is", "a"]), ("is", ["a rose"])])
    >>> encoded.features["token_ids"].shape
    (2, 3, 16)
    """

    row_name = "query"
    takes_datasets = False

    def encode(self, x: Any, shorten: bool = True) -> Encoded:
        """Converts queries with documents to arrays on the host, without TensorFlow.

        Args:
            x: A dict with the columns `query` and `documents`, a tuple of these columns, or a list
                of rows `(query, documents)`.
            shorten: Bool, whether the arrays are as long as the longest row needs, or
                `sequence_length`.

        Returns:
            `Encoded`, whose `features` have the shape `(queries, most documents, length)`. A query
            with fewer documents than others has rows of zeros at its end.

        Raises:
            ValueError: If something is not a string, the lengths differ or a query has no
                documents. The message names the row.
        """
        return encode_documents(x, self.tokenizer, self.layout, shorten)

    def encode_labels(self, y: Any, encoded: Encoded, classes: Classes | None = None) -> np.ndarray:
        return relevance_labels(y, encoded.columns["documents"])

    def decode(self, outputs: Any, encoded: Encoded, **options: Any) -> list[list[RankedDocument]]:
        """Returns a list of `RankedDocument` for each query, the most relevant one first.

        Args:
            outputs: Scores `(queries, documents)`.
            encoded: What `encode` returned.
            **options: None are needed.
        """
        return rank_documents(outputs, encoded)


def relevance_labels(y: Any, documents: Sequence[Sequence[str]]) -> np.ndarray:
    """Returns the relevance of documents, float32 `(queries, most documents)`, -1 for none.

    Args:
        y: List with a list of numbers of at least 0 for each query, one per document.
        documents: List of lists of strings.

    Raises:
        ValueError: If the numbers of relevances and documents differ, or one is negative or
            missing. The message names the row.
    """
    given = f"`y` must have the relevance of the documents of {len(documents)} queries. Received: "
    check_count(y, len(documents), given, " rows")
    labels = np.full((len(documents), max(map(len, documents))), NO_DOCUMENT, "float32")
    for row, (relevance, texts) in enumerate(zip(y, documents, strict=True)):
        given = f"`y` must have a number for each document. Received in row {row}: "
        check_count(relevance, len(texts), given, f" for {len(texts)} documents")
        numbers = np.asarray(relevance, "float32")
        if not ((numbers >= 0) & np.isfinite(numbers)).all():
            raise ValueError(
                "`y` must be finite numbers of at least 0. Received in row "
                f"{row}: {list(relevance)}"
            )
        labels[row, : len(numbers)] = numbers
    return labels

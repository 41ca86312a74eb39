"""BM25, with the settings of Lucene: a baseline for rankings. It needs `pip install bm25s`."""

import logging

import numpy as np


class BM25:
    """Scores of all documents for a query.

    Args:
        documents: List of strings.
    """

    def __init__(self, documents):
        try:
            import bm25s
        except ImportError:
            raise ImportError("the baseline needs BM25: pip install bm25s") from None
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self._tokenize, self._num_documents = bm25s.tokenize, len(documents)
        self._index = bm25s.BM25(method="lucene")
        self._index.index(self._words(documents), show_progress=False)

    def _words(self, texts):
        return self._tokenize(texts, return_ids=False, show_progress=False)

    def scores(self, query):
        """Returns an array of floats, one per document."""
        known = [word for word in self._words([query])[0] if word in self._index.vocab_dict]
        if not known:  # bm25s refuses a query without words.
            return np.zeros(self._num_documents, "float32")
        return self._index.get_scores(known)

"""Scores of embeddings: similarity of pairs as judged by people, and retrieval."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from keras_xlnet.arguments import check_number
from keras_xlnet.evaluation.ranking import RankingScores, ranking_scores
from keras_xlnet.ops.vector_search import unit_length
from keras_xlnet.results import Result

# The precision of cosines of float32 vectors.
_DECIMALS = 6


@dataclasses.dataclass(frozen=True, repr=False)
class SimilarityScores(Result):
    """Correlations of cosines with numbers, from -1 to 1.

    Args:
        spearman: Float, the correlation of the ranks.
        pearson: Float, the linear correlation.
    """

    spearman: float
    pearson: float


def similarity_scores(
    embedder: Any,
    pairs: Any,
    similarities: ArrayLike,
    batch_size: int | None = None,
    verbose: str | int = "auto",
) -> SimilarityScores:
    """Compares the cosines of pairs of texts with people's judgments of similarity, as in STS-B.

    Args:
        embedder: An `XLNetTextEmbedder`.
        pairs: Pairs of texts, as in its `fit`. Cosines whose difference is within the rounding
            error of float32 count as equal, for example for pairs of equal texts.
        similarities: Numbers `(pairs,)`, on any scale.
        batch_size, verbose: As in `keras.Model.predict`.

    Returns:
        `SimilarityScores`.

    Raises:
        ValueError: If the numbers of pairs and similarities differ, all similarities are equal,
            rows are not of two texts, or an embedding is NaN.

    Example:

    >>> from keras_xlnet.evaluation import similarity_scores
    >>> class Lengths:  # Instead of a model.
    ...     def predict(self, pairs, **kwargs):
    ...         return np.array([[[1.0, 0.0], [np.cos(n), np.sin(n)]] for _, n in pairs])
    >>> similarity_scores(Lengths(), [("a", 0.0), ("b", 1.0), ("c", 2.0)], [5, 3, 1])
    SimilarityScores(spearman=1.0, pearson=0.9801)

    Source: Cer et al. 2017, "SemEval-2017 Task 1: Semantic Textual Similarity".
    """
    embeddings = embedder.predict(pairs, batch_size=batch_size, verbose=verbose)
    if np.ndim(embeddings) != 3 or np.shape(embeddings)[1] != 2:
        raise ValueError(
            "`pairs` must be rows (text, pair) or a tuple of two columns. Received: embeddings of "
            f"shape {np.shape(embeddings)}"
        )
    embeddings = unit_length(np.asarray(embeddings, "float64"))
    cosines = np.sum(embeddings[:, 0] * embeddings[:, 1], axis=-1).round(_DECIMALS)
    numbers = np.asarray(similarities, "float64")
    if numbers.shape != cosines.shape:
        raise ValueError(
            f"`similarities` must have a number for each of {len(cosines)} pairs. Received: "
            f"shape {numbers.shape}"
        )
    if not np.isfinite(numbers).all() or np.ptp(numbers) == 0:
        raise ValueError("`similarities` must be finite numbers that are not all equal")
    spearman = _correlation(_ranks(cosines), _ranks(numbers))
    return SimilarityScores(spearman, _correlation(cosines, numbers))


def retrieval_scores(
    embedder: Any,
    queries: Sequence[str],
    corpus: Any,
    relevance: Sequence[Mapping[Any, float]],
    k: Sequence[int] = (1, 5, 10),
    top_k: int = 100,
    batch_size: int | None = None,
    verbose: str | int = "auto",
) -> RankingScores:
    """Searches a collection for each query, and scores how well relevant texts are found.

    Args:
        embedder: An `XLNetTextEmbedder`.
        queries: List of strings.
        corpus: List of strings, or their vectors, as in `XLNetTextEmbedder.search`.
        relevance: For each query a dict from the index of a text of `corpus`, an int or a string
            as JSON has it, to its relevance, above 0, of all relevant texts.
        k: Ints, the numbers of texts for NDCG.
        top_k: Int, the number of texts that are retrieved for each query. Others count as not
            found.
        batch_size, verbose: As in `keras.Model.predict`.

    Returns:
        `RankingScores`: MAP, MRR and NDCG. Queries without relevant texts are left out.

    Raises:
        ValueError: If the numbers of dicts and queries differ, or a key is not an index of
            `corpus`. The message names the query.

    Example:

    >>> from keras_xlnet.evaluation import retrieval_scores
    >>> from keras_xlnet.preprocessing import RankedDocument
    >>> class Order:  # Instead of a model.
    ...     def search(self, queries, corpus, top_k, **kwargs):
    ...         return [[RankedDocument(i, corpus[i], 1.0 - i) for i in range(2)] for _ in queries]
    >>> scores = retrieval_scores(Order(), ["a", "b"], ["one", "two"], [{0: 1.0}, {1: 1.0}])
    >>> scores.mrr, scores.map
    (0.75, 0.75)

    Source: see `ranking_scores`.
    """
    if len(relevance) != len(queries):
        raise ValueError(
            f"`relevance` must have a dict for each of {len(queries)} queries. Received: "
            f"{len(relevance)}"
        )
    relevance = [_by_index(row, judged, len(corpus)) for row, judged in enumerate(relevance)]
    found = embedder.search(queries, corpus, top_k=top_k, batch_size=batch_size, verbose=verbose)
    rows = [
        (query, judged.get(document.index, 0.0), document.score)
        for query, (documents, judged) in enumerate(zip(found, relevance, strict=True))
        for document in documents
    ]
    query_ids, gains, scores = zip(*rows, strict=True)
    judged = [
        (query, gain) for query, gains_of in enumerate(relevance) for gain in gains_of.values()
    ]
    judged_ids, judged_gains = zip(*judged, strict=True) if judged else ((), ())
    return ranking_scores(
        query_ids, gains, scores, k=k, all_relevance=(list(judged_ids), list(judged_gains))
    )


def _by_index(query, judged, num_texts):
    """The relevance of texts by their index, an int."""
    if not isinstance(judged, Mapping):
        raise ValueError(f"`relevance` must be dicts. Received for query {query}: {judged!r}")
    found: dict[int, float] = {}
    for key, relevance in judged.items():
        index = int(key) if isinstance(key, str) and key.isdecimal() else key
        if index not in range(num_texts) or index in found:
            raise ValueError(
                f"`relevance` must have indices of `corpus` as keys, from 0 to {num_texts - 1}, "
                f"each once. Received for query {query}: {key!r}"
            )
        found[index] = check_number(f"relevance[{query}][{key!r}]", relevance, low=-np.inf)
    return found


def _correlation(x, y):
    """The linear correlation, 0 if all of `x` are equal."""
    x, y = x - x.mean(), y - y.mean()
    norms = np.linalg.norm(x) * np.linalg.norm(y)
    return float(x @ y / norms) if norms > 0 else 0.0


def _ranks(values):
    """The rank of each value; equal ones have the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]

"""Mean average precision, mean reciprocal rank and NDCG of rankings, as trec_eval counts them."""

import collections
import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike


@dataclasses.dataclass(frozen=True)
class RankingScores:
    """Scores of rankings, from 0 to 1, means over queries.

    Args:
        map: Float, the mean average precision.
        mrr: Float, the mean of 1 / the rank of the first relevant document, 0 without one.
        ndcg: Dict from `k` to a float, the normalized discounted cumulative gain of the first `k`
            documents.
        num_queries: Int, the number of queries that count.
    """

    map: float
    mrr: float
    ndcg: dict[int, float]
    num_queries: int


def ranking_scores(
    query_ids: ArrayLike,
    relevance: ArrayLike,
    scores: ArrayLike,
    k: Sequence[int] = (1, 5, 10, 20),
    document_ids: ArrayLike | None = None,
    all_relevance: tuple[ArrayLike, ArrayLike] | None = None,
    keep_all: bool = False,
) -> RankingScores:
    """Computes how well scores rank the documents of each query.

    A row is a pair of a query and a document; the rows of a query need not be together. With the
    documents of a query in the order of their scores, the relevance `rel_i` of document `i`, and
    `R` relevant documents in all,

        AP     = 1/R * sum over relevant i of (number of relevant documents up to i) / i
        RR     = 1 / (the first i that is relevant)
        DCG@k  = sum over i <= k of max(rel_i, 0) / log2(i + 1)
        NDCG@k = DCG@k / (DCG@k of the documents in the order of their relevance)

    A document is relevant if its relevance is above 0; negative relevance counts as 0.

    Among equal scores, the larger document id, compared as strings, comes first, as in trec_eval.
    Without ids, the first given row comes first. Scores are compared in double precision; in the
    single precision of trec_eval, more of them are equal.

    Args:
        query_ids: Strings or ints `(pairs,)`.
        relevance: Numbers `(pairs,)`, binary or graded.
        scores: Numbers `(pairs,)`, higher for documents that should come first.
        k: Ints, the numbers of documents for NDCG.
        document_ids: Optional strings or ints `(pairs,)`, different within a query.
        all_relevance: Optional pair of query ids and relevance, arrays `(judged,)`, for all judged
            documents of each query: those among the pairs and those that were not retrieved. They
            give `R` and the best DCG. A query without pairs counts as 0, and a query that is
            missing here does not count. By default, the pairs are all judged documents.
        keep_all: Bool, whether queries without a relevant document count as 0, as in trec_eval.
            They are left out otherwise, as is usual for WikiQA.

    Returns:
        `RankingScores`.

    Raises:
        ValueError: If lengths differ, there are no pairs, a number is NaN, an int of `k` is below
            1, a document is in a query twice, `all_relevance` lacks relevant documents of the
            pairs, or no query has a relevant document (without `keep_all`).

    Example:

    >>> scores = keras_xlnet.evaluation.ranking_scores(
    ...     query_ids=["a", "a", "a", "b", "b"],
    ...     relevance=[0, 1, 1, 1, 0],
    ...     scores=[0.9, 0.8, 0.1, 0.7, 0.2],
    ...     k=[1, 10],
    ... )
    >>> round(scores.map, 4), scores.mrr, round(scores.ndcg[10], 4)  # AP is 7/12 and 1.
    (0.7917, 0.75, 0.8467)

    Source: `map`, `recip_rank` and `ndcg_cut` of trec_eval 9; Järvelin and Kekäläinen 2002,
    "Cumulated gain-based evaluation of IR techniques"; Yang et al. 2015, "WikiQA: A Challenge
    Dataset for Open-Domain Question Answering", for the queries that are left out.
    """
    cutoffs = [_check_cutoff(cutoff) for cutoff in k]
    queries = _as_ids("query_ids", query_ids)
    gains = _as_numbers("relevance", relevance, len(queries))
    values = _as_numbers("scores", scores, len(queries))
    if not len(queries):
        raise ValueError("`query_ids` must have at least one pair. Received: none")
    order = _ranking(queries, values, document_ids)
    ranked = _by_query(queries, gains, order)
    judged = ranked if all_relevance is None else _judged(all_relevance, ranked)
    counted = {
        query: rels for query, rels in judged.items() if keep_all or any(rel > 0 for rel in rels)
    }
    if not counted:
        raise ValueError(
            "`relevance` must be above 0 for a document of at least one query, or use "
            f"keep_all=True. Received: {len(judged)} queries without one"
        )
    rows = [_query_scores(ranked.get(query, []), rels, cutoffs) for query, rels in counted.items()]
    means = np.mean(rows, axis=0).tolist()
    ndcg = dict(zip(cutoffs, means[2:], strict=True))
    return RankingScores(means[0], means[1], ndcg, len(rows))


def _ranking(queries, values, document_ids):
    """The rows in the order of their scores, the highest one first."""
    if document_ids is None:
        return np.argsort(-values, kind="stable")
    documents = [str(document) for document in _as_ids("document_ids", document_ids)]
    if len(documents) != len(queries):
        raise ValueError(
            f"`document_ids` must have {len(queries)} ids, as `query_ids`. Received: "
            f"{len(documents)}"
        )
    pair, count = collections.Counter(zip(queries, documents, strict=True)).most_common(1)[0]
    if count > 1:
        raise ValueError(
            "`document_ids` must be different within a query. Received for query "
            f"{pair[0]!r}: {pair[1]!r} {count} times"
        )
    _, places = np.unique(documents, return_inverse=True)
    return np.lexsort((-places, -values))


def _by_query(queries, gains, order):
    """The relevance of the documents of each query, a dict of lists."""
    rows: dict[Hashable, list[float]] = {}
    for row in order.tolist():
        rows.setdefault(queries[row], []).append(float(gains[row]))
    return rows


def _judged(all_relevance, ranked):
    """The relevance of all documents of each query, a dict of lists."""
    queries = _as_ids("all_relevance[0]", all_relevance[0])
    gains = _as_numbers("all_relevance[1]", all_relevance[1], len(queries), "all_relevance[0]")
    judged = _by_query(queries, gains, np.arange(len(queries)))
    if judged and not judged.keys() & ranked.keys():
        raise ValueError(
            "`all_relevance` must have some of `query_ids`, as values of one type. Received: "
            f"{[*judged][:3]} and {[*ranked][:3]}"
        )
    for query, rels in ranked.items():
        relevant = collections.Counter(rel for rel in rels if rel > 0)
        missing = relevant - collections.Counter(judged.get(query, []))
        if missing:
            raise ValueError(
                "`all_relevance` must have all documents of `relevance` that are above 0. "
                f"Received for query {query!r}: none for relevance {sorted(missing)}"
            )
    return judged


def _query_scores(ranked, judged, cutoffs):
    """AP, RR and NDCG of one query."""
    gains = np.maximum(ranked, 0.0)
    ideal = np.sort(np.maximum(judged, 0.0))[::-1]
    # Relevant documents that were not retrieved have no rank.
    places = np.flatnonzero(gains) + 1
    if not len(places):
        return [0.0] * (2 + len(cutoffs))
    precisions = np.arange(1, len(places) + 1) / places
    ndcg = [_dcg(gains[:cutoff]) / _dcg(ideal[:cutoff]) for cutoff in cutoffs]
    return [precisions.sum() / np.count_nonzero(ideal), 1 / places[0], *ndcg]


def _dcg(gains):
    return (gains / np.log2(np.arange(2, len(gains) + 2))).sum()


def _check_cutoff(cutoff):
    is_int = isinstance(cutoff, (int, np.integer)) and not isinstance(cutoff, bool)
    if not is_int or cutoff < 1:
        raise ValueError(f"`k` must be integers of at least 1. Received: {cutoff!r}")
    return int(cutoff)


def _as_ids(name, ids):
    """A list of hashable ids."""
    ids = list(ids) if isinstance(ids, (list, tuple)) else np.asarray(ids).tolist()
    if not isinstance(ids, list):
        raise ValueError(f"`{name}` must be a flat array of ids. Received: {ids!r}")
    for row, value in enumerate(ids):
        if not isinstance(value, Hashable):
            raise ValueError(
                f"`{name}` must be a flat array of ids. Received in row {row}: {value!r}"
            )
    return ids


def _as_numbers(name, numbers, length, as_many_as="query_ids"):
    """A flat array of `length` floats; infinite ones are allowed as scores."""
    try:
        array = np.asarray(numbers, "float64")
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be a flat array of numbers. Received: others") from None
    if array.shape != (length,):
        raise ValueError(
            f"`{name}` must have shape ({length},), as `{as_many_as}`. Received: shape "
            f"{array.shape}"
        )
    wrong = np.isnan(array) if name == "scores" else ~np.isfinite(array)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"`{name}` must be numbers. Received in row {row}: {array[row]}")
    return array

"""Scores of rankings equal those of trec_eval, of scikit-learn and of their definitions."""

import dataclasses
import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.evaluation import RankingScores, ranking_scores

# What ir_measures 0.4.3 computes with trec_eval (pytrec-eval-terrier 0.5.11):
#     calc_aggregate([AP, RR, nDCG @ 1, nDCG @ 2, nDCG @ 5], QRELS, RUN)
# Scores are equal in it, a judgement is negative, `d4` is not judged, and `b` has no relevant
# document. Documents of `a`, `c` and all of `e` were not retrieved.
QRELS = {
    "a": {"d1": 1, "d2": 0, "d3": 2, "d10": 1, "d9": -1},
    "b": {"d1": 0, "d2": 0},
    "c": {"d1": 3, "d2": 1, "d3": 1},
    "e": {"d7": 1},
    "f": {"d1": 2, "d2": 1, "d3": 0},
}
RUN = {
    "a": {"d1": 1.0, "d2": 1.0, "d3": 0.5, "d9": 2.0, "d10": 0.5},
    "b": {"d1": 2.0, "d2": 1.0},
    "c": {"d2": 0.25, "d3": 0.25, "d4": 0.25},
    "f": {"d1": 3.0, "d3": 2.0, "d2": 1.0},
}
TREC_EVAL = {
    "map": 0.33999999999999997,
    "mrr": 0.36666666666666664,
    "ndcg": {1: 0.2, 2: 0.1867905752606617, 5: 0.35647440769167316},
}


def trec_rows():
    rows = [(q, QRELS[q].get(d, 0), s, d) for q in RUN for d, s in RUN[q].items()]
    query_ids, relevance, scores, document_ids = zip(*rows, strict=True)
    judged = [(q, rel) for q in QRELS for rel in QRELS[q].values()]
    return {
        "query_ids": query_ids,
        "relevance": relevance,
        "scores": scores,
        "document_ids": document_ids,
        "all_relevance": tuple(zip(*judged, strict=True)),
    }


def test_scores_are_those_of_trec_eval():
    scores = ranking_scores(**trec_rows(), k=(1, 2, 5), keep_all=True)
    assert scores.map == pytest.approx(TREC_EVAL["map"], abs=1e-12)
    assert scores.mrr == pytest.approx(TREC_EVAL["mrr"], abs=1e-12)
    assert scores.ndcg == pytest.approx(TREC_EVAL["ndcg"], abs=1e-12)
    assert scores.num_queries == 5


def test_queries_without_a_relevant_document_are_left_out():
    scores = ranking_scores(**trec_rows(), k=(5,))
    assert scores.num_queries == 4
    assert scores.map == pytest.approx(TREC_EVAL["map"] * 5 / 4, abs=1e-12)
    assert scores.ndcg[5] == pytest.approx(TREC_EVAL["ndcg"][5] * 5 / 4, abs=1e-12)


def test_only_queries_with_judgements_count():
    arguments = {"query_ids": ["a", "z"], "relevance": [1, 0], "scores": [1.0, 1.0]}
    judged = (["a"], [1])
    scores = ranking_scores(**arguments, all_relevance=judged, keep_all=True)
    assert (scores.map, scores.num_queries) == (1.0, 1)
    assert ranking_scores(**arguments, keep_all=True).num_queries == 2


def defined_scores(query_ids, relevance, scores, k):
    """The definitions, a document at a time, for scores that are all different."""
    found = []
    for query in set(query_ids):
        rows = [i for i, other in enumerate(query_ids) if other == query]
        rows.sort(key=lambda i: -scores[i])
        rels = [relevance[i] for i in rows]
        if all(rel <= 0 for rel in rels):
            continue
        precisions = [
            sum(other > 0 for other in rels[: i + 1]) / (i + 1)
            for i, rel in enumerate(rels)
            if rel > 0
        ]
        first = min(i for i, rel in enumerate(rels, 1) if rel > 0)
        best = sorted(rels, reverse=True)
        ndcg = {cutoff: dcg(rels, cutoff) / dcg(best, cutoff) for cutoff in k}
        found.append((sum(precisions) / len(precisions), 1 / first, ndcg))
    count = len(found)
    return RankingScores(
        map=sum(row[0] for row in found) / count,
        mrr=sum(row[1] for row in found) / count,
        ndcg={cutoff: sum(row[2][cutoff] for row in found) / count for cutoff in k},
        num_queries=count,
    )


def dcg(rels, cutoff):
    return sum(rel / math.log2(i + 1) for i, rel in enumerate(rels[:cutoff], 1) if rel > 0)


def assert_equal(found, expected):
    assert found.num_queries == expected.num_queries
    assert (found.map, found.mrr) == pytest.approx((expected.map, expected.mrr), abs=1e-12)
    assert found.ndcg == pytest.approx(expected.ndcg, abs=1e-12)


@st.composite
def pairs(draw):
    """Query ids, relevance with at least one above 0, and scores that are all different."""
    size = draw(st.integers(1, 30))
    query_ids = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=size, max_size=size))
    relevance = draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size))
    relevance[draw(st.integers(0, size - 1))] = 2
    scores = draw(st.permutations(range(size)))
    return query_ids, relevance, [score / 7 - 1 for score in scores]


@settings(max_examples=150)
@given(pairs(), st.lists(st.integers(1, 40), min_size=1, max_size=3))
def test_scores_are_those_of_the_definitions(data, k):
    assert_equal(ranking_scores(*data, k), defined_scores(*data, k))


@settings(max_examples=60)
@given(pairs(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(data, random):
    rows = list(zip(*data, strict=True))
    random.shuffle(rows)
    assert_equal(ranking_scores(*zip(*rows, strict=True)), ranking_scores(*data))


@settings(max_examples=60)
@given(pairs(), st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_of_rows_changes_nothing_for_equal_scores_with_ids(data, random, num_scores):
    query_ids, relevance, scores = data
    scores = [round(score * 7) % num_scores for score in scores]
    rows = [*zip(query_ids, relevance, scores, range(len(scores)), strict=True)]
    expected = ranking_scores(query_ids, relevance, scores, document_ids=range(len(scores)))
    random.shuffle(rows)
    query_ids, relevance, scores, documents = zip(*rows, strict=True)
    assert_equal(ranking_scores(query_ids, relevance, scores, document_ids=documents), expected)


@settings(max_examples=60)
@given(pairs())
def test_a_growing_function_of_the_scores_changes_nothing(data):
    query_ids, relevance, scores = data
    grown = np.exp(scores) * 3 - 100
    assert_equal(ranking_scores(query_ids, relevance, grown), ranking_scores(*data))
    # And a falling one does, somewhere: see the order of two documents.
    assert ranking_scores([0, 0], [0, 1], [2, 1]).mrr == 0.5
    assert ranking_scores([0, 0], [0, 1], [-2, -1]).mrr == 1.0


@settings(max_examples=60)
@given(pairs())
def test_the_order_of_relevance_is_perfect(data):
    query_ids, relevance, _ = data
    scores = ranking_scores(query_ids, relevance, relevance)
    assert (scores.map, scores.mrr) == (1.0, 1.0)
    assert set(scores.ndcg) == {1, 5, 10, 20} and set(scores.ndcg.values()) == {1.0}


def test_scores_of_one_query_are_those_of_scikit_learn(rng):
    for size in (3, 10, 40):
        relevance, scores = rng.integers(0, 4, size), rng.permutation(size) / size
        relevance[size // 2] = 1
        found = ranking_scores(np.zeros(size, int), relevance, scores)
        average_precision = sklearn.metrics.average_precision_score(relevance > 0, scores)
        assert found.map == pytest.approx(average_precision, abs=1e-12)
        for k, value in found.ndcg.items():
            expected = sklearn.metrics.ndcg_score([relevance], [scores], k=k)
            assert value == pytest.approx(expected, abs=1e-12)


def test_of_equal_scores_the_first_row_comes_first_without_ids():
    assert ranking_scores([0, 0, 0], [1, 0, 0], [1.0, 1.0, 1.0]).mrr == 1.0
    assert ranking_scores([0, 0, 0], [0, 0, 1], [1.0, 1.0, 1.0]).mrr == pytest.approx(1 / 3)


def test_of_equal_scores_the_larger_id_comes_first():
    # As strings: "9" is larger than "10".
    equal = ([0, 0, 0], [0, 0, 1], [1.0, 1.0, 1.0])
    assert ranking_scores(*equal, document_ids=[2, 10, 9]).mrr == 1.0
    assert ranking_scores(*equal, document_ids=["b", "c", "a"]).mrr == pytest.approx(1 / 3)
    # A higher score beats a larger id.
    assert ranking_scores([0, 0], [1, 0], [2.0, 1.0], document_ids=["a", "b"]).mrr == 1.0


def test_a_document_can_be_of_several_queries():
    scores = ranking_scores(["a", "b"], [1, 1], [0.5, 0.5], document_ids=["d", "d"])
    assert scores.num_queries == 2


def test_relevant_documents_that_were_not_retrieved_lower_the_scores():
    arguments = (["a", "a"], [1, 0], [0.9, 0.1])
    alone = ranking_scores(*arguments, k=[1, 2])
    judged = ranking_scores(*arguments, k=[1, 2], all_relevance=(["a"] * 3, [0, 2, 1]))
    assert (alone.map, judged.map, judged.mrr) == (1.0, 0.5, 1.0)
    assert judged.ndcg == pytest.approx({1: 1 / 2, 2: 1 / (2 + 1 / math.log2(3))})


def test_negative_relevance_is_no_relevance():
    data = (["a"] * 3, [1, -3, 2], [0.1, 0.9, 0.5])
    assert_equal(ranking_scores(*data), ranking_scores(data[0], [1, 0, 2], data[2]))


def test_infinite_scores_are_scores():
    assert ranking_scores([0, 0], [0, 1], [-np.inf, np.inf]).mrr == 1.0


def test_no_query_with_a_relevant_document_is_0_if_all_are_kept():
    found = ranking_scores([0, 1], [0, -1], [0.1, 0.2], k=[3], keep_all=True)
    assert dataclasses.asdict(found) == {"map": 0, "mrr": 0, "ndcg": {3: 0}, "num_queries": 2}


IDS, RELEVANCE, SCORES = ["a", "a", "b"], [1, 0, 1], [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"relevance": [1, 0]}, r"`relevance` must have shape \(3,\).* Received: shape \(2,\)"),
        ({"scores": [[0.1], [0.2], [0.3]]}, r"`scores` must have .* Received: shape \(3, 1\)"),
        ({"scores": [0.1, np.nan, np.nan]}, "`scores` must be numbers. .* in row 1: nan"),
        ({"scores": ["x", "y", "z"]}, "`scores` must be a flat array of numbers"),
        ({"relevance": [1, 0, np.nan]}, "`relevance` must be numbers. .* in row 2: nan"),
        ({"relevance": [1, np.inf, 0]}, "`relevance` must be numbers. .* in row 1: inf"),
        ({"relevance": [0, 0, -1]}, "`relevance` must be above 0 .* Received: 2 queries"),
        ({"query_ids": ["a", ["b"], "c"]}, r"`query_ids` must be a flat .* in row 1: \['b'\]"),
        ({"query_ids": np.int64(3)}, "`query_ids` must be a flat array of ids. Received: 3"),
        ({"query_ids": [], "relevance": [], "scores": []}, "`query_ids` must have at least one"),
        ({"k": [1, 0]}, "`k` must be integers of at least 1. Received: 0"),
        ({"k": [1.5]}, "`k` must be integers of at least 1. Received: 1.5"),
        ({"k": [True]}, "`k` must be integers of at least 1. Received: True"),
        ({"document_ids": ["x"]}, "`document_ids` must have 3 ids, as `query_ids`. Received: 1"),
        (
            {"document_ids": ["x", "x", "x"]},
            "`document_ids` must be different within a query. Received for query 'a': 'x' 2 times",
        ),
        (
            {"all_relevance": (["a", "b"], [1, 2])},
            r"`all_relevance` must have all .* for query 'b': none for relevance \[1.0\]",
        ),
        ({"all_relevance": (["a"], [1, 2])}, r"`all_relevance\[1\]` must have shape \(1,\)"),
    ],
)
def test_bad_arguments(changes, message):
    arguments = {"query_ids": IDS, "relevance": RELEVANCE, "scores": SCORES, **changes}
    with pytest.raises(ValueError, match=message) as error:
        ranking_scores(**arguments)
    assert "\n" not in str(error.value)

"""Scores of answers equal those of the original and of SQuAD's scripts."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest

from keras_xlnet.evaluation import answer_scores, normalize_answer
from keras_xlnet.preprocessing.answer_decoding import Answer, AnswerPrediction

GOLDEN = json.loads(
    (pathlib.Path(__file__).parents[1] / "golden" / "squad.json").read_text(encoding="utf-8")
)
QUESTIONS = [q for article in GOLDEN["data"] for p in article["paragraphs"] for q in p["qas"]]


@dataclasses.dataclass
class Found:
    text: str
    null_score: float


@pytest.mark.parametrize("case", GOLDEN["normalize_answer"], ids=lambda case: case["a"])
def test_normalized_answers_are_the_originals(case):
    assert normalize_answer(case["a"]) == case["normalized"]


@pytest.mark.parametrize(
    "case", GOLDEN["scores"], ids=lambda case: f"{case['gold']}, {case['pred']}"
)
def test_scores_of_one_answer_are_the_originals(case):
    gold = [case["gold"]] if case["gold"] else []
    scores = answer_scores([case["pred"]], [gold])
    assert scores.exact == pytest.approx(100 * case["exact"])
    assert scores.f1 == pytest.approx(100 * case["f1"])


def test_best_thresholds_are_the_originals():
    ids = [question["id"] for question in QUESTIONS]
    predictions = [Found(GOLDEN["predictions"][id], GOLDEN["null_odds"][id]) for id in ids]
    scores = answer_scores(predictions, [question["answers"] for question in QUESTIONS])
    expected = GOLDEN["eval"]
    assert scores.best_exact == pytest.approx(expected["best_exact"])
    assert scores.best_exact_threshold == expected["best_exact_thresh"]
    assert scores.best_f1 == pytest.approx(expected["best_f1"])
    assert scores.best_f1_threshold == expected["best_f1_thresh"]
    assert scores.has_answer_exact == pytest.approx(100 * expected["has_ans_exact"])
    assert scores.has_answer_f1 == pytest.approx(100 * expected["has_ans_f1"])


def test_best_threshold_is_the_best_of_all():
    rng = np.random.default_rng(0)
    words = ["a cat", "red dog", "two red dogs", ""]
    predictions = [Found(rng.choice(words), float(rng.normal())) for _ in range(40)]
    answers = [
        [[], ["cat"], ["red dog"], ["two dogs", "red dogs"]][rng.integers(4)] for _ in words * 10
    ]
    scores = answer_scores(predictions, answers)
    thresholds = [-np.inf, *(p.null_score for p in predictions)]
    tried = [answer_scores(predictions, answers, threshold) for threshold in thresholds]
    assert scores.best_exact == pytest.approx(max(t.exact for t in tried))
    assert scores.best_f1 == pytest.approx(max(t.f1 for t in tried))
    at_best = answer_scores(predictions, answers, scores.best_f1_threshold)
    assert at_best.f1 == pytest.approx(scores.best_f1)
    assert scores.best_f1 > scores.f1


def test_equal_null_scores_are_answered_together():
    predictions = [Found("cat", 1.0), Found("dog", 1.0), Found("x", 1.0)]
    scores = answer_scores(predictions, [["cat"], ["cat"], []])
    # All three keep their answers, or none does: 1 of 3 is right either way.
    assert scores.best_exact == pytest.approx(100 / 3)
    assert answer_scores(["cat", "x"], [["cat"], []]).best_exact == 50.0


def test_the_best_of_several_answers_counts():
    scores = answer_scores(["the red dog", "x"], [["a dog", "red dog"], [{"text": "y"}]])
    assert (scores.exact, scores.num_questions) == (50.0, 2)


@pytest.mark.parametrize(
    "answers",
    [
        [["cat", "dog"], []],
        [[{"text": "cat"}, {"text": "dog"}], []],
        [{"text": ["cat", "dog"], "answer_start": [0, 4]}, {"text": [], "answer_start": []}],
        [{"text": np.array(["cat", "dog"], object), "answer_start": np.array([0, 4])}, None],
        [np.array(["cat", "dog"]), np.array([])],
        ["dog", ""],
        [(4, "dog"), None],
    ],
    ids=str,
)
def test_answers_in_the_forms_that_fit_takes(answers):
    scores = answer_scores(["dog", "x"], answers)
    assert (scores.exact, scores.has_answer_exact, scores.best_exact) == (50.0, 100.0, 50.0)


def predictions_of(texts, nulls, threshold=None):
    return [
        AnswerPrediction((Answer(text, 0, 0, 1.0, 0.0, 0.0),) if text else (), null, threshold)
        for text, null in zip(texts, nulls, strict=True)
    ]


@pytest.mark.parametrize("has_answer", [[1, 0, 1, 0], [1, 1, 1, 1]])
@pytest.mark.parametrize("nulls", [[-3.0, -1.0, -2.0, -0.5], [1.0, 4.0, 2.0, 3.0]])
def test_texts_at_the_best_threshold_have_the_best_score(nulls, has_answer):
    texts = ["cat", "dog", "", "x"]
    answers = [[text or "y"] if has else [] for text, has in zip(texts, has_answer, strict=True)]
    scores = answer_scores(predictions_of(texts, nulls), answers)
    at_best = predictions_of(texts, nulls, scores.best_f1_threshold)
    assert answer_scores(at_best, answers).f1 == pytest.approx(scores.best_f1)
    # The threshold of the predictions is that of their texts, and no limit for a better one.
    assert answer_scores([p.text for p in at_best], answers).f1 == pytest.approx(scores.best_f1)
    strict = predictions_of(texts, nulls, -100.0)
    assert [p.text for p in strict] == [""] * 4
    assert answer_scores(strict, answers).best_f1 == pytest.approx(scores.best_f1)
    assert answer_scores(strict, answers, threshold=100.0).f1 == pytest.approx(scores.f1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], []), "`predictions` and `answers` must have the same.* Received: 1 and 0"),
        (([], []), "nonzero length. Received: 0 and 0"),
        ((["a", "b"], [["a"], [3]]), r"SQuAD's dicts.* Received in row 1: \[3\]"),
        ((["a"], [{"text": ["a"], "answer_start": []}]), "Received in row 0: "),
        ((["a"], [["a"]], 0.5), "`threshold` needs the null scores"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        answer_scores(*arguments)

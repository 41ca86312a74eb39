"""Questions and answers in every form, and what is refused."""

import re

import numpy as np
import pytest

from keras_xlnet.preprocessing.answers import (
    GoldAnswer,
    gold_answers,
    question_columns,
)

QUESTIONS, CONTEXTS = ["who sat?", "where?"], ["The cat sat.", "On the mat, the mat."]
FORMS = {
    "dict": {"question": QUESTIONS, "context": CONTEXTS},
    "columns": (QUESTIONS, np.array(CONTEXTS)),
    "rows": list(zip(QUESTIONS, CONTEXTS, strict=True)),
    "array of rows": np.array(list(zip(QUESTIONS, CONTEXTS, strict=True))),
    "bytes": ([q.encode() for q in QUESTIONS], CONTEXTS),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_questions(form):
    assert question_columns(FORMS[form]) == {"question": QUESTIONS, "context": CONTEXTS}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("the mat", GoldAnswer("the mat", 3)),
        ((12, "the mat"), GoldAnswer("the mat", 12)),
        ({"text": "mat", "answer_start": 7}, GoldAnswer("mat", 7)),
        (
            [{"text": "mat", "answer_start": 16}, {"text": "On", "answer_start": 0}],
            GoldAnswer("mat", 16),
        ),
        (["On", "mat"], GoldAnswer("On", 0)),
        # As SQuAD is on the Hub, in Python and in pandas.
        ({"text": ["mat", "On"], "answer_start": [16, 0]}, GoldAnswer("mat", 16)),
        ({"text": np.array(["On"], object), "answer_start": np.array([0])}, GoldAnswer("On", 0)),
        ({"text": [], "answer_start": []}, None),
        ({"text": np.array([]), "answer_start": np.array([])}, None),
        (None, None),
        ("", None),
        ([], None),
    ],
    ids=str,
)
def test_forms_of_answers(answer, expected):
    assert gold_answers([answer], CONTEXTS[1:]) == [expected]


BAD_QUESTIONS = {
    "another key": ({"question": ["a"], "text": ["b"]}, "a dict with the keys .question. and"),
    "lengths": ((["a", "b"], ["c"]), r"equal lengths. Received: {'question': 2, 'context': 1}"),
    "one text": ((["a"], "b"), "`context` must be a batch of texts: pass a list. Received: 'b'"),
    "empty": ([(" ", "a")], "`question` must be texts. Received in row 0: ' '"),
    "missing": ([("a", "b"), (None, "c")], "`question` must be strings. Received in row 1: None"),
    "short row": (
        [("a", "b"), ("c",)],
        r"must have rows \(question, context\). Received in row 1: \('c',\)",
    ),
}


@pytest.mark.parametrize("case", BAD_QUESTIONS)
def test_bad_questions(case):
    x, message = BAD_QUESTIONS[case]
    with pytest.raises(ValueError, match=message):
        question_columns(x)


BAD_ANSWERS = {
    "not in the context": (["sat", "dog"], "Received in row 1: 'dog' at character -1"),
    "elsewhere": (
        ["sat", (2, "the mat")],
        "1: 'the mat' at character 2, where the context has ' the ma'",
    ),
    "a number": (["sat", 3], r"`y` must be answers: strings, \(start, text\).* in row 1: 3"),
    "a dict of something else": (["sat", {"answer": "x"}], "Received in row 1: {'answer': 'x'}"),
    "a dict of lists of something else": (["sat", {"text": ["mat"]}], "in row 1: {'text': 'mat'}"),
    "lists of other lengths": (
        ["sat", {"text": ["mat"], "answer_start": []}],
        r"Received in row 1: \(\[\], \['mat'\]\)",
    ),
    "too few": (["sat"], "the answer of each of the 2 questions. Received: 1 of them"),
    "none": (None, "Received: None"),
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_bad_answers(case):
    y, message = BAD_ANSWERS[case]
    with pytest.raises(ValueError, match=message) as error:
        gold_answers(y, CONTEXTS)
    assert re.match("`y` must", str(error.value))

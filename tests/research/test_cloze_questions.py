"""Questions made from passages have their answer where they say that it is."""

import lzma
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import RESEARCH

sys.path.insert(0, str(RESEARCH / "tasks"))
from cloze_questions import cloze_questions, questions_about, read_passages, sentences, spans

PASSAGE = (
    "The old bridge over the Elbe was built by Anna Schmidt in 1894. It is 210 metres long and was "
    "closed by the city of Dresden in 2010. Anna Schmidt also built two towers near the harbour of "
    "Hamburg, which the Bank of Saxony had paid for. In Hamburg she met Tim Cook and the painters."
)
WORDS = [*PASSAGE.split(), "1894.", "12,5", "é", "Été", "?", "'", "of", "Of"]


@given(st.lists(st.sampled_from(WORDS), max_size=80).map(" ".join), st.integers(0, 9))
def test_answers_are_where_they_are_said_to_be(passage, seed):
    for row in questions_about(passage, 6, random.Random(seed)):
        assert row.answer
        assert row.context[row.start :].startswith(row.answer)
        assert row.question.endswith("?")


def test_answers_of_other_sentences():
    rows = questions_about(PASSAGE, 200, random.Random(0))
    shorter = [row for row in rows if row.context != PASSAGE]
    assert {row.answer for row in shorter} <= {"Anna Schmidt", "Hamburg", "Dresden", "Elbe"}
    assert {"Anna Schmidt", "Hamburg"} <= {row.answer for row in shorter}
    for row in shorter:
        # What is not in the context is one sentence.
        (gone,) = [s for part in sentences(PASSAGE) if (s := PASSAGE[part]) not in row.context]
        assert row.answer in gone


def test_a_question_has_words_of_its_sentence_and_one_that_asks():
    rows = questions_about(PASSAGE, 200, random.Random(1))
    assert {row.answer for row in rows if "what year" in row.question} == {"1894", "2010"}
    assert all(len(row.question.split()) >= 3 for row in rows)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The Bank of Saxony paid.", {"Bank of Saxony": "name", "paid": "other"}),
        ("In 1894 it had 45 million.", {"1894": "year", "45 million": "number"}),
        ("Bank of", {"Bank": "name"}),
        ("", {}),
        ("The of and", {}),
        ("New York, Paris", {"New York": "name", "Paris": "name"}),
    ],
)
def test_spans(sentence, expected):
    assert {sentence[s.start : s.end]: s.kind for s in spans(sentence)} == expected


def test_passages_of_a_corpus(tmp_path):
    speech = '"Well," she said, "' + "and then he went home again, " * 8 + '"'
    documents = [
        ["Bridges", PASSAGE, "Sources.", speech, PASSAGE.replace("Elbe", "Oder")],
        ["A sentence is not a title.", PASSAGE],
        ["Alone"],
    ]
    file = tmp_path / "corpus.xz"
    with lzma.open(file, "wt", encoding="utf-8") as lines:
        lines.write("\n\n".join("\n".join(document) for document in documents))
    found = read_passages(file, 10)
    assert len(found) == 1
    assert found[0].startswith(PASSAGE)
    assert "said" not in found[0]
    assert read_passages(file, 0) == []
    columns = cloze_questions(found, each=5)
    assert {len(column) for column in columns.values()} == {5}
    assert columns == cloze_questions(found, each=5)

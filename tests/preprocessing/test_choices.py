"""Choices in the blanks of questions."""

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_xlnet.preprocessing.choices import answered, fill_blanks

# Questions, and what they are with the choice "wet".
BLANKS = {
    "The street is ____.": "The street is wet.",
    "The street is  _  .": "The street is  wet  .",
    "_ is the street, and _____ too": "wet is the street, and wet too",
    'It is "____", (__) or __\'s?': 'It is "wet", (wet) or wet\'s?',
    "____": "wet",
    "Is it\n___\n?": "Is it\nwet\n?",
    "Set my_var to __, not name_ or _name or __init__": (
        "Set my_var to wet, not name_ or _name or __init__"
    ),
    "What is my_var?": "What is my_var? wet",
    "What are __init__ and 1_000?": "What are __init__ and 1_000? wet",
    "गली हि_ है": "गली हि_ है wet",
    "caf\u00e9_ caf\u0065\u0301_": "caf\u00e9_ caf\u0065\u0301_ wet",
    "How is the street?": "How is the street? wet",
}


@pytest.mark.parametrize("question", BLANKS)
def test_a_blank_is_a_run_that_stands_alone(question):
    assert answered(question, "wet") == BLANKS[question]


def test_choices_are_put_in_as_they_are():
    assert (
        answered("It is __ or __.", r"\1 \g<0> _x_ \n")
        == r"It is \1 \g<0> _x_ \n or \1 \g<0> _x_ \n."
    )


# === In the graph ===

CHARACTERS = "_ a\u00e9\u0301\u0939\u093f\u200d5.,(\n\u4f60"


def in_graph(questions, choices):
    found = fill_blanks(tf.constant(questions), tf.constant(choices)).numpy()
    return [[choice.decode() for choice in row] for row in found]


def test_the_graph_fills_the_same_blanks():
    choices = [["wet", r"\1 _ \n"]] * len(BLANKS)
    expected = [[answered(question, choice) for choice in choices[0]] for question in BLANKS]
    assert in_graph(list(BLANKS), choices) == expected


@given(st.lists(st.text(CHARACTERS, max_size=12), min_size=1, max_size=8))
def test_the_graph_fills_the_blanks_of_any_question(questions):
    expected = [[answered(question, "x")] for question in questions]
    assert in_graph(questions, [["x"]] * len(questions)) == expected

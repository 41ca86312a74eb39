import random
import sys

import pytest

from tests.examples import RESEARCH

sys.path.insert(0, str(RESEARCH / "pretraining" / "small_model"))
from english_sources import join_books, source_of


@pytest.mark.parametrize(
    ("source", "document"),
    [
        ("chat", "\n".join(f"nick{i}: have you tried turning it off?" for i in range(9))),
        ("books", "It was a dark night. " * 2000),
        ("encyclopedia", "Bieberite\nBieberite (CoSO4) is a pinkish mineral.\nIt is rare."),
        ("encyclopedia", "Lynx (bus company)\nLynx, a trading name, is a bus company."),
        ("dialogues", "I want a table for two.\nFor which day?\nFor Friday, please."),
        ("prose", "Most of what agencies publish is read on telephones. " * 5),
    ],
)
def test_sources_are_known_by_the_form_of_their_lines(source, document):
    assert source_of(document) == source


def test_pieces_with_the_same_names_are_one_book():
    rng = random.Random(0)
    casts = [["Campton", "Boylston", "Julia"], ["Morel", "Miriam", "Clara"], ["Aouda", "Passe"]]
    words = ["river", "evening", "slowly", "walked", "house", "about", "spoke"]
    # Names of towns and days, which are in every book, must not join them.
    common = ["Monday", "London", "Sunday"]
    casts_of_pieces = [rng.randrange(3) for _ in range(30)]
    pieces = [
        " ".join(f"{rng.choice(words)} {rng.choice(casts[i] + common)}" for _ in range(60))
        for i in casts_of_pieces
    ]
    books = join_books([*pieces, "no names at all"])
    expected = [
        [p for p, i in zip(pieces, casts_of_pieces, strict=True) if i == n] for n in (0, 1, 2)
    ]
    assert sorted(books) == sorted([*expected, ["no names at all"]])


def test_few_pieces_are_books_of_their_own():
    assert join_books([]) == []
    assert join_books(["one piece"]) == [["one piece"]]

"""The original's rule for where words begin."""

import pathlib

from keras_xlnet.pretraining import word_start_table
from keras_xlnet.tokenizers import XLNetTokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


class Pieces:
    """A vocabulary with given pieces."""

    def __init__(self, pieces):
        self.pieces = list(pieces)

    def vocabulary_size(self):
        return len(self.pieces)

    def id_to_token(self, index):
        return self.pieces[index]


def test_equals_the_original(golden):
    expected = golden("data.json")["is_start_piece"]
    table = word_start_table(Pieces(expected))
    assert dict(zip(expected, table.tolist(), strict=True)) == expected


def test_punctuation_that_the_original_lists():
    listed = '!"#$%&()*+,-./:;?@[\\]^_`{|}~'
    assert word_start_table(Pieces(listed)).all()
    assert not word_start_table(Pieces("'=>a1–£")).any()


def test_table_of_a_tokenizer():
    tokenizer = XLNetTokenizer(GOLDEN / "spiece.model")
    table = word_start_table(tokenizer)
    assert table.shape == (200,) and table[: tokenizer.eop_token_id + 1].all()

"""The page of fill-ins: blanks are hidden, all sentences are shown, scores are counted right."""

import sys

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.examples import EXAMPLES, RESEARCH

sys.path.insert(0, str(RESEARCH / "language_models"))
import what_it_knows
from what_it_knows import MASK_ID, FillIn, row_with_blank

SENTENCES = EXAMPLES / "data" / "fill_ins.tsv"


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """A preset as pretraining writes it, with random weights."""
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    tokenizer = XLNetTokenizer.train(iter([*lines, what_it_knows.CONTEXT]), vocabulary_size=120)
    backbone = XLNetBackbone(
        tokenizer.vocabulary_size(), 2, 2, 16, 32, memory_length=8, reuse_length=64,
        bidirectional_data=True, kernel_initializer="glorot_normal", seed=0,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("preset")
    XLNetPermutationLM(backbone, stateful=True, batch_size=4).save_to_preset(folder, tokenizer)
    return folder


def test_the_blank_is_where_the_answer_is(preset):
    tokenizer = XLNetTokenizer.from_preset(preset)
    row = row_with_blank(tokenizer, FillIn("fact", "Paris is in ", ("France", "Europe"), "."), 126)
    assert len(row) == 126 and (row == MASK_ID).sum() == len(tokenizer.encode(["France"])[0])
    # A document ends before the sentence.
    begin = [*row].index(tokenizer.eod_token_id) + 1
    pieces = [tokenizer.id_to_token(int(i)) for i in row[begin:] if i != MASK_ID]
    assert "".join(pieces) == "▁Paris▁is▁in."
    unknown = row_with_blank(tokenizer, FillIn("cannot know", "It is ", (), "."), 126)
    assert (unknown == MASK_ID).sum() == len(tokenizer.encode(["it"])[0])


def test_a_blank_inside_of_a_piece_is_refused():
    class Words:
        eod_token_id = 7

        def encode(self, texts):
            return [np.array([10 + len(word) for word in text.split()]) for text in texts]

    assert MASK_ID in row_with_blank(Words(), FillIn("", "a ", ("dog",), " barks"), 16)
    with pytest.raises(ValueError, match="does not split a sentence at its blank"):
        row_with_blank(Words(), FillIn("", "a ", ("dog",), "gy thing"), 16)


def test_the_file_has_a_dozen_sentences_of_each_kind():
    kinds = [fill_in.kind for fill_in in what_it_knows.read_fill_ins(SENTENCES)]
    assert {kinds.count(kind) for kind in set(kinds) - {"cannot know"}} == {12}


@pytest.mark.parametrize("line", ["no kind {x}", "kind\tno blank", "kind\t{a} and {b}"])
def test_a_bad_line_is_named(tmp_path, line):
    (tmp_path / "bad.tsv").write_text(f"kind\tsentence\n{line}\n")
    with pytest.raises(ValueError, match="bad.tsv.*" + line[-4:-1]):
        what_it_knows.read_fill_ins(tmp_path / "bad.tsv")


def test_scores_by_hand():
    fact = FillIn("fact", "Paris is in ", ("France", "Europe"), ".")
    talk = FillIn("talk", '"', ("Yes",), '"')
    guesses = [
        (fact, 1, [("▁Europe", 0.5), ("▁France", 0.1)]),
        (fact, 2, [("▁Asia", 0.5), ("▁France", 0.1)]),
        # A piece that continues the word before it is another word.
        (fact, 1, [("France", 0.5), ("▁a", 0.1)]),
        (talk, 1, [("Yes", 0.9)]),
        (FillIn("cannot know", "I am ", (), "."), 1, [("▁it", 0.9)]),
    ]
    scores = {name: list(map(int, s)) for name, s in what_it_knows.count_right(guesses).items()}
    assert scores == {
        "fact": [3, 1, 2],
        "talk": [1, 1, 1],
        "blanks of one piece": [3, 2, 2],
        "blanks of several pieces": [1, 0, 1],
        "all": [4, 2, 3],
    }
    table = what_it_knows.fill_ins_table(guesses)
    assert (
        "| Paris is in ____. | France, Europe | 1 | **`Europe`** 50%, **`France`** 10% |" in table
    )
    assert "| `-France` 50%, `a` 10% |" in table and "(no right answer)" in table


def test_markup_in_texts_is_not_markup():
    assert what_it_knows.shown("▁|") == r"`\|`" and what_it_knows.shown("▁") == "(space)"
    assert what_it_knows.escape("a|b <c> *d*") == "a&#124;b &lt;c&gt; &#42;d&#42;"


def test_nearest_sentences_of_the_same_topic():
    vectors = np.array([[1, 0], [1, 0.1], [0.1, 1], [0.9, 0.2]])
    share = what_it_knows.same_topic(what_it_knows.cosines(vectors), ["a", "a", "b", "b"])
    assert share == 0.75  # The last one is nearest to the second.


def test_only_what_is_between_the_markers_is_replaced():
    page = "before\n<!-- begin a -->\nold\n<!-- end a -->\nafter\n"
    once = what_it_knows.write_between_markers(page, {"a": r"new \1"})
    assert once == "before\n<!-- begin a -->\n\nnew \\1\n<!-- end a -->\nafter\n"
    assert what_it_knows.write_between_markers(once, {"a": r"new \1"}) == once
    with pytest.raises(ValueError, match="begin b"):
        what_it_knows.write_between_markers(page, {"b": "new"})


def test_the_page_has_all_sentences_and_a_picture(preset, tmp_path):
    page = tmp_path / "page.md"
    page.write_text((EXAMPLES.parent / "docs" / "what_it_knows.md").read_text(encoding="utf-8"))
    what_it_knows.write_page(preset, page, 64)
    text = page.read_text(encoding="utf-8")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG") and "(page.png)" in text
    assert str(preset.parent) not in text
    for fill_in in what_it_knows.read_fill_ins(SENTENCES):
        assert what_it_knows.escape(fill_in.sentence) in text
    for part in (
        "| all | 108 |",
        "| king |",
        "| TF-IDF of words |",
        "The model card describes its training data",
    ):
        assert part in text

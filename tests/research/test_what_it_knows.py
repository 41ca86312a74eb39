"""The page of fill-ins: blanks are hidden, all sentences are shown, scores are counted right."""

import itertools
import sys
import types

import numpy as np
import pytest

from keras_xlnet.models import XLNetBackbone, XLNetPermutationLM
from keras_xlnet.tokenizers import XLNetTokenizer
from tests.examples import EXAMPLES, RESEARCH

sys.path.insert(0, str(RESEARCH / "language_models"))
import fill_ins
import what_it_knows
from fill_ins import FillIn, RowMaker

SENTENCES = EXAMPLES / "data" / "fill_ins.tsv"


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """A preset as pretraining writes it, with random weights."""
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()
    tokenizer = XLNetTokenizer.train(iter([*lines, fill_ins.CONTEXT]), vocabulary_size=120)
    backbone = XLNetBackbone(
        tokenizer.vocabulary_size(), 2, 2, 16, 32, memory_length=8, reuse_length=64,
        bidirectional_data=True, kernel_initializer="glorot_normal", seed=0,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("preset")
    XLNetPermutationLM(backbone, stateful=True, batch_size=4).save_to_preset(folder, tokenizer)
    return folder


@pytest.fixture(scope="module")
def loaded(preset):
    model, tokenizer, row_length = what_it_knows.load(preset)
    return model, RowMaker(tokenizer, row_length)


def test_the_model_has_the_weights_of_the_preset_and_reads_forward_without_memory(preset, loaded):
    model, rows = loaded
    trained = XLNetPermutationLM.from_preset(preset)
    for ours, theirs in zip(model.backbone.weights, trained.backbone.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert model.backbone.memory_length is None and not model.backbone.bidirectional_data
    assert rows.length == 128


def test_a_model_of_another_objective_is_refused(preset, tmp_path):
    model = XLNetPermutationLM.from_preset(preset, objective="denoising")
    model.save_to_preset(tmp_path)
    with pytest.raises(ValueError, match="objective='denoising'"):
        what_it_knows.load(tmp_path)


def test_rows_look_like_those_of_pretraining(loaded):
    _, rows = loaded
    tokenizer = rows.tokenizer
    pieces = rows.pieces("The dog barks.")
    row, begin = rows.row(pieces)
    assert len(row) == 128 and row[begin - 1] == tokenizer.eod_token_id
    assert row[begin:] == [*pieces, tokenizer.sep_token_id, tokenizer.cls_token_id]
    assert begin > 64  # In the half of which the first half sees nothing.
    assert rows.segment_ids(2)[1].tolist() == [0] * 127 + [2]
    with pytest.raises(ValueError, match="at least 202 for a text of 200 pieces"):
        rows.row([9] * 200)


def test_the_blank_is_where_the_answer_is(loaded):
    _, rows = loaded
    pieces, blank = rows.blank(FillIn("fact", "Paris is in ", ("France", "Europe"), "."))
    assert pieces[blank] == rows.pieces("France")
    pieces, blank = rows.blank(FillIn("dialogue", '"', ("How",), ' are you?"'))
    assert what_it_knows.text_of(rows.tokenizer, pieces[blank]) == "How"
    pieces, blank = rows.blank(FillIn("cannot know", "It is ", (), "."))
    assert pieces[blank] == rows.pieces("it")


def test_a_blank_inside_of_a_piece_is_left_out():
    class Words:
        eod_token_id, sep_token_id, cls_token_id = 7, 4, 3

        def __call__(self, text):
            return [hash(word) for word in text.split()]

    rows = RowMaker(Words(), 16)
    assert rows.blank(FillIn("", "a ", ("dog",), " barks"))
    assert rows.blank(FillIn("", "a ", ("dog",), "gy thing")) is None


def test_no_token_sees_the_blank_and_the_blank_sees_the_others(loaded):
    model, rows = loaded
    pieces, blank = rows.blank(FillIn("", "My sister ", ("is",), " taller than her friends."))
    row, begin = rows.row(pieces)
    position = begin + blank.start
    hidden = np.zeros((5, 128), "bool")
    hidden[:, position] = True
    token_ids = np.tile(np.array(row, "int32"), (5, 1))
    token_ids[1, position] = 50
    for changed, where in ((2, position - 1), (3, position + 1), (4, 10)):
        token_ids[changed, where] = 50
    targets = np.full((5, 1), position, "int32")
    scores = fill_ins.predict(model, rows, token_ids, hidden, targets)
    np.testing.assert_allclose(np.exp(scores).sum(axis=-1), 1, rtol=1e-6)
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-6)
    for changed in (2, 3, 4):
        assert np.abs(scores[changed] - scores[0]).max() > 1e-4, changed


def test_fillings_of_two_pieces_are_the_most_probable_of_all(loaded):
    model, rows = loaded
    pieces, size = rows.pieces("The dog barks at him."), rows.tokenizer.vocabulary_size()
    blank = slice(1, 3)
    ((best, *others),) = fill_ins.fill(model, rows, [(pieces, blank)], width=size)
    row, begin = rows.row(pieces)
    hidden = np.zeros((size, 128), "bool")
    hidden[:, begin + 2] = True
    token_ids = np.tile(np.array(row, "int32"), (size, 1))
    token_ids[:, begin + 1] = np.arange(size)
    targets = np.full((size, 1), begin + 2, "int32")
    second = fill_ins.predict(model, rows, token_ids, hidden, targets)
    hidden[:, begin + 1] = True
    first = fill_ins.predict(model, rows, token_ids[:1], hidden[:1], targets[:1] - 1)[0]
    joint = first[:, np.newaxis] + second
    assert best[0] == [int(i) for i in np.unravel_index(joint.argmax(), joint.shape)]
    assert best[1] == pytest.approx(np.exp(joint.max()), rel=1e-4)
    assert all(a[1] >= b[1] for a, b in itertools.pairwise([best, *others]))


def test_the_file_has_a_dozen_sentences_of_each_kind():
    kinds = [fill_in.kind for fill_in in fill_ins.read_fill_ins(SENTENCES)]
    assert {kinds.count(kind) for kind in set(kinds) - {"cannot know"}} == {12}
    topics, sentences = what_it_knows.read_sentences(EXAMPLES / "data" / "sentences_by_topic.tsv")
    assert {topics.count(topic) for topic in topics} == {18} and len(set(sentences)) == 180


@pytest.mark.parametrize("line", ["no kind {x}", "kind\tno blank", "kind\t{a} and {b}"])
def test_a_bad_line_is_named(tmp_path, line):
    (tmp_path / "bad.tsv").write_text(f"kind\tsentence\n{line}\n")
    with pytest.raises(ValueError, match="bad.tsv.*" + line[-4:-1]):
        fill_ins.read_fill_ins(tmp_path / "bad.tsv")


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


def run(monkeypatch, preset, page):
    values = {"preset": str(preset), "page": str(page), "picture": None, "row_length": None}
    monkeypatch.setattr(what_it_knows, "FLAGS", types.SimpleNamespace(**values))
    what_it_knows.main(["what_it_knows.py"])


def test_the_page_has_all_sentences_and_a_picture(monkeypatch, preset, tmp_path):
    page = tmp_path / "page.md"
    page.write_text((EXAMPLES.parent / "docs" / "what_it_knows.md").read_text(encoding="utf-8"))
    run(monkeypatch, preset, page)
    text = page.read_text(encoding="utf-8")
    assert (tmp_path / "page.png").read_bytes().startswith(b"\x89PNG") and "(page.png)" in text
    assert str(preset.parent) not in text
    for fill_in in fill_ins.read_fill_ins(SENTENCES):
        assert what_it_knows.escape(fill_in.sentence) in text
    for part in ("| all | 108 |", "| king |", "| TF-IDF of words |", "What the model learned from"):
        assert part in text


def test_a_preset_that_does_not_exist_is_an_error_of_one_line(monkeypatch, tmp_path):
    with pytest.raises(SystemExit, match=r"^what_it_knows.py: .*nowhere"):
        run(monkeypatch, tmp_path / "nowhere", tmp_path / "page.md")

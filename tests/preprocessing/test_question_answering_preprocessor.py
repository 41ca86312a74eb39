"""Windows of contexts equal the original's, and answers come out of them as they went in."""

import json
import pathlib

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.preprocessing import XLNetQuestionAnsweringPreprocessor
from keras_xlnet.preprocessing.answers import GoldAnswer, gold_answers
from keras_xlnet.tokenizers import XLNetTokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SQUAD = json.loads((GOLDEN / "squad.json").read_text(encoding="utf-8"))
PARAGRAPHS = [p for article in SQUAD["data"] for p in article["paragraphs"]]
ROWS = [(q["question"], p["context"], q["answers"]) for p in PARAGRAPHS for q in p["qas"]]
SHARED = pathlib.Path(__file__).parents[3] / "shared" / "data"
# The answer "ﬁne Was" of this window begins after "½". The original's alignment knows no character
# that becomes several, and takes the answer to begin in "½".
WRONG_IN_THE_ORIGINAL = 56


def make(tokenizer, **kwargs):
    config = SQUAD["config"]
    arguments = {
        "sequence_length": config["max_seq_length"],
        "doc_stride": config["doc_stride"],
        "max_question_length": config["max_query_length"],
    }
    return XLNetQuestionAnsweringPreprocessor(tokenizer, **{**arguments, **kwargs})


@pytest.fixture(scope="module")
def tokenizer():
    return XLNetTokenizer(GOLDEN / "spiece.model", remove_accents=True)


@pytest.fixture(scope="module")
def windows(tokenizer):
    return make(tokenizer).encode([row[:2] for row in ROWS])


@pytest.fixture(scope="module")
def released_preprocessor():
    """With the vocabulary of the released models."""
    tokenizer = XLNetTokenizer(SHARED / "xlnet_released" / "spiece.model")
    return XLNetQuestionAnsweringPreprocessor(tokenizer, sequence_length=384)


def labels_of(windows):
    return windows.labels(gold_answers([row[2] for row in ROWS], [row[1] for row in ROWS]))


def test_features_are_the_originals(windows):
    expected = SQUAD["train_features"]
    assert len(windows) == len(expected)
    pairs = {
        "token_ids": [row["input_ids"] for row in expected],
        "segment_ids": [row["segment_ids"] for row in expected],
        "padding_mask": 1 - np.array([row["input_mask"] for row in expected]),
        "paragraph_mask": 1 - np.array([row["p_mask"] for row in expected]),
        "cls_index": [row["cls_index"] for row in expected],
    }
    assert set(pairs) == set(windows.features)
    for key, value in pairs.items():
        np.testing.assert_array_equal(windows.features[key], value)
    questions = [row["example_index"] for row in SQUAD["eval_features"]]
    np.testing.assert_array_equal(windows.row, questions)
    np.testing.assert_array_equal(windows.num_tokens, [row["paragraph_len"] for row in expected])


def test_labels_are_the_originals(windows):
    labels = labels_of(windows)
    names = {
        "start_positions": "start_position",
        "end_positions": "end_position",
        "is_impossible": "is_impossible",
    }
    for key, name in names.items():
        expected = np.array([row[name] for row in SQUAD["train_features"]])
        different = np.flatnonzero(labels[key] != expected)
        assert set(different) <= ({WRONG_IN_THE_ORIGINAL} if key == "start_positions" else set())
    start = labels["start_positions"][WRONG_IN_THE_ORIGINAL]
    end = labels["end_positions"][WRONG_IN_THE_ORIGINAL]
    row = windows.row[WRONG_IN_THE_ORIGINAL]
    a, b = windows.characters(WRONG_IN_THE_ORIGINAL, start, end)
    assert windows.contexts[row][a:b] == ROWS[row][2][0]["text"] == "ﬁne Was"


def test_spans_of_tokens_are_the_originals(windows):
    for window, expected in enumerate(SQUAD["eval_features"]):
        context = windows.contexts[windows.row[window]]
        if "½" in context:
            continue
        for token in range(windows.num_tokens[window]):
            start = expected["tok_start_to_orig_index"][token]
            end = expected["tok_end_to_orig_index"][token] + 1
            a, b = windows.characters(window, token, token)
            # The original takes a first token that is a space alone to be the first letter.
            assert context[a:b] == context[start:end].strip() or (a == b == start == token == 0)


def test_most_context_is_the_originals(windows):
    has_most = windows.has_most_context()
    for window, expected in enumerate(SQUAD["eval_features"]):
        flags = expected["token_is_max_context"]
        np.testing.assert_array_equal(has_most[window, : len(flags)], flags)
        assert not has_most[window, len(flags) :].any()


def test_padding_on_the_left_moves_everything(tokenizer, windows):
    left = make(tokenizer, padding_side="left").encode([row[:2] for row in ROWS])
    shift = SQUAD["config"]["max_seq_length"] - windows.features["padding_mask"].sum(axis=1)
    for key in ("token_ids", "segment_ids", "padding_mask", "paragraph_mask"):
        for window, places in enumerate(shift):
            rolled = np.roll(windows.features[key][window], places)
            np.testing.assert_array_equal(left.features[key][window], rolled)
    for key in ("start_positions", "end_positions"):
        np.testing.assert_array_equal(labels_of(left)[key], labels_of(windows)[key] + shift)
    np.testing.assert_array_equal(left.features["cls_index"], windows.features["cls_index"] + shift)


def check_round_trip(windows, answers):
    """Each answer whose pieces are in a window is cut out of the context again."""
    labels = windows.labels(answers)
    survived = cut = 0
    for window in np.flatnonzero(labels["is_impossible"] == 0):
        row = windows.row[window]
        answer, context = answers[row], windows.contexts[row]
        a, b = windows.characters(
            window, labels["start_positions"][window], labels["end_positions"][window]
        )
        assert a <= answer.start and b >= answer.end
        before, after = context[a : answer.start], context[answer.end : b]
        # Pieces are not divided: "Japan" is a part of the piece "Japanese".
        assert not any(c.isspace() for c in before + after)
        survived += 1
        cut += bool(before or after)
    return survived, cut


words = st.text(st.sampled_from("ab9, é½ﬁ\u0301\n'x"), min_size=1, max_size=8)


@settings(max_examples=60)
@given(st.lists(words, min_size=1, max_size=30), st.data())
def test_every_answer_of_whole_words_comes_back(tokenizer, parts, data):
    # Words of the vocabulary: unknown characters are joined to one piece.
    parts = [f"w{part}w".replace("\n", "") for part in parts]
    context = " ".join(parts)
    first = data.draw(st.integers(0, len(parts) - 1))
    last = data.draw(st.integers(first, len(parts) - 1))
    start = sum(len(part) + 1 for part in parts[:first])
    text = " ".join(parts[first : last + 1])
    windows = make(tokenizer).encode([("which words?", context)])
    survived, _ = check_round_trip(windows, [GoldAnswer(text, start)])
    # Everything is in some window; an answer longer than the windows' overlap can be in none.
    tokens = len(tokenizer(text))
    assert survived or tokens > SQUAD["config"]["doc_stride"] - 2


@pytest.mark.skipif(not (SHARED / "squad").exists(), reason="needs ../shared/data")
@pytest.mark.parametrize("file", ["dev-v2.0-half.json", "dev-v1.1-articles.json"])
def test_round_trip_of_squad(file, released_preprocessor):
    data = json.loads((SHARED / "squad" / file).read_text(encoding="utf-8"))["data"]
    rows = [(q["question"], p["context"], q["answers"]) for a in data for p in a["paragraphs"]
            for q in p["qas"]]  # fmt: skip
    windows = released_preprocessor.encode([row[:2] for row in rows])
    answers = gold_answers([row[2] for row in rows], [row[1] for row in rows])
    survived, cut = check_round_trip(windows, answers)
    answered = sum(answer is not None for answer in answers)
    assert survived >= answered and cut < 0.01 * answered


def test_every_token_is_in_some_window_and_ends_are_reached(tokenizer):
    long = " ".join(f"{number}," for number in range(60))
    windows = make(tokenizer).encode([("a?", long), ("a?", "short")])
    total = len(tokenizer(long))
    seen = set()
    for window in np.flatnonzero(windows.row == 0):
        first, count = windows.first_token[window], windows.num_tokens[window]
        seen |= set(range(first, first + count))
    assert seen == set(range(total))
    last = np.flatnonzero(windows.row == 0)[-1]
    assert windows.first_token[last] + windows.num_tokens[last] == total
    assert windows.first_token[last - 1] + windows.num_tokens[last - 1] < total


def test_saved_and_loaded(tokenizer, tmp_path):
    preprocessor = make(tokenizer, padding_side="left", padding_token_id=5)
    again = XLNetQuestionAnsweringPreprocessor.from_config(preprocessor.get_config())
    preprocessor.save_assets(tmp_path)
    again.load_assets(tmp_path)
    for key in (
        "sequence_length",
        "doc_stride",
        "max_question_length",
        "padding_side",
        "padding_token_id",
    ):
        assert getattr(again, key) == getattr(preprocessor, key)
    rows = [row[:2] for row in ROWS[:3]]
    for key, value in preprocessor.encode(rows).features.items():
        np.testing.assert_array_equal(again.encode(rows).features[key], value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"doc_stride": 0}, "`doc_stride` must be a positive integer. Received: doc_stride=0"),
        ({"max_question_length": 2.5}, "`max_question_length` must be a positive integer"),
        ({"sequence_length": 19}, "`sequence_length` must be above `max_question_length` \\+ 3"),
        ({"padding_side": "top"}, "`padding_side` must be 'left' or 'right'"),
    ],
)
def test_bad_arguments(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(tokenizer, **arguments)


def test_symbolic_inputs_are_refused(tokenizer):
    inputs = {key: keras.Input((), dtype="string") for key in ("question", "context")}
    with pytest.raises(ValueError, match="The number of windows depends on the texts"):
        make(tokenizer)(inputs)

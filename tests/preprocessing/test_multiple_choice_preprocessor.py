"""Packed choices equal the original's, and its mistake is reproduced only where asked for."""

import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_xlnet.preprocessing import XLNetMultipleChoicePreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
RACE = json.loads((GOLDEN / "race.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer():
    return XLNetTokenizer(GOLDEN / "spiece.model", remove_accents=True)


def make(tokenizer, **kwargs):
    arguments = {
        "sequence_length": RACE["max_seq_length"],
        "max_choice_length": RACE["max_qa_length"],
    }
    return XLNetMultipleChoicePreprocessor(tokenizer, **{**arguments, **kwargs})


def equals(features, example):
    expected = {
        "token_ids": example["input_ids"],
        "segment_ids": example["segment_ids"],
        "padding_mask": 1 - np.array(example["input_mask"]),
    }
    return all(np.array_equal(features[key][0], value) for key, value in expected.items())


@pytest.mark.parametrize("row", range(len(RACE["examples"])))
def test_choices_are_the_originals(tokenizer, row):
    example = RACE["examples"][row]
    inputs = {"text": [example["context"]], "choices": [example["qa_list"]]}
    assert equals(make(tokenizer, as_original=True)(inputs), example)
    is_right_there = not example["aliasing_bug_visible"]
    assert equals(make(tokenizer)(inputs), example) is is_right_there


def test_the_mistake_of_the_original_is_seen():
    assert sum(example["aliasing_bug_visible"] for example in RACE["examples"]) > 0


def test_a_batch_has_the_rows_of_each_text(tokenizer):
    inputs = {
        "text": ["the river", "a quiet harbor " * 9, ""],
        "choices": tf.ragged.constant([["is silver", "was"], ["no"], ["a", "b", "c"]]),
    }
    features = make(tokenizer)(inputs)
    assert features["token_ids"].shape == (3, 3, RACE["max_seq_length"])
    counts = features["padding_mask"].numpy().any(axis=-1).sum(axis=1)
    assert counts.tolist() == [2, 1, 3]
    for row, count in enumerate(counts):
        alone = {
            "text": [inputs["text"][row]],
            "choices": [inputs["choices"][row].numpy().tolist()],
        }
        for key, value in make(tokenizer)(alone).items():
            np.testing.assert_array_equal(value[0], features[key][row, :count])


def test_the_text_is_truncated_and_the_end_of_a_choice_kept(tokenizer):
    features = make(tokenizer)(
        {"text": ["a b c d e f g h i j k l m n o p"], "choices": [["9 " * 20]]}
    )
    mask = features["padding_mask"].numpy()[0, 0]
    ids = features["token_ids"].numpy()[0, 0]
    assert mask.all() and ids[-1] == tokenizer.cls_token_id
    first, second = np.flatnonzero(ids == tokenizer.sep_token_id)
    assert second - first - 1 == RACE["max_qa_length"]
    np.testing.assert_array_equal(
        ids[first + 1 : second], tokenizer("9 " * 20).numpy()[-RACE["max_qa_length"] :]
    )
    np.testing.assert_array_equal(ids[:first], tokenizer("a b c d e f g h i j k l m n o p")[:first])


def test_padding_on_the_right(tokenizer):
    inputs = {"text": ["the river"], "choices": [["is silver", "was"]]}
    left, right = (make(tokenizer, padding_side=side)(inputs) for side in ("left", "right"))
    for key in left:
        shift = left["padding_mask"].numpy().sum(axis=-1)
        for choice in range(2):
            rolled = np.roll(left[key][0, choice], shift[0, choice])
            np.testing.assert_array_equal(right[key][0, choice], rolled)


def test_in_a_dataset_and_saved(tokenizer, tmp_path):
    inputs = {"text": ["the river", "x"], "choices": [["is silver", "was"], ["a", "b"]]}
    preprocessor = make(tokenizer, padding_side="right")
    expected = preprocessor(inputs)
    dataset = tf.data.Dataset.from_tensor_slices(inputs).batch(2).map(preprocessor)
    again = XLNetMultipleChoicePreprocessor.from_config(preprocessor.get_config())
    preprocessor.save_assets(tmp_path)
    again.load_assets(tmp_path)
    for features in (next(iter(dataset)), again(inputs)):
        for key, value in expected.items():
            np.testing.assert_array_equal(features[key], value)
    symbolic = preprocessor(
        {"text": keras.Input((), dtype="string"), "choices": keras.Input((2,), dtype="string")}
    )
    assert symbolic["token_ids"].shape == (None, 2, RACE["max_seq_length"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_choice_length": 0}, "`max_choice_length` must be a positive integer"),
        ({"sequence_length": 13}, "`sequence_length` must be above `max_choice_length` \\+ 3"),
    ],
)
def test_bad_arguments(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(tokenizer, **arguments)

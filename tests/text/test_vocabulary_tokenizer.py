"""Words and characters as ids and back, saved and loaded."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.text import VocabularyTokenizer

LINES = ["the cat sat on the mat", "the dog", "the cat"]


def test_the_most_frequent_words_come_first():
    tokenizer = VocabularyTokenizer.train(
        LINES, unknown_token="<unk>", end_token="<eos>", special_tokens=["<eos>"], min_count=2
    )
    assert tokenizer.vocabulary == ["<eos>", "<unk>", "the", "cat"]
    assert tokenizer(["the  dog\tsat", ""]).to_list() == [[2, 1, 1, 0], [0]]
    assert tokenizer("the cat").numpy().tolist() == [2, 3, 0]
    assert tokenizer.detokenize([2, 3, 0]).numpy() == b"the cat"
    small = VocabularyTokenizer.train(LINES, size=3, unknown_token="<unk>")
    assert small.vocabulary == ["<unk>", "the", "cat"]
    lower = VocabularyTokenizer.train(["A a Ä"], lowercase=True)
    assert lower.vocabulary == ["a", "ä"]
    assert lower("Ä A").numpy().tolist() == [1, 0]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
def test_characters_come_back(texts):
    if not any(texts):
        return
    tokenizer = VocabularyTokenizer.train(texts, unit="character")
    ids = tokenizer(texts)
    assert [t.decode() for t in tokenizer.detokenize(ids).numpy()] == texts
    assert ids.row_lengths().numpy().tolist() == [len(text) for text in texts]


def test_saved_and_loaded(tmp_path):
    tokenizer = VocabularyTokenizer.train(
        ["a\nb\\n\tc\r", "\\"], unit="character", end_token="", unknown_token="?"
    )
    model = keras.Sequential([keras.Input((), dtype="string"), tokenizer])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    text = tf.constant(["a\nb\\n\tc\r", "\\xa"])
    assert loaded(text).to_list() == tokenizer(text).to_list()
    (copy,) = loaded.layers
    assert copy.vocabulary == tokenizer.vocabulary
    assert copy.get_config() == tokenizer.get_config()


def test_a_file_of_counts(tmp_path):
    file = tmp_path / "vocab.txt"
    file.write_text("<eos>\nthe 300\n\nof 12\n", encoding="utf-8")
    tokenizer = VocabularyTokenizer(file, end_token="<eos>")
    assert tokenizer.vocabulary == ["<eos>", "the", "of"]
    with pytest.raises(FileNotFoundError):
        VocabularyTokenizer(tmp_path / "none.txt")


def test_in_a_dataset():
    tokenizer = VocabularyTokenizer.train(LINES)
    dataset = tf.data.Dataset.from_tensor_slices(LINES).batch(2).map(tokenizer)
    found = [row for batch in dataset for row in batch.to_list()]
    assert found == [tokenizer(line).numpy().tolist() for line in LINES]


def test_tokens_and_ids():
    tokenizer = VocabularyTokenizer(["a", "b", "?"], unknown_token="?")
    assert [tokenizer.token_to_id(t) for t in ("b", "x")] == [1, 2]
    assert (tokenizer.id_to_token(1), tokenizer.vocabulary_size()) == ("b", 3)
    with pytest.raises(KeyError):
        VocabularyTokenizer(["a"]).token_to_id("x")
    np.testing.assert_array_equal(tokenizer(["a x", "b"]).flat_values, [0, 2, 1])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: VocabularyTokenizer([]), "at least one token"),
        (lambda: VocabularyTokenizer(["a", "a"]), "none twice. Received: 2 tokens, 1 different"),
        (lambda: VocabularyTokenizer(["a"], unit="piece"), "`unit` must be one of"),
        (lambda: VocabularyTokenizer(["a"], end_token="b"), "has no `end_token` 'b'"),
        (lambda: VocabularyTokenizer.train([" "]), "at least one token. Received: none"),
        (lambda: VocabularyTokenizer.train(["a b"], size=1), "`unknown_token` is needed"),
        (lambda: VocabularyTokenizer(None)("a"), "has no vocabulary"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_tokens_that_are_not_there():
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the vocabulary"):
        VocabularyTokenizer(["a"])("a b")

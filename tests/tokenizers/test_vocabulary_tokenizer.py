"""Words and characters as ids and back, saved and loaded."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.tokenizers import VocabularyTokenizer

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


@settings(max_examples=30)
@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1))
def test_characters_come_back(texts):
    if not any(texts):
        return
    tokenizer = VocabularyTokenizer.train(texts, unit="character")
    ids = tokenizer(texts)
    assert [t.decode() for t in tokenizer.detokenize(ids).numpy()] == texts
    assert ids.row_lengths().numpy().tolist() == [len(text) for text in texts]


# What Python and TensorFlow could take for white space or the end of a text, and what they lower in
# other ways.
PLACES = [*" \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"]
OTHERS = [
    *"\0\x1a\u180e\u200b\u200d\u2060\ufeff\\",
    "e\u0301",
    "東京",
    "ΟΔΟΣ",
    "İ",
    "ẞ",
    "Ǆ",
    "\U00010400",
]


@settings(max_examples=40)
@given(
    st.lists(
        st.one_of(st.sampled_from(PLACES + OTHERS), st.text(st.characters(codec="utf-8"))),
        max_size=12,
    ).map("".join),
    st.sampled_from(["word", "character"]),
    st.booleans(),
)
def test_tokens_are_the_same_in_training_in_calls_and_in_graphs(text, unit, lowercase):
    lowered = text.lower() if lowercase else text
    expected = lowered.split() if unit == "word" else [*lowered]
    if not expected:
        return
    tokenizer = VocabularyTokenizer.train([text], unit=unit, lowercase=lowercase)
    assert tokenizer.vocabulary == list(dict.fromkeys(sorted(expected, key=_by_count(expected))))
    for texts in ([text], tf.constant([text]), [text.encode()]):
        (ids,) = tokenizer(texts).to_list()
        assert [tokenizer.id_to_token(id) for id in ids] == expected
    for texts in ([text], [text.encode()]):
        (on_host,) = tokenizer.encode(texts)
        assert [tokenizer.id_to_token(id) for id in on_host] == expected
    (ids,) = tf.function(tokenizer)(tf.constant([text])).to_list()
    assert [tokenizer.id_to_token(id) for id in ids] == expected
    assert VocabularyTokenizer.train(
        [text.encode()], unit=unit, lowercase=lowercase
    ).vocabulary == (tokenizer.vocabulary)


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.sampled_from([*PLACES, *OTHERS, "a"]), max_size=6).map("".join)
        | st.binary(max_size=6),
        max_size=6,
    ),
    st.sampled_from(["word", "character"]),
    st.booleans(),
    st.sampled_from([None, "<eos>"]),
)
def test_the_host_and_the_graph_agree(texts, unit, lowercase, end_token):
    tokenizer = VocabularyTokenizer(
        ["<unk>", "<eos>", "a", "\ufffd", *OTHERS, "i\u0307", "\x85"],
        unit=unit, unknown_token="<unk>", end_token=end_token, lowercase=lowercase,
    )  # fmt: skip
    in_graph, on_host = tokenizer(texts), tokenizer.encode(texts)
    assert [row.tolist() for row in on_host] == in_graph.to_list()
    assert all(row.dtype == np.int32 for row in on_host)
    expected = [text.decode() for text in tokenizer.detokenize(in_graph).numpy()]
    assert tokenizer.decode(on_host) == (expected if texts else "")
    assert [tokenizer.decode(row) for row in on_host] == expected


def _by_count(tokens):
    return lambda token: -tokens.count(token)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("unit", ["word", "character"])
def test_tokens_are_the_same_after_loading(unit, lowercase, tmp_path):
    text = f"x{'x'.join(PLACES)}x {' '.join(OTHERS)}"
    tokenizer = VocabularyTokenizer.train([text], unit=unit, lowercase=lowercase)
    expected = tokenizer([text]).to_list()
    model = keras.Sequential([keras.Input((), dtype="string"), tokenizer])
    model.save(tmp_path / "model.keras")
    (loaded,) = keras.saving.load_model(tmp_path / "model.keras").layers
    assert loaded.vocabulary == tokenizer.vocabulary
    assert loaded([text]).to_list() == expected
    module = tf.Module()
    module.layer = tokenizer
    module.call = tf.function(
        lambda texts: tokenizer(texts).to_tensor(),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, str(tmp_path / "saved"))
    found = tf.saved_model.load(str(tmp_path / "saved")).call(tf.constant([text]))
    assert found.numpy().tolist() == expected


def test_lines_of_a_file_end_at_newlines(tmp_path):
    file = tmp_path / "vocab.txt"
    file.write_bytes("\ufeff<eos>\r\na\u2028b 3\nc\x85 2\nd\0e\t1\n".encode())
    assert VocabularyTokenizer(file).vocabulary == ["<eos>", "a", "c", "d\0e"]


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
    for index in (-1, 3):
        with pytest.raises(ValueError, match=rf"`id` must be in \[0, 3\). Received: id={index}"):
            tokenizer.id_to_token(index)
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
        (lambda: VocabularyTokenizer(None).encode(["a"]), "has no vocabulary"),
        (lambda: VocabularyTokenizer(None).decode([1]), "has no vocabulary"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_surrogates_are_replaced():
    tokenizer = VocabularyTokenizer(["a", "\ufffd"], unit="character")
    assert tokenizer.encode(["a\ud800"])[0].tolist() == [0, 1]


def test_rows_of_ids():
    tokenizer = VocabularyTokenizer(["a", "b", "<eos>"], end_token="<eos>")
    assert tokenizer.decode(np.array([[0, 1, 2], [1, 2, 2]])) == ["a b", "b"]
    assert tokenizer.decode([[], [0]]) == ["", "a"]
    assert tokenizer.decode(np.array([1])) == "b" and tokenizer.decode([]) == ""
    for ids in ([0.5], [[[1]]], [3], [[-1]]):
        with pytest.raises(ValueError, match="`ids` must be"):
            tokenizer.decode(ids)


def test_tokens_that_are_not_there():
    with pytest.raises(ValueError, match="there is no `unknown_token`. Received: 'b'"):
        VocabularyTokenizer(["a"]).encode(["a b"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the vocabulary"):
        VocabularyTokenizer(["a"])("a b")

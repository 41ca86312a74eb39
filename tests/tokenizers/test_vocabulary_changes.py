"""Tokens that are added to a vocabulary, and pieces that are drawn at random."""

import collections

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_xlnet.preprocessing import XLNetTextClassifierPreprocessor
from keras_xlnet.tokenizers import XLNetTokenizer

TOKENS = ["<url>", "@user", "[E1]", "two words", "Zürich"]


@pytest.fixture(scope="module")
def extended(tokenizer):
    return tokenizer.with_tokens(TOKENS)


@pytest.fixture(scope="module")
def processor(extended, tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "extended.model"
    extended.save(path)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def test_added_tokens_have_the_next_ids(tokenizer, extended):
    size = tokenizer.vocabulary_size()
    assert extended.vocabulary_size() == size + len(TOKENS)
    assert [extended.token_to_id(t.replace(" ", "▁")) for t in TOKENS] == [
        *range(size, size + len(TOKENS))
    ]
    assert extended.vocabulary_sha256 != tokenizer.vocabulary_sha256


@settings(max_examples=60)
@given(st.lists(st.sampled_from([*TOKENS, "river", " ", "a", "9,", "é", ".", "E1"]), max_size=12))
def test_ids_are_those_of_sentencepiece(extended, processor, parts):
    text = extended.preprocess("".join(parts)).numpy().decode()
    ids = extended(text).numpy()
    # The original's rule for commas after digits is beyond sentencepiece.
    if "9," not in text:
        assert ids.tolist() == processor.encode(text)
    assert extended.detokenize(ids).numpy().decode().count("<url>") == text.count("<url>")


def test_texts_without_added_tokens_have_the_same_ids(tokenizer, extended):
    texts = ["The quiet river, 9,000,", "", "ran by an old mill"]
    np.testing.assert_array_equal(tokenizer(texts).values, extended(texts).values)


def test_added_tokens_are_saved(extended, tmp_path):
    extended.save_to_preset(tmp_path)
    loaded = XLNetTokenizer.from_preset(tmp_path)
    assert loaded("see <url>").numpy().tolist() == extended("see <url>").numpy().tolist()
    extended.save(tmp_path / "other.model")
    assert XLNetTokenizer(tmp_path / "other.model").vocabulary_sha256 == extended.vocabulary_sha256


@pytest.mark.parametrize(
    "tokens, message",
    [
        ("<url>", "must be a list of strings"),
        (["<cls>"], "must be new. Received: '<cls>'"),
        (["<a>", "<a>"], "must be new. Received: '<a>'"),
        ([" "], "with characters"),
        ([3], "with characters. Received: 3"),
        (["a  b"], "as this tokenizer cleans texts: 'a b'"),
        (["①"], "as this tokenizer cleans texts: '1'. Received: '①'"),
        (["<ﬁ>"], "as this tokenizer cleans texts: '<fi>'"),
        (["e\u0301"], "as this tokenizer cleans texts: 'é'"),
        (["\u200b<x>"], "as this tokenizer cleans texts: '<x>'"),
    ],
)
def test_tokens_that_are_refused(tokens, message, tokenizer):
    with pytest.raises(ValueError, match=message):
        tokenizer.with_tokens(tokens)


def test_capitals_are_refused_by_a_tokenizer_without_them(golden_dir):
    tokenizer = XLNetTokenizer(golden_dir / "spiece.model", lowercase=True)
    with pytest.raises(ValueError, match="cleans texts: '<url>'. Received: '<URL>'"):
        tokenizer.with_tokens(["<URL>"])


@pytest.mark.parametrize("token", ["é", "<ünï>", "日本", "a b", "<☃>", "😀"])
def test_host_and_graph_find_the_same_added_tokens(token, tokenizer):
    extended = tokenizer.with_tokens([token])
    texts = [f"the {token} river", f"the{token}river{token}", token, f"{token}, {token}\u0301"]
    for text, ids in zip(texts, extended.encode(texts), strict=True):
        assert extended(text).numpy().tolist() == ids.tolist()
        assert extended.vocabulary_size() - 1 in ids


# === Sampling ===


def splits(tokenizer, text, alpha, count):
    return [tuple(row) for row in tokenizer([text] * count, sampling_alpha=alpha).to_list()]


def test_samples_are_splits_of_the_same_text(tokenizer):
    text = "the river, the mill, the others, there, then the end"
    drawn = splits(tokenizer, text, 0.05, 50)
    assert len(set(drawn)) > 5
    for row in set(drawn):
        assert tokenizer.detokenize(np.array(row)).numpy().decode() == text


def test_a_large_alpha_draws_the_best_split(tokenizer):
    text = "the river, the mill, the others, there, then the end"
    best = tuple(tokenizer(text).numpy())
    counts = [collections.Counter(splits(tokenizer, text, a, 60))[best] for a in (0.01, 1000.0)]
    assert counts[0] < 30 and counts[1] == 60


def test_sampling_in_a_dataset_outlives_set_random_seed(tokenizer):
    preprocessor = XLNetTextClassifierPreprocessor(tokenizer, sequence_length=48)
    dataset = tf.data.Dataset.from_tensors(["the river, the mill, the others, there"]).repeat(12)
    dataset = dataset.map(lambda x: preprocessor(x, sampling_alpha=0.05))
    keras.utils.set_random_seed(1)
    rows = {row["token_ids"].tobytes() for row in dataset.as_numpy_iterator()}
    assert len(rows) > 3


def test_the_rule_for_commas_after_digits_is_kept(golden_dir, tokenizer):
    comma = tokenizer.token_to_id(",")
    for row in splits(tokenizer, "9,9,9,", 0.1, 20):
        assert row.count(comma) == 3


@pytest.mark.parametrize("alpha", [0, -1.0, True, "0.1"])
def test_alpha_is_checked(alpha, tokenizer):
    with pytest.raises(ValueError, match="`sampling_alpha` must be a number above 0"):
        tokenizer(["a"], sampling_alpha=alpha)

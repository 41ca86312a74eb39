"""WordPiece vocabularies: as BERT splits texts, and as a SentencePiece model does."""

import unicodedata

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from keras_xlnet.tokenizers import WordPieceVocabulary, XLNetTokenizer
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS
from keras_xlnet.tokenizers.sentencepiece_proto import SentencePieceProto
from keras_xlnet.tokenizers.wordpiece_model import normalization_rules
from tests.examples import spam_messages

SPECIAL = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~£\u2026中"
SUFFIXES = "s ed ing er ness ly ful able tion al ist ism est ment ou un ig at en th".split()


@pytest.fixture(scope="module")
def messages():
    return spam_messages()


@pytest.fixture(scope="module")
def vocabulary(messages):
    """A small vocabulary: the frequent words of the messages, suffixes and characters."""
    plain = WordPieceVocabulary([*SPECIAL, *LETTERS, *PUNCTUATION])
    counts = {}
    for message in messages:
        for word in plain.words(message):
            counts[word] = counts.get(word, 0) + 1
    words = sorted(word for word, count in counts.items() if count > 2 and word.isalpha())
    characters = [*LETTERS, *PUNCTUATION]
    continued = [f"##{part}" for part in [*characters, *SUFFIXES]]
    return WordPieceVocabulary(dict.fromkeys([*SPECIAL, *characters, *words, *continued]))


@pytest.fixture(scope="module")
def tokenizer(vocabulary):
    return XLNetTokenizer(vocabulary.to_sentencepiece())


def pieces_of(tokenizer, text):
    return [tokenizer.id_to_token(index) for index in tokenizer.encode([text])[0]]


def tokens_of(tokenizer, text):
    """The pieces of a text as tokens of WordPiece."""
    pieces = pieces_of(tokenizer, text)
    return [p[1:] if p.startswith("\u2581") and len(p) > 1 else f"##{p}" for p in pieces]


def split_slowly(vocabulary, word):
    """The longest match from the left, in the obvious way."""
    known = set(vocabulary.tokens) - {"[unused0]"}
    starts = [word[:end] for end in range(len(word), 0, -1)]
    first = next((start for start in starts if start in known), None)
    if first is None:
        return None
    tokens, rest = [first], word[len(first) :]
    while rest:
        ends = range(len(rest), 0, -1)
        token = next((rest[:end] for end in ends if f"##{rest[:end]}" in known), None)
        if token is None:
            return None
        tokens.append(f"##{token}")
        rest = rest[len(token) :]
    return tokens


# === As BERT ===


@pytest.fixture(scope="module")
def reference(vocabulary):
    """BERT's own tokenizer, of transformers, for a vocabulary and whether it is uncased."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

    def make(lowercase, strip_accents=None):
        ids = {token: index for index, token in enumerate(vocabulary.tokens)}
        model = tokenizers.models.WordPiece(ids, unk_token="[UNK]")
        found = tokenizers.Tokenizer(model)
        found.normalizer = tokenizers.normalizers.BertNormalizer(
            lowercase=lowercase, strip_accents=strip_accents
        )
        found.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        return lambda text: found.encode(text, add_special_tokens=False).tokens

    return make


TEXTS = [
    "The TURTLE, swims: 12,345 (metres)!",
    "  naïve café \u00c5ngstr\u00f6m\t£5…\u00a0a\u200bb \x07c",
    "中文 and a中b",
    "don't `` quote '' <eop> [SEP]",
    "x" * 101,
    "",
    "\u0130stanbul \u1e9e \u03a3\u03a3",
]


@pytest.mark.parametrize("lowercase, strip", [(True, None), (False, None), (True, False)])
def test_splits_are_those_of_bert(lowercase, strip, vocabulary, reference, messages):
    ours = WordPieceVocabulary(vocabulary.tokens, lowercase, strip)
    theirs = reference(lowercase, strip)
    for text in [*TEXTS, *messages]:
        assert ours.split(text) == theirs(text), text


@hypothesis.given(st.text(st.sampled_from("abcXyzÉñ .,-'\u0301中\t19"), max_size=40))
@hypothesis.settings(max_examples=200)
def test_splits_are_those_of_bert_for_any_text(vocabulary, reference, text):
    assert vocabulary.split(text) == reference(True)(text)


# === As a SentencePiece model ===


def test_special_pieces_and_ids(vocabulary, tokenizer):
    pieces = [tokenizer.id_to_token(index) for index in range(tokenizer.vocabulary_size())]
    assert tuple(pieces[:9]) == SPECIAL_TOKENS
    assert pieces[9:] == [*vocabulary.pieces]
    for piece, index in vocabulary.pieces.items():
        token = vocabulary.tokens[index]
        expected = {token.removeprefix("##"), f"\u2581{token}"}
        assert piece in expected or token == "[UNK]"
    assert not any("unused" in piece or "[CLS]" in piece for piece in pieces)


def agreement(vocabulary, tokenizer, texts):
    same = total = 0
    for text in texts:
        expected, found = vocabulary.split(text), tokens_of(tokenizer, text)
        for word in set(expected):
            same += min(expected.count(word), found.count(word))
        total += len(expected)
    return same / total


def test_real_messages(vocabulary, tokenizer, messages):
    # The scores have not seen these texts.
    assert agreement(vocabulary, tokenizer, messages) > 0.99


def test_scores_are_fitted_to_texts(vocabulary, tokenizer, messages):
    fitted = XLNetTokenizer(vocabulary.to_sentencepiece(messages))
    before, after = (agreement(vocabulary, t, messages) for t in (tokenizer, fitted))
    assert after >= before
    assert after > 0.995


def test_words_that_are_put_together(vocabulary, tokenizer, rng):
    starts = [t for t in vocabulary.tokens if t.isalpha() and t.isascii()]
    ends = [
        t[2:] for t in vocabulary.tokens if t.startswith("##") and t[2:] in SUFFIXES + [*LETTERS]
    ]
    words = []
    for _ in range(3000):
        parts = [rng.choice(starts), *rng.choice(ends, rng.integers(0, 4))]
        words.append("".join(parts))
    right = [split_slowly(vocabulary, word) for word in words]
    found = [tokens_of(tokenizer, word) for word in words]
    assert np.mean([a == b for a, b in zip(right, found, strict=True)]) > 0.97
    assert right == [vocabulary.split(word) for word in words]


def test_the_same_model_each_time(vocabulary):
    assert vocabulary.to_sentencepiece(["one text"]) == vocabulary.to_sentencepiece(["one text"])


@hypothesis.given(st.text(st.sampled_from(LETTERS + PUNCTUATION + "ÀÉñü  \u0301"), max_size=50))
@hypothesis.settings(max_examples=200)
def test_decoded_texts_are_cleaned_ones(vocabulary, tokenizer, text):
    # The cleaning that every XLNetTokenizer does: LaTeX quotes.
    text = text.replace("``", '"').replace("''", '"')
    (ids,) = tokenizer.encode([text])
    assert tokenizer.decode(ids).split() == vocabulary.words(text)


@hypothesis.given(st.text(max_size=30))
@hypothesis.settings(max_examples=100)
def test_any_text(tokenizer, text):
    (ids,), (offsets,) = tokenizer.encode([text], return_offsets=True)
    assert len(ids) == len(offsets)


def test_the_graph_has_the_same_ids_and_offsets(tokenizer, messages):
    texts = [*TEXTS, *messages[:500], "\U0001f600 a \U0001f600b"]
    ids, offsets = tokenizer.encode(texts, return_offsets=True)
    graph_ids, graph_offsets = tokenizer(texts, return_offsets=True)
    assert [row.tolist() for row in ids] == graph_ids.to_list()
    assert [row[:, 0].tolist() for row in offsets] == graph_offsets.start.to_list()
    assert [row[:, 1].tolist() for row in offsets] == graph_offsets.end.to_list()


def test_offsets(tokenizer):
    text = "Café,THE"
    _, (offsets,) = tokenizer.encode([text], return_offsets=True)
    parts = [text[start:end] for start, end in offsets]
    assert "".join(parts) == text and parts[-1] == "THE" and parts[-2] == ","


@pytest.mark.parametrize("text", ["a!", "!", "中", "(a)", "a...!"])
def test_offsets_of_punctuation_at_the_end(text, tokenizer):
    ids, (offsets,) = tokenizer.encode([text], return_offsets=True)
    parts = [text[start:end] for start, end in offsets]
    assert "".join(parts) == text.replace(" ", "") and all(parts)
    graph = tokenizer([text], return_offsets=True)[1]
    assert np.transpose([graph.start[0], graph.end[0]]).tolist() == offsets.tolist()


def test_cased(vocabulary):
    cased = WordPieceVocabulary([*vocabulary.tokens, "Turtle", "É"], lowercase=False)
    tokenizer = XLNetTokenizer(cased.to_sentencepiece())
    assert pieces_of(tokenizer, "Turtle, É") == ["\u2581Turtle", "\u2581,", "\u2581É"]


@pytest.mark.parametrize("strip", [True, False])
def test_hangul(strip):
    syllable = "각"
    letters = unicodedata.normalize("NFD", syllable)
    tokens = dict.fromkeys([*SPECIAL, syllable, *letters, *(f"##{part}" for part in letters)])
    vocabulary = WordPieceVocabulary(tokens, strip_accents=strip)
    found = "".join(token.removeprefix("##") for token in vocabulary.split(syllable))
    assert found == (letters if strip else syllable)


def test_rules_are_those_that_are_needed(vocabulary):
    characters = set("abc ,e中\u2581")
    rules = normalization_rules(vocabulary.replacement, characters)
    assert rules["É"] == "e" and rules[","] == " , " and rules["\u0301"] == ""
    assert rules["\u00a0"] == " "
    assert "Ж" not in rules and "D" not in rules and "a" not in rules
    assert all(unicodedata.category(character) != "Co" for character in rules)


def test_tokens_that_are_left_out(vocabulary, messages):
    counts = vocabulary.counts(messages)
    small = WordPieceVocabulary(vocabulary.tokens, keep=lambda token: counts[token] > 20)
    assert "call" in [piece[1:] for piece in small.pieces]
    assert len(small.pieces) < 0.6 * len(vocabulary.pieces)
    # The characters of kept tokens stay, so no word of them becomes unknown.
    assert "[UNK]" not in small.split("textual turtles")
    one = WordPieceVocabulary(vocabulary.tokens, keep=["call"])
    assert one.split("callcall") == ["call", "##c", "##a", "##l", "##l"]
    assert one.split("zoo") == ["[UNK]"]


def test_tokens_that_cannot_occur():
    tokens = [*SPECIAL, "", "##", "a\u2581b", "##<unk>", "<unk>", "a", "a"]
    vocabulary = WordPieceVocabulary(tokens)
    assert set(vocabulary.pieces) == {"\u2581##", "\u2581a", "a", "#", "\u2581"}
    assert vocabulary.encode("a") == [12]
    tokenizer = XLNetTokenizer(vocabulary.to_sentencepiece())
    assert pieces_of(tokenizer, "A a") == ["\u2581a", "\u2581a"]


def test_a_vocabulary_without_special_tokens():
    with pytest.raises(ValueError, match=r"`tokens` must contain .*Missing: \['\[CLS\]'"):
        WordPieceVocabulary(["[PAD]", "[UNK]", "[SEP]", "[MASK]"])


def test_the_model_can_be_parsed(vocabulary):
    proto = vocabulary.to_sentencepiece()
    model = SentencePieceProto.parse(proto)
    assert model.model_type == "UNIGRAM" and len(proto) < 200_000

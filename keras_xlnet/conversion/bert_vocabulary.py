"""BERT's vocabulary and an XLNet's: their ids, and texts to fit the positions on."""

import numpy as np

from keras_xlnet.tokenizers import WordPieceVocabulary, XLNetTokenizer
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS

# XLNet's special tokens and BERT's. BERT has one token for every kind of end.
_COUNTERPARTS = {"<unk>": "[UNK]", "<cls>": "[CLS]", "<pad>": "[PAD]", "<mask>": "[MASK]"}
_END = "[SEP]"
_NUM_TEXTS = 100


def bert_ids(vocabulary: WordPieceVocabulary) -> np.ndarray:
    """Returns an int array `(vocabulary_size,)`, BERT's id of each id of the XLNet."""
    special = [vocabulary.id_of(_COUNTERPARTS.get(token, _END)) for token in SPECIAL_TOKENS]
    return np.array([*special, *vocabulary.pieces.values()])


def tokens_that_differ(
    tokenizer: XLNetTokenizer, vocabulary: WordPieceVocabulary, texts: list[str]
) -> float:
    """Returns the fraction of BERT's tokens of texts that a tokenizer does not find.

    Args:
        tokenizer: An `XLNetTokenizer` that `vocabulary` was converted to.
        vocabulary: A `WordPieceVocabulary`.
        texts: List of strings.
    """
    token_ids = bert_ids(vocabulary)
    missing = total = 0
    for text, found in zip(texts, tokenizer.encode(texts), strict=True):
        expected = vocabulary.encode(text)
        total += len(expected)
        counts = np.bincount(expected, minlength=len(vocabulary.tokens))
        counts -= np.bincount(token_ids[found], minlength=len(vocabulary.tokens))
        missing += int(np.maximum(counts, 0).sum())
    return missing / max(total, 1)


def random_texts(vocabulary: WordPieceVocabulary) -> list[str]:
    """Returns texts of random words of a vocabulary, the same ones each time."""
    words = [t for t in vocabulary.tokens if t.isalpha()] or ["[UNK]"]
    # The characters come first, in the order of Unicode.
    words = [word for word in words if len(word) > 1] or words
    return [" ".join(words[i] for i in row) + "." for row in random_rows(len(words))]


def random_rows(num_words: int) -> list[np.ndarray]:
    """Returns texts as arrays of random numbers below `num_words`, the same ones each time.

    Vocabularies are ordered by frequency, so the words are drawn by Zipf's law.
    """
    rng = np.random.default_rng(0)
    chance = 1 / (10 + np.arange(num_words))
    lengths = rng.integers(8, 64, _NUM_TEXTS)
    drawn = rng.choice(num_words, lengths.sum(), p=chance / chance.sum())
    return np.split(drawn, np.cumsum(lengths)[:-1])

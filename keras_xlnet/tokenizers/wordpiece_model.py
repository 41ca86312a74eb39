"""Makes a SentencePiece model of a WordPiece vocabulary.

WordPiece takes the longest match from the left, SentencePiece the split whose pieces have the
largest sum of scores. Scores that grow with the square of the length of the first piece of a word
give the same split of most words. They are then fitted by the structured perceptron: where a word
is split in another way, the scores of the right pieces grow, and those of the wrong ones fall. The
result is the mean over the rounds, which generalizes better than the last one.

Source: Collins 2002, "Discriminative Training Methods for Hidden Markov Models"; Kudo 2018,
"Subword Regularization", for the unigram model.
"""

import collections
import io
import itertools
import os
import sys
import tempfile
import unicodedata
from typing import Any

import numpy as np

from keras_xlnet.lazy_modules import sentencepiece
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS
from keras_xlnet.tokenizers.sentencepiece_proto import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Piece,
    SentencePieceProto,
)

_WORD_START = "\u2581"
_ROUNDS, _STEP = 16, 0.5
_NUM_WORDS = 60_000
# Scores of `▁` and of characters that are no tokens: below all others.
_LOWEST = -30.0


def sentencepiece_proto(vocabulary: Any, words: list[str]) -> bytes:
    """Returns the bytes of the model that `WordPieceVocabulary.to_sentencepiece` describes.

    Args:
        vocabulary: A `WordPieceVocabulary`.
        words: List of words of texts, cleaned.
    """
    pieces = [*vocabulary.pieces]
    unknown = vocabulary.id_of("[UNK]")
    is_token = np.array([vocabulary.pieces[piece] != unknown for piece in pieces])
    words = [*pieces_of_words(pieces), *made_up_words(pieces, _NUM_WORDS), *words]
    scores = fit_scores(pieces, is_token, words, vocabulary.word_pieces)
    rules = normalization_rules(vocabulary.replacement, set("".join(pieces)))
    return compile_rules(rules).with_pieces(_with_special(pieces, scores)).serialize()


def _with_special(pieces, scores):
    types = [UNKNOWN, *[CONTROL] * (len(SPECIAL_TOKENS) - 2), USER_DEFINED]
    special = [Piece(piece, 0.0, type) for piece, type in zip(SPECIAL_TOKENS, types, strict=True)]
    return special + [Piece(p, float(s), NORMAL) for p, s in zip(pieces, scores, strict=True)]


# === Words to fit the scores to ===


def pieces_of_words(pieces: list[str]) -> list[str]:
    """Returns the words that are one piece."""
    return [piece[1:] for piece in pieces if piece[0] == _WORD_START and len(piece) > 1]


def made_up_words(pieces: list[str], number: int) -> list[str]:
    """Returns words that are put together from pieces, the same ones each time.

    Args:
        pieces: List of strings.
        number: Int, how many words, of 2 to 5 pieces.
    """
    starts = pieces_of_words(pieces)
    others = [piece for piece in pieces if piece[0] != _WORD_START]
    if not starts or not others:
        return []
    rng = np.random.default_rng(0)
    # Rare words are split into short pieces more often than pieces are short.
    chance = [1 / len(piece) ** 2 for piece in others]
    chance_of_start = [1 / len(piece) for piece in starts]
    first = _draw(rng, starts, chance_of_start, number)
    counts = rng.integers(1, 5, number)
    rest = iter(_draw(rng, others, chance, counts.sum()))
    return [
        start + "".join(itertools.islice(rest, int(count)))
        for start, count in zip(first, counts, strict=True)
    ]


def _draw(rng, values, chance, number):
    chance = np.array(chance) / np.sum(chance)
    return [values[i] for i in rng.choice(len(values), number, p=chance)]


# === Scores ===


def fit_scores(pieces: list[str], is_token: Any, words: list[str], split: Any) -> np.ndarray:
    """Returns a score for each piece, so that the best split of most words is the right one.

    Args:
        pieces: List of strings.
        is_token: Bool array `(len(pieces),)`, `False` for pieces that the vocabulary does not have.
        words: List of strings.
        split: Function from a word to its pieces, `[]` for a word to skip.

    Returns:
        Float array `(len(pieces),)`.
    """
    index_of = {piece: index for index, piece in enumerate(pieces)}
    right = {word: [index_of[piece] for piece in split(word)] for word in dict.fromkeys(words)}
    words = [word for word, split in right.items() if split]
    targets = [right[word] for word in words]
    scores = np.where(is_token, [*map(_first_score, pieces)], _LOWEST)
    total = np.zeros(len(pieces))
    for turn in range(_ROUNDS):
        step = _STEP * (1 - turn / _ROUNDS)
        change: collections.Counter[int] = collections.Counter()
        for found, target in zip(_best_splits(pieces, scores, words), targets, strict=True):
            if found != target:
                change.update(target)
                change.subtract(found)
        for index, count in change.items():
            # One step however many words have the piece: frequent pieces would jump.
            scores[index] += step * np.sign(count) * min(abs(count), 3) / 3
        total += scores
    return total / _ROUNDS


def _first_score(piece):
    if piece[0] == _WORD_START:
        return -10 + 0.1 * (len(piece) - 1) ** 2
    return -10 + 0.001 * len(piece) ** 2


def _best_splits(pieces, scores, words):
    """Returns lists of indices of pieces, the best split of each word."""
    proto = SentencePieceProto.unigram(_with_special(pieces, scores), b"").serialize()
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    first = len(SPECIAL_TOKENS)
    return [[i - first for i in row] for row in processor.encode(words, num_threads=1)]


# === Normalization ===


def normalization_rules(replacement: Any, characters: set[str]) -> dict[str, str]:
    """Returns what replaces each character that does not stay as it is.

    Args:
        replacement: Function from a character to what replaces it.
        characters: The characters of pieces. Rules that give others are left out: these characters
            are unknown with a rule and without it.
    """
    rules = {}
    for code in range(1, sys.maxunicode + 1):
        character = chr(code)
        # Surrogates, private characters, and those that Unicode has not assigned.
        if unicodedata.category(character) in ("Cs", "Co", "Cn"):
            continue
        result = replacement(character)
        if result != character and characters.issuperset(result.replace(" ", "")):
            rules[character] = result
    return rules


def compile_rules(rules: dict[str, str]) -> SentencePieceProto:
    """Returns a SentencePiece model with rules of normalization; its pieces are of no use.

    Only the trainer of SentencePiece compiles rules.
    """
    lines = [f"{_codes(source)}\t{_codes(target)}\n" for source, target in rules.items()]
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "rules.tsv")
        with open(file, "w", encoding="utf-8") as stream:
            stream.writelines(lines)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f g h"] * 20),
            model_writer=model,
            model_type="unigram",
            vocab_size=20,
            hard_vocab_limit=False,
            normalization_rule_tsv=file,
            num_threads=1,
            minloglevel=2,
        )
    return SentencePieceProto.parse(model.getvalue())


def _codes(text):
    return " ".join(f"{ord(character):X}" for character in text)

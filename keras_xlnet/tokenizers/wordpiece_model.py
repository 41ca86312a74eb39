"""Makes a SentencePiece model from a WordPiece vocabulary: pieces, scores and normalization.

WordPiece takes the longest match from the left. A unigram model takes the split whose pieces have
the largest sum of scores. Scores that grow with the square of the length of the first piece of a
word give the same split for most words. The averaged perceptron then fits the scores: if a word is
split in another way, the scores of the right pieces rise, and the scores of the wrong ones fall.
The result is the mean over many steps, which generalizes better than the last scores.

Source: Collins 2002, "Discriminative Training Methods for Hidden Markov Models"; Kudo 2018,
"Subword Regularization", for the unigram model.
"""

import io
import os
import random
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

from keras_xlnet.lazy_modules import sentencepiece
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS
from keras_xlnet.tokenizers.sentencepiece_proto import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    Piece,
    SentencePieceProto,
)

# The score of `▁` and of characters that are not tokens: as low as four pieces together. It is not
# lower, so that `▁` and an added token score higher than the pieces of the token.
_LOWEST = -45.0
_WORD_START = "\u2581"
# Rounds and first step of the perceptron, on all words and then on the words of texts.
_ALL, _OF_TEXTS = (6, 1.0), (8, 0.3)
_NUM_WORDS, _NUM_NUMBERS = 120_000, 10_000
_VOWELS = "aeiou"


def sentencepiece_proto(vocabulary: Any, words: list[str]) -> bytes:
    """Returns the bytes of the model that `WordPieceVocabulary.to_sentencepiece` describes.

    Args:
        vocabulary: A `WordPieceVocabulary`.
        words: List of words of texts, cleaned.
    """
    pieces = [*vocabulary.pieces]
    unknown = vocabulary.id_of("[UNK]")
    others = [piece for piece, index in vocabulary.pieces.items() if index == unknown]
    scores = fit_scores(pieces, others, words, vocabulary.word_pieces)
    rules = normalization_rules(vocabulary.replacement, set("".join(pieces)))
    model = SentencePieceProto.unigram(_with_special(pieces, scores), compile_rules(rules))
    return model.serialize()


def _with_special(pieces, scores):
    # Not even `<eop>` is user-defined: `tensorflow_text` normalizes such symbols, and splits them.
    unknown, *control = SPECIAL_TOKENS
    special = [Piece(unknown, type=UNKNOWN), *(Piece(piece, type=CONTROL) for piece in control)]
    return special + [Piece(p, float(s), NORMAL) for p, s in zip(pieces, scores, strict=True)]


# === Scores ===


def fit_scores(
    pieces: list[str],
    lowest: Iterable[str],
    words: Iterable[str],
    split: Callable[[str], list[str]],
) -> list[float]:
    """Returns a score for each piece, so that the best split of most words is the right one.

    Args:
        pieces: List of strings. Those that begin a word begin with `▁`.
        lowest: Strings, the pieces that are not tokens.
        words: Strings. The scores are also fitted to words that are assembled from the pieces.
        split: Function from a word to its pieces, `[]` for a word to skip.

    Returns:
        List of floats.
    """
    index_of = {piece: index for index, piece in enumerate(pieces)}
    longest = max(map(len, pieces))

    def examples_of(words):
        for word in dict.fromkeys(words):
            right = [index_of[piece] for piece in split(word)]
            lattice = _lattice(word, index_of, longest)
            # A word with only one split gives no information.
            if right and sum(map(len, lattice)) > len(right):
                yield lattice, right

    scores = [*map(_first_score, pieces)]
    for piece in lowest:
        scores[index_of[piece]] = _LOWEST
    of_texts = [*examples_of(words)]
    made_up = examples_of([*_made_up_words(pieces), *_numbers()])
    scores = _averaged_perceptron([*made_up, *of_texts], scores, *_ALL)
    return _averaged_perceptron(of_texts, scores, *_OF_TEXTS) if of_texts else scores


def _first_score(piece):
    if piece[0] == _WORD_START:
        return -10 + 0.3 * (len(piece) - 1) ** 2
    return -10 + 0.003 * len(piece) ** 2


def _averaged_perceptron(examples, scores, num_rounds, first_step):
    """Returns the mean of the scores over the second half of the rounds."""
    rng, scores = random.Random(0), [*scores]
    # The sum of the scores over all steps is the sum of all changes times the steps after each.
    late, place = [0.0] * len(scores), 1
    for turn in range(num_rounds):
        step = first_step * (1 - turn / num_rounds)
        if turn == num_rounds // 2:
            late, place = [0.0] * len(scores), 1
        for lattice, right in rng.sample(examples, len(examples)):
            found = _best_split(lattice, scores)
            if found != right:
                for indices, change in ((right, step), (found, -step)):
                    for index in indices:
                        scores[index] += change
                        late[index] += place * change
            place += 1
    return [score - total / place for score, total in zip(scores, late, strict=True)]


def _lattice(word, index_of, longest):
    """The pieces that end at each place of a word: where they begin, and their indices."""
    rows: list[list[tuple[int, int]]] = [[] for _ in word]
    for begin in range(len(word)):
        prefix = "" if begin else _WORD_START
        for end in range(begin + 1, min(len(word), begin + longest) + 1):
            index = index_of.get(prefix + word[begin:end])
            if index is not None:
                rows[end - 1].append((begin, index))
    return rows


def _best_split(lattice, scores):
    """The indices of the pieces of the split with the largest sum of scores (Viterbi)."""
    best, last = [0.0], []
    for row in lattice:
        top, choice = -float("inf"), (-1, -1)
        for begin, index in row:
            score = best[begin] + scores[index]
            if score > top:
                top, choice = score, (begin, index)
        best.append(top)
        last.append(choice)
    found, end = [], len(lattice)
    while end:
        end, index = last[end - 1]
        found.append(index)
    return found[::-1]


# === Words that the scores are fitted to ===


def _made_up_words(pieces):
    """Words that are one piece, and misspelled, shortened and joined words.

    Rare words are the ones that are split, and real rare words look like these.
    """
    whole = [piece[1:] for piece in pieces if piece[0] == _WORD_START and len(piece) > 1]
    words = [word for word in whole if word.isalpha() and len(word) > 2]
    endings = [piece for piece in pieces if piece[0] != _WORD_START and piece.isalpha()]
    if not words or not endings:
        return whole
    rng = random.Random(0)
    letters = "".join(words)
    # Vocabularies are ordered by frequency.
    chances = [(100 + place) ** -0.5 for place in range(len(words))]
    made = []
    for word, other in zip(
        *(rng.choices(words, chances, k=_NUM_WORDS) for _ in range(2)), strict=True
    ):
        place, letter = rng.randrange(len(word)), rng.choice(letters)
        changes = (
            word[:place] + word[place + 1 :],
            word[:place] + letter + word[place:],
            word[:place] + letter + word[place + 1 :],
            word[: max(place, 1)] + other[rng.randrange(len(other)) :],
            word + rng.choice(endings[:600]),
            word[0] + "".join(c for c in word[1:] if c not in _VOWELS),
        )
        made.append(rng.choice(changes))
    return [*whole, *made]


def _numbers():
    """All numbers of up to four digits, and longer ones."""
    rng = random.Random(0)
    numbers = [str(number).zfill(size) for size in range(1, 5) for number in range(10**size)]
    for _ in range(_NUM_NUMBERS):
        # Numbers that people write have many zeros.
        digits = rng.choices("0123456789", [4, *[1] * 9], k=rng.randint(5, 12))
        numbers.append("".join(digits))
    return numbers


# === Normalization ===


def normalization_rules(replacement: Any, characters: set[str]) -> dict[str, str]:
    """Returns what replaces each character that does not stay as it is.

    Args:
        replacement: Function from a character to what replaces it.
        characters: The characters of pieces. Rules that produce other characters are left out,
            because those are unknown anyway.
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


def compile_rules(rules: dict[str, str]) -> bytes:
    """Returns normalization rules in the form of a SentencePiece model.

    Only the trainer of SentencePiece compiles rules, so a model is trained and discarded.
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
    return SentencePieceProto.parse(model.getvalue()).charsmap


def _codes(text):
    return " ".join(f"{ord(character):X}" for character in text)

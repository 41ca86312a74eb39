"""Scores of a unigram model that split words as WordPiece does.

WordPiece takes the longest match from the left, a unigram model the split whose pieces have the
largest sum of scores. Scores that grow with the square of the length of the first piece of a word
give the same split of most words. They are then fitted by the averaged perceptron: where a word is
split in another way, the scores of the right pieces grow, and those of the wrong ones fall. The
result is the mean over all steps, which generalizes better than the last scores.

Source: Collins 2002, "Discriminative Training Methods for Hidden Markov Models"; Kudo 2018,
"Subword Regularization", for the unigram model.
"""

import random
from collections.abc import Callable, Iterable

import numpy as np

_WORD_START = "\u2581"
_ROUNDS, _STEP = 6, 0.3
_NUM_WORDS, _NUM_NUMBERS = 120_000, 10_000
_VOWELS = "aeiou"


def fit_scores(
    pieces: list[str],
    lowest: Iterable[str],
    words: Iterable[str],
    split: Callable[[str], list[str]],
    lowest_score: float,
) -> np.ndarray:
    """Returns a score for each piece, so that the best split of most words is the right one.

    Args:
        pieces: List of strings. Those that begin a word begin with `▁`.
        lowest: Strings, the pieces that get `lowest_score`.
        words: Strings, besides which scores are fitted to words that are made up of the pieces.
        split: Function from a word to its pieces, `[]` for a word to skip.
        lowest_score: Float, below all other scores.

    Returns:
        Float array `(len(pieces),)`.
    """
    index_of = {piece: index for index, piece in enumerate(pieces)}
    longest = max(map(len, pieces))
    words = [*_made_up_words(pieces), *_numbers(), *words]
    examples = []
    for word in dict.fromkeys(words):
        right = [index_of[piece] for piece in split(word)]
        lattice = _lattice(word, index_of, longest)
        # Nothing to choose where there is one split.
        if right and sum(map(len, lattice)) > len(right):
            examples.append((lattice, right))
    scores = [*map(_first_score, pieces)]
    for piece in lowest:
        scores[index_of[piece]] = lowest_score
    return _averaged_perceptron(examples, scores)


def _first_score(piece):
    if piece[0] == _WORD_START:
        return -10 + 0.3 * (len(piece) - 1) ** 2
    return -10 + 0.003 * len(piece) ** 2


def _averaged_perceptron(examples, scores):
    rng, place = random.Random(0), 1
    # The sum over all steps of the scores is that of the changes, each times the steps after it.
    late = [0.0] * len(scores)
    for turn in range(_ROUNDS):
        step = _STEP * (1 - turn / _ROUNDS)
        for lattice, right in rng.sample(examples, len(examples)):
            found = _best_split(lattice, scores)
            if found != right:
                for indices, change in ((right, step), (found, -step)):
                    for index in indices:
                        scores[index] += change
                        late[index] += place * change
            place += 1
    return np.array(scores) - np.array(late) / place


def _lattice(word, index_of, longest):
    """For each place in a word the pieces that end there: where they begin, and their indices."""
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
        top, choice = -np.inf, (-1, -1)
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


# === Words ===


def _made_up_words(pieces):
    """Words that are one piece, and misspelled, shortened and put together ones.

    Rare words are what is split, and real ones look like this.
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

"""Sentences of words as arrays, and the tags and entities that a model finds in them.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from keras_xlnet.preprocessing.encoded import Encoded
from keras_xlnet.preprocessing.packing import (
    SEGMENT_A,
    Layout,
    Rows,
    as_int32,
    as_rows,
    concat,
    gather,
    indices,
    pack,
    pair_parts,
    plan_windows,
    ranges,
    repeated,
    starts,
    take,
    window_of_most_context,
)
from keras_xlnet.preprocessing.tags import Entity, decode_tags, detect_scheme, tag_spans
from keras_xlnet.preprocessing.words import is_first_piece, sentence_words
from keras_xlnet.results import Result, color_of, marked_html
from keras_xlnet.tokenizers.text_columns import as_texts, plain_columns

_NO_WORD = -1
_UNKNOWN_ID = 0
# <sep> and <cls>.
_NUM_SPECIAL = 2


@dataclasses.dataclass(frozen=True, repr=False)
class EncodedWords(Encoded):
    """Sentences as arrays, and the word that each token belongs to.

    Args:
        features, row: As in `Encoded`. `row` is `None` if no sentence has several windows.
        columns: Dict of `words`, a list of lists of strings, and, if sentences were strings,
            `text`, a list of these.
        word_index: Int array `(windows, length)`, the index of each token's word in its
            sentence; -1 for padding, `<sep>`, `<cls>` and words that have more context in another
            window.
        places: List with the positions of words in each sentence, `(start, end)` in
            characters. `None` for lists of words.
    """

    _: dataclasses.KW_ONLY
    word_index: np.ndarray
    places: list[list[tuple[int, int]]] | None = None

    @property
    def sentence(self) -> np.ndarray:
        """Int array `(windows,)`, the sentence of each window."""
        return np.arange(len(self)) if self.row is None else self.row


class Entities(list[Entity]):
    """The entities of a sentence: a list of `Entity`. Notebooks show the sentence with them.

    Args:
        found: Iterable of `Entity`.
        sentence: The `TaggedSentence` that they are in.
    """

    def __init__(self, found: Iterable[Entity], sentence: TaggedSentence) -> None:
        super().__init__(found)
        self._sentence = sentence

    def _repr_html_(self) -> str:
        text, words = self._sentence.text, self._sentence.words
        places = [(entity.start, entity.end) for entity in self]
        if text is None:  # Entity positions count words, which are joined by spaces.
            ends = list(itertools.accumulate(len(word) + 1 for word in words))
            places = [(ends[a] - len(words[a]) - 1, ends[b - 1] - 1) for a, b in places]
            text = " ".join(words)
        types = (entity.type for entity in self)
        return marked_html(text, [(*p, t, color_of(t)) for p, t in zip(places, types, strict=True)])


@dataclasses.dataclass(frozen=True, repr=False)
class TaggedSentence(Result):
    """The tags of a sentence: the most probable sequence that is valid in their scheme.

    Args:
        words: Tuple of strings.
        tags: Tuple of strings, one per word.
        scores: Tuple of floats, the probability of the tag of each word.
        text: The sentence, `None` if it was given as words.
        places: Tuple of the `(start, end)` of words in `text`, or `None`.

    Example:

    >>> from keras_xlnet.preprocessing import TaggedSentence
    >>> TaggedSentence(("in", "Rome"), ("O", "B-place"), (0.99876, 0.91234)).entities("bio")
    [Entity(type='place', text='Rome', start=1, end=2, score=0.9123)]
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    scores: tuple[float, ...]
    text: str | None = None
    places: tuple[tuple[int, int], ...] | None = None

    def entities(self, scheme: str) -> Entities:
        """Returns the entities of the tags in a scheme, in the order of the text."""
        return Entities((self._entity(*span) for span in tag_spans(self.tags, scheme)), self)

    def _entity(self, kind, start, end):
        score = float(np.mean(self.scores[start:end]))
        if self.places is None or self.text is None:
            return Entity(kind, " ".join(self.words[start:end]), start, end, score)
        first, last = self.places[start][0], self.places[end - 1][1]
        return Entity(kind, self.text[first:last], first, last, score)


def encode_sentences(x: Any, tokenizer: Any, layout: Layout, shorten: bool = True) -> EncodedWords:
    """Returns what `XLNetTokenClassifierPreprocessor.encode` does.

    Args:
        x, shorten: As in that method.
        tokenizer: An `XLNetTokenizer` or a `HostTokenizer`.
        layout: A `Layout`.
    """
    x = plain_columns(x)
    sentences, places = sentence_words(x)
    columns: dict[str, Any] = {"words": sentences}
    if places is not None:
        columns["text"] = as_texts(x)
    pieces = tokenizer.encode([word for words in sentences for word in words])
    num_words = np.array([*map(len, sentences)], "int64")
    features, row = pack_windows(pieces, num_words, layout, np, shorten)
    word_index = features.pop("word_index")
    row = row if len(row) > len(sentences) else None
    return EncodedWords(features, columns, row, word_index=word_index, places=places)


def pack_sentences(pieces: Any, num_words: Any, layout: Layout, xp: ModuleType) -> dict[str, Any]:
    """Returns the features of sentences without the words that do not fit.

    Args:
        pieces: The tokens of the words of all sentences, what `as_rows` takes.
        num_words: Int64 `(sentences,)`.
        layout: A `Layout`.
        xp: `numpy` or `tensorflow`.
    """
    ids, index, _ = _as_sentences(pieces, num_words, xp)
    room = layout.sequence_length - _NUM_SPECIAL
    row, length = indices(ids.lengths, xp), xp.minimum(ids.lengths, room)
    ids, index = (take(rows, row, 0, length, xp) for rows in (ids, index))
    return _pack_words(ids, index, layout, xp)


def pack_windows(
    pieces: Any, num_words: Any, layout: Layout, xp: ModuleType, shorten: bool = False
) -> tuple[dict[str, Any], Any]:
    """Returns the features of the windows of sentences, and the sentence of each window.

    Args:
        pieces, num_words, layout, xp: As in `pack_sentences`.
        shorten: As in `pack`.
    """
    ids, index, first_of_word = _as_sentences(pieces, num_words, xp)
    room = layout.sequence_length - _NUM_SPECIAL
    zero = xp.zeros_like(ids.lengths)
    row, first, count = plan_windows(ids.lengths, zero + room, zero + max(room // 2, 1), xp)
    token = ranges(gather(starts(ids.lengths, xp), row, xp) + first, count, xp)
    window = window_of_most_context(Rows(token, count), xp.size(ids.values), xp)
    # A word belongs to the window where its first token has the most context.
    of_word = gather(window, gather(first_of_word, token, xp), xp)
    is_here = of_word == xp.repeat(indices(count, xp), count)
    index = Rows(xp.where(is_here, gather(index.values, token, xp), _NO_WORD), count)
    ids = Rows(gather(ids.values, token, xp), count)
    return _pack_words(ids, index, layout, xp, shorten), row


def _as_sentences(pieces, num_words, xp):
    """The tokens of sentences, their words, and the first token of the word of each token."""
    pieces = as_rows(pieces)
    # A word without tokens is unknown.
    values = concat([np.full(1, _UNKNOWN_ID, "int32"), pieces.values], xp)
    begin = xp.where(pieces.lengths > 0, starts(pieces.lengths, xp) + 1, 0)
    count = xp.maximum(pieces.lengths, 1)
    word = xp.repeat(indices(count, xp), count)
    index = as_int32(ranges(xp.zeros_like(num_words), num_words, xp), xp)
    before = concat([np.zeros(1, "int64"), xp.cumsum(count)], xp)
    length = gather(before, xp.cumsum(num_words), xp)
    length -= gather(before, starts(num_words, xp), xp)
    ids = Rows(gather(values, ranges(begin, count, xp), xp), length)
    return ids, Rows(gather(index, word, xp), length), gather(before, word, xp)


def _pack_words(ids, index, layout, xp, shorten=False):
    parts = pair_parts([ids], [], xp.zeros_like(ids.lengths), layout, xp)
    of_specials = repeated(_NO_WORD, xp.zeros_like(ids.lengths) + _NUM_SPECIAL, xp)
    of_words = layout._replace(padding_token_id=_NO_WORD)
    index = pack([(index, SEGMENT_A), (of_specials, SEGMENT_A)], of_words, xp, shorten)
    return {**pack(parts, layout, xp, shorten), "word_index": index["token_ids"]}


def outputs_of_words(outputs: np.ndarray, encoded: EncodedWords) -> list[np.ndarray]:
    """Returns the outputs for the words of each sentence, those for their first tokens.

    Args:
        outputs: Array `(windows, length, ...)`.
        encoded: What `encode_sentences` returned.
    """
    # The words of all sentences, in order.
    return np.split(
        np.asarray(outputs)[is_first_piece(encoded.word_index)],
        np.cumsum([len(words) for words in encoded.columns["words"]])[:-1],
    )


def tag_sentences(
    probabilities: np.ndarray, encoded: EncodedWords, names: Sequence[str]
) -> list[TaggedSentence]:
    """Returns a `TaggedSentence` for each sentence.

    Args:
        probabilities: Array `(windows, length, num_classes)`.
        encoded: What `encode_sentences` returned.
        names: List of strings, the names of the classes.
    """
    scheme = detect_scheme(names)
    of_words = outputs_of_words(probabilities, encoded)
    return [_tag_sentence(row, found, names, scheme, encoded) for row, found in enumerate(of_words)]


def _tag_sentence(row, probabilities, names, scheme, encoded):
    log_probs = np.log(np.maximum(probabilities, 1e-30))
    chosen, _ = decode_tags(log_probs, names, scheme)
    words = encoded.columns["words"][row]
    scores = np.exp(log_probs)[np.arange(len(chosen)), chosen].tolist()
    return TaggedSentence(
        words=tuple(words),
        tags=tuple(names[i] for i in chosen),
        scores=tuple(scores),
        text=encoded.columns["text"][row] if encoded.places else None,
        places=tuple(encoded.places[row]) if encoded.places else None,
    )

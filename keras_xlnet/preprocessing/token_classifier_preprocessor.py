"""Sentences with a tag for each word, for models with an output for each token."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.labels import Classes, as_label_array, check_class_indices
from keras_xlnet.preprocessing.packing import (
    SEGMENT_A,
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
from keras_xlnet.preprocessing.preprocessor import Encoded, Preprocessor
from keras_xlnet.preprocessing.tags import Entity, decode_tags, detect_scheme, tag_spans
from keras_xlnet.preprocessing.words import (
    NO_LABEL,
    is_first_piece,
    learn_tags,
    sentence_words,
    tag_indices,
    token_labels,
    token_weights,
)
from keras_xlnet.registration import register
from keras_xlnet.results import Result, color_of, marked_html
from keras_xlnet.tokenizers.string_inputs import as_strings, as_texts, plain_columns
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer

_NO_WORD = -1
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


@register
class XLNetTokenClassifierPreprocessor(Preprocessor):
    """Converts sentences, and the tags of their words, to the arrays of `XLNetTokenClassifier`.

    A sentence is packed as `[pieces of all words, <sep>, <cls>]`. Each word is tokenized separately
    and has at least one token: `<unk>` if cleaning removes all of it.

    `encode` divides a sentence that does not fit into windows. Each window starts half a window
    after the previous one, and each word is read where it has the most context. The call,
    whose outputs have one row per sentence, leaves out the last words instead; `windows` returns
    the windows in the TensorFlow graph.

    Args:
        tokenizer: An `XLNetTokenizer`.
        sequence_length: Int, length of the outputs, at least 3.
        padding_side: String, `"left"` or `"right"`.
        padding_token_id: Int, as in `XLNetTextClassifierPreprocessor`.
        label_all_pieces: Bool, whether all tokens of a word have its tag as label, or only the
            first. The prediction for a word is the prediction for its first token.
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Lists of words, or a ragged string tensor `(batch, None)`.

    Returns:
        A dict of `token_ids`, `segment_ids`, `padding_mask` and `word_index`
        `(batch, sequence_length)`. `word_index` is the index of a token's word in its
        sentence, int32, -1 for padding, `<sep>` and `<cls>`.

    Raises:
        ValueError: If an argument is not as above.

    Example:

    >>> from keras_xlnet.preprocessing import XLNetTokenClassifierPreprocessor
    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
    >>> preprocessor = XLNetTokenClassifierPreprocessor(tokenizer, sequence_length=9)
    >>> preprocessor([["a", "rose"], ["is"]])["word_index"].numpy()[0].tolist()[-4:]
    [1, 1, -1, -1]
    """

    has_token_labels = True
    row_name = "sentence"

    def __init__(
        self,
        tokenizer: XLNetTokenizer,
        sequence_length: int = 128,
        padding_side: str = "left",
        padding_token_id: int = 0,
        label_all_pieces: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(tokenizer, sequence_length, padding_side, padding_token_id, **kwargs)
        self.label_all_pieces = label_all_pieces

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_all_pieces": self.label_all_pieces}

    def call(self, inputs: Any) -> dict[str, tf.Tensor]:
        with tf.device("CPU:0"):
            ids, index, _ = self._tokenize(inputs)
            row, length = indices(ids.lengths, tf), tf.minimum(ids.lengths, self._room)
            ids, index = (take(rows, row, 0, length, tf) for rows in (ids, index))
            return self._pack_words(ids, index, tf)

    def windows(self, inputs: Any) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns the windows of sentences, in the TensorFlow graph.

        Args:
            inputs: As in the call.

        Returns:
            The outputs of the call, with a row for each window, and the sentence of each window,
            int64 `(windows,)`. `word_index` is as in `EncodedWords`.
        """
        with tf.device("CPU:0"):
            return self._pack_windows(self._tokenize(inputs), tf)

    @property
    def _room(self):
        return self.sequence_length - _NUM_SPECIAL

    def _tokenize(self, inputs):
        words = as_strings(inputs)
        if not isinstance(words, tf.RaggedTensor):
            words = tf.RaggedTensor.from_tensor(tf.ensure_shape(words, (None, None)))
        words = words.with_row_splits_dtype(tf.int64)
        return self._as_sentences(self.tokenizer(words.values), words.row_lengths(), tf)

    def _as_sentences(self, pieces, num_words, xp):
        """The tokens of sentences, their words, and the first token of the word of each token."""
        pieces = as_rows(pieces)
        # A word without tokens is unknown.
        values = concat([np.full(1, self.tokenizer.unk_token_id, "int32"), pieces.values], xp)
        begin = xp.where(pieces.lengths > 0, starts(pieces.lengths, xp) + 1, 0)
        count = xp.maximum(pieces.lengths, 1)
        word = xp.repeat(indices(count, xp), count)
        index = as_int32(ranges(xp.zeros_like(num_words), num_words, xp), xp)
        before = concat([np.zeros(1, "int64"), xp.cumsum(count)], xp)
        length = gather(before, xp.cumsum(num_words), xp)
        length -= gather(before, starts(num_words, xp), xp)
        ids = Rows(gather(values, ranges(begin, count, xp), xp), length)
        return ids, Rows(gather(index, word, xp), length), gather(before, word, xp)

    def _pack_windows(self, tokens, xp, shorten=False):
        """The features of the windows of sentences, and the sentence of each window."""
        ids, index, first_of_word = tokens
        room, stride = self._room, max(self._room // 2, 1)
        zero = xp.zeros_like(ids.lengths)
        row, first, count = plan_windows(ids.lengths, zero + room, zero + stride, xp)
        token = ranges(gather(starts(ids.lengths, xp), row, xp) + first, count, xp)
        window = window_of_most_context(Rows(token, count), xp.size(ids.values), xp)
        # A word belongs to the window where its first token has the most context.
        of_word = gather(window, gather(first_of_word, token, xp), xp)
        is_here = of_word == xp.repeat(indices(count, xp), count)
        index = Rows(xp.where(is_here, gather(index.values, token, xp), _NO_WORD), count)
        ids = Rows(gather(ids.values, token, xp), count)
        return self._pack_words(ids, index, xp, shorten), row

    def _pack_words(self, ids, index, xp, shorten=False):
        parts = pair_parts([ids], [], xp.zeros_like(ids.lengths), self.layout, xp)
        of_specials = repeated(_NO_WORD, xp.zeros_like(ids.lengths) + _NUM_SPECIAL, xp)
        layout = self.layout._replace(padding_token_id=_NO_WORD)
        index = pack([(index, SEGMENT_A), (of_specials, SEGMENT_A)], layout, xp, shorten)
        features = pack(parts, self.layout, xp, shorten)
        return {**features, "word_index": index["token_ids"]}

    def encode(self, x: Any, shorten: bool = True) -> EncodedWords:
        """Converts sentences to arrays on the host, without TensorFlow.

        Args:
            x: List of lists of words, or of strings, which are divided into words as in
                `XLNetTokenClassifier.tag`.
            shorten: Bool, whether the arrays are as long as the longest row needs, or
                `sequence_length`.

        Returns:
            `EncodedWords`.

        Raises:
            ValueError: If a sentence has no words or a word is not a string. The message names
                them.
        """
        x = plain_columns(x)
        sentences, places = sentence_words(x)
        columns: dict[str, Any] = {"words": sentences}
        if places is not None:
            columns["text"] = as_texts(x)
        pieces = self.tokenizer.encode([word for words in sentences for word in words])
        num_words = np.array([*map(len, sentences)], "int64")
        tokens = self._as_sentences(pieces, num_words, np)
        features, row = self._pack_windows(tokens, np, shorten)
        word_index = features.pop("word_index")
        row = row if len(row) > len(sentences) else None
        return EncodedWords(features, columns, row, word_index=word_index, places=places)

    def encode_labels(self, y: Any, encoded: Encoded, classes: Classes | None = None) -> np.ndarray:
        assert isinstance(encoded, EncodedWords) and classes is not None
        sentences = encoded.columns["words"]
        tags = tag_indices(y, sentences, classes.class_names, classes.num_classes)
        of_windows = [tags[sentence] for sentence in encoded.sentence]
        return token_labels(of_windows, encoded.word_index, self.label_all_pieces)

    def encode_weights(self, weights: Any, encoded: Encoded) -> Any:
        assert isinstance(encoded, EncodedWords)
        return token_weights(
            weights, encoded.columns["words"], encoded.word_index, encoded.sentence
        )

    def decode(self, outputs: Any, encoded: Encoded, **options: Any) -> list[TaggedSentence]:
        """Returns a `TaggedSentence` for each sentence.

        Args:
            outputs: Probabilities `(windows, length, num_classes)`.
            encoded: What `encode` returned.
            **options: `classes`, the `Classes` of the model.
        """
        assert isinstance(encoded, EncodedWords)
        names = options["classes"].names
        scheme = detect_scheme(names)
        first = is_first_piece(encoded.word_index)
        # The words of all sentences, in order.
        probabilities = np.split(
            np.asarray(outputs)[first],
            np.cumsum([len(words) for words in encoded.columns["words"]])[:-1],
        )
        return [
            self._decode_sentence(row, probabilities[row], names, scheme, encoded)
            for row in range(encoded.num_given)
        ]

    def _decode_sentence(self, row, probabilities, names, scheme, encoded):
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

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        y = as_label_array(y)
        # Vectors are for custom losses.
        if classes is not None and np.ndim(y) == 2:
            check_class_indices(y, classes.num_classes, NO_LABEL)
        return y

    @classmethod
    def learn_class_names(cls, y: Any, num_classes: int) -> list[str] | None:
        return learn_tags(y, num_classes)

    def compute_output_spec(self, inputs: Any) -> Any:
        raise ValueError(
            "The numbers of words differ: call the preprocessor in a dataset or on lists of words, "
            "not on symbolic inputs"
        )

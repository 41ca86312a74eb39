"""Sentences with a tag for each word, for models with an output for each token."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_xlnet.compat.unknown_arguments import register
from keras_xlnet.lazy_modules import tf
from keras_xlnet.preprocessing.labels import Classes, as_label_array, check_class_indices
from keras_xlnet.preprocessing.packing import (
    SEGMENT_A,
    SEGMENT_CLS,
    first_tokens,
    repeated,
)
from keras_xlnet.preprocessing.preprocessor import Encoded, Preprocessor
from keras_xlnet.preprocessing.tags import Entity, decode_tags, detect_scheme, tag_spans
from keras_xlnet.preprocessing.words import (
    NO_LABEL,
    is_first_piece,
    is_words,
    learn_tags,
    sentence_words,
    tag_indices,
    token_labels,
    token_weights,
)
from keras_xlnet.results import Result, color_of, marked_html
from keras_xlnet.tokenizers.string_inputs import as_strings
from keras_xlnet.tokenizers.xlnet_tokenizer import XLNetTokenizer

_NO_WORD = -1
# <sep> and <cls>.
_NUM_SPECIAL = 2


@dataclasses.dataclass(frozen=True, repr=False)
class EncodedWords(Encoded):
    """Sentences as arrays, and which word each token is of.

    Args:
        features, row: As in `Encoded`.
        columns: Dict of `words`, a list of lists of strings, and, if sentences were strings,
            `text`, a list of these.
        word_index: Int array `(sentences, length)`, the place of the word of each token in its
            sentence; -1 for padding, `<sep>` and `<cls>`.
        places: List with the places of words in strings for each sentence, `(start, end)` in
            characters. `None` for lists of words.
    """

    _: dataclasses.KW_ONLY
    word_index: np.ndarray
    places: list[list[tuple[int, int]]] | None = None


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
        if text is None:  # Places of entities are words, which are joined by spaces.
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
        tags: Tuple of strings, one a word. Words that were not read, as the sentence is too long,
            have the tag of no entity.
        scores: Tuple of floats, the probability of the tag of each word; 0 for words that were not
            read.
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

    A sentence is packed as `[pieces of all words, <sep>, <cls>]`. Each word is tokenized alone, and
    has at least one token: a word of which cleaning leaves nothing is `<unk>`. Words that do not
    fit are left out at the end.

    Args:
        tokenizer: An `XLNetTokenizer`.
        sequence_length: Int, length of the outputs, at least 3.
        padding_side: String, `"left"` or `"right"`.
        padding_token_id: Int, as in `XLNetTextClassifierPreprocessor`.
        label_all_pieces: Bool, whether all tokens of a word have its tag as label, or the first one
            alone. What a model predicts for a word is what it predicts for the first one.
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Lists of words, or a ragged string tensor `(batch, None)`.

    Returns:
        A dict of `token_ids`, `segment_ids`, `padding_mask` and `word_index`
        `(batch, sequence_length)`. `word_index` is the place of the word of a token in its
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

    @classmethod
    def takes(cls, x: Any) -> bool:
        return is_words(x)

    def call(self, inputs: Any) -> dict[str, tf.Tensor]:
        with tf.device("CPU:0"):
            words = as_strings(inputs)
            if not isinstance(words, tf.RaggedTensor):
                words = tf.RaggedTensor.from_tensor(tf.ensure_shape(words, (None, None)))
            words = words.with_row_splits_dtype(tf.int64)
            pieces = self.tokenizer(words.values)
            is_empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
            pieces = tf.concat([pieces, repeated(self.tokenizer.unk_token_id, is_empty)], axis=1)
            index = tf.cast(tf.ragged.range(words.row_lengths()).values, tf.int32)
            index = pieces.with_values(tf.repeat(index, pieces.row_lengths()))
            # The tokens of a sentence, and the words of these.
            ids, index = (words.with_values(part).merge_dims(1, 2) for part in (pieces, index))
            length = tf.minimum(ids.row_lengths(), self.sequence_length - _NUM_SPECIAL)
            ids, index = first_tokens(ids, length), first_tokens(index, length)
            one = tf.ones_like(length)
            features = self._pack(
                [
                    (ids, SEGMENT_A),
                    (repeated(self.tokenizer.sep_token_id, one), SEGMENT_A),
                    (repeated(self.tokenizer.cls_token_id, one), SEGMENT_CLS),
                ]
            )
            index, _ = self._place([index, repeated(_NO_WORD, _NUM_SPECIAL * one)], _NO_WORD)
            return {**features, "word_index": index}

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
        sentences, places = sentence_words(x)
        columns: dict[str, Any] = {"words": sentences}
        if places is not None:
            columns["text"] = [t.decode() if isinstance(t, bytes) else str(t) for t in x]
        features, word_index = self._encode_sentences(sentences, shorten)
        self._warn_of_cut(sentences, word_index)
        return EncodedWords(features, columns, word_index=word_index, places=places)

    def _encode_sentences(self, sentences, shorten):
        pieces = iter(self.tokenizer.encode([word for words in sentences for word in words]))
        unknown = np.array([self.tokenizer.unk_token_id], "int32")
        room = self.sequence_length - _NUM_SPECIAL
        sep, cls = self.tokenizer.sep_token_id, self.tokenizer.cls_token_id
        rows, indices = [], []
        for words in sentences:
            parts = [next(pieces) for _ in words]
            parts = [ids if len(ids) else unknown for ids in parts]
            ids = np.concatenate([unknown[:0], *parts])[:room]
            counts = [len(part) for part in parts]
            indices.append(np.repeat(np.arange(len(words), dtype="int32"), counts)[:room])
            rows.append([(ids, SEGMENT_A), (sep, SEGMENT_A), (cls, SEGMENT_CLS)])
        features = self._pack_rows(rows, shorten)
        word_index = np.full(features["token_ids"].shape, _NO_WORD, "int32")
        begin = features["padding_mask"].argmax(axis=1)
        for row, index in enumerate(indices):
            word_index[row, begin[row] : begin[row] + len(index)] = index
        return features, word_index

    def _warn_of_cut(self, sentences, word_index):
        read = word_index.max(axis=1) + 1
        cut = np.flatnonzero(read < [len(words) for words in sentences])
        if len(cut):
            warnings.warn(
                f"{len(cut)} sentences are longer than sequence_length={self.sequence_length}, the "
                f"first one in row {cut[0]}. Their last words are not read",
                stacklevel=5,
            )

    def encode_labels(self, y: Any, encoded: Encoded, classes: Classes | None = None) -> np.ndarray:
        assert isinstance(encoded, EncodedWords) and classes is not None
        sentences = encoded.columns["words"]
        tags = tag_indices(y, sentences, classes.class_names, classes.num_classes)
        return token_labels(tags, encoded.word_index, self.label_all_pieces)

    def encode_weights(self, weights: Any, encoded: Encoded) -> Any:
        assert isinstance(encoded, EncodedWords)
        return token_weights(weights, encoded.columns["words"], encoded.word_index)

    def decode(self, outputs: Any, encoded: Encoded, **options: Any) -> list[TaggedSentence]:
        """Returns a `TaggedSentence` for each sentence.

        Args:
            outputs: Probabilities `(sentences, length, num_classes)`.
            encoded: What `encode` returned.
            **options: `classes`, the `Classes` of the model.
        """
        assert isinstance(encoded, EncodedWords)
        names = options["classes"].names
        scheme = detect_scheme(names)
        first = is_first_piece(encoded.word_index)
        return [
            self._decode_row(row, outputs[row, first[row]], names, scheme, encoded)
            for row in range(len(encoded))
        ]

    def _decode_row(self, row, probabilities, names, scheme, encoded):
        log_probs = np.log(np.maximum(probabilities, 1e-30))
        chosen, _ = decode_tags(log_probs, names, scheme)
        words = encoded.columns["words"][row]
        scores = np.exp(log_probs)[np.arange(len(chosen)), chosen].tolist()
        missing = len(words) - len(chosen)
        default = "O" if "O" in names else names[0]
        return TaggedSentence(
            words=tuple(words),
            tags=(*(names[i] for i in chosen), *[default] * missing),
            scores=(*scores, *[0.0] * missing),
            text=encoded.columns["text"][row] if encoded.places else None,
            places=tuple(encoded.places[row]) if encoded.places else None,
        )

    @classmethod
    def check_labels(cls, y: Any, features: Any, classes: Classes | None = None) -> Any:
        y = as_label_array(y)
        # Vectors are for a loss of one's own.
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

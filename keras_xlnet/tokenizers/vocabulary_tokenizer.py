"""A tokenizer of words or characters with a plain list of tokens as its vocabulary."""

from __future__ import annotations

import collections
import os
import pathlib
import types
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_xlnet.arguments import check_choice
from keras_xlnet.lazy_modules import tf
from keras_xlnet.registration import register
from keras_xlnet.tokenizers.cleaning import replace_surrogates
from keras_xlnet.tokenizers.normalization import (
    replace_characters,
    valid_utf8,
    with_single_spaces,
)
from keras_xlnet.tokenizers.string_inputs import StringTokenizer
from keras_xlnet.tokenizers.text_columns import as_texts
from keras_xlnet.tokenizers.token_ids import as_ids
from keras_xlnet.types import PathLike

_ASSET = "vocabulary.txt"
_UNITS = ("word", "character")
# Characters that would end a line of the file of a vocabulary, and how they are written there.
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@register
class VocabularyTokenizer(StringTokenizer):
    """Converts strings to the ids of their words or characters, on the host and in the graph.

    A call needs TensorFlow. `encode` and `decode` do not.

    Words are split as by `str.split`, and characters are code points, in training, in calls and in
    graphs. Lowercasing is the same as `str.lower`. Bytes that are not UTF-8 are replaced by
    U+FFFD, and NUL is an ordinary character. The id of a token is its place in the vocabulary. This
    is the vocabulary of the authors' Transformer-XL, whose ids are ordered by frequency, as an
    adaptive softmax needs them.

    Args:
        vocabulary: List of different strings, or the path of a UTF-8 file with one token at the
            start of each line, such as `vocab.txt`, and white space after it. `None` for a
            tokenizer that is used after `load_assets`.
        unit: `"word"` or `"character"`.
        unknown_token: String, the token of the vocabulary that replaces tokens outside it. `None`:
            the vocabulary must have all tokens of the texts.
        end_token: Optional string, a token that is added at the end of each text, such as
            `"<eos>"` at the end of each line.
        lowercase: Bool, whether to convert the text to lower case.
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: String, list of strings, NumPy array or TensorFlow tensor of strings `(...)`.

    Returns:
        An int32 `tf.RaggedTensor` of ids `(..., None)`. For one string, a tensor `(num_tokens,)`.

    Raises:
        FileNotFoundError: If `vocabulary` is a path that does not exist.
        ValueError: If the vocabulary is empty, has a token twice or lacks one of the special
            tokens, or an argument is not as above.
        tf.errors.InvalidArgumentError: If a text has a token that is not in the vocabulary, and
            there is no `unknown_token`.

    Example:

    >>> from keras_xlnet.tokenizers import VocabularyTokenizer
    >>> tokenizer = VocabularyTokenizer.train(["a rose is a rose", "is it"], end_token="<eos>")
    >>> ids = tokenizer(["a rose", "it is"])
    >>> ids.to_list()
    [[1, 2, 0], [4, 3, 0]]
    >>> tokenizer.detokenize(ids).numpy().tolist()
    [b'a rose', b'it is']

    Source: kimiyoung/transformer-xl, `vocabulary.py`.
    """

    def __init__(
        self,
        vocabulary: PathLike | Sequence[str] | None,
        unit: str = "word",
        unknown_token: str | None = None,
        end_token: str | None = None,
        lowercase: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.unit = check_choice("unit", unit, _UNITS)
        self.unknown_token = unknown_token
        self.end_token = end_token
        self.lowercase = lowercase
        # Not tracked, because Keras would inspect all tokens of the list and the dict.
        self._untracked = types.SimpleNamespace(tokens=None, ids=None)
        self._strings: Any = None  # Tensors, for calls.
        self._table: Any = None
        if vocabulary is not None:
            self._set_vocabulary(_read(vocabulary))

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        unit: str = "word",
        size: int | None = None,
        min_count: int = 1,
        unknown_token: str | None = None,
        end_token: str | None = None,
        special_tokens: Sequence[str] = (),
        lowercase: bool = False,
        **kwargs: Any,
    ) -> VocabularyTokenizer:
        """Counts the tokens of texts, and makes a tokenizer with the most frequent ones.

        Args:
            texts: Iterable of strings.
            unit, unknown_token, end_token, lowercase: See `VocabularyTokenizer`.
            size: Int, the number of tokens, including special ones. `None` for all.
            min_count: Int. Tokens that occur less often are left out.
            special_tokens: Strings that get the first ids, before `unknown_token` and `end_token`.
            **kwargs: Other arguments of `VocabularyTokenizer`.

        Returns:
            A `VocabularyTokenizer`, with the special tokens first, then the most frequent tokens.
            Tokens with the same count are in the order of the text.

        Raises:
            ValueError: If there are no tokens, or some are left out and there is no
                `unknown_token`.
        """
        counts: collections.Counter[str] = collections.Counter()
        for text in texts:
            text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
            text = text.lower() if lowercase else text
            counts.update(text.split() if unit == "word" else text)
        if not counts:
            raise ValueError("`texts` must have at least one token. Received: none")
        special = [*special_tokens, *(t for t in (unknown_token, end_token) if t is not None)]
        special = list(dict.fromkeys(special))
        kept = [t for t, count in counts.most_common() if count >= min_count and t not in special]
        kept = kept if size is None else kept[: max(0, size - len(special))]
        if unknown_token is None and len(kept) < len(set(counts) - set(special)):
            raise ValueError("`unknown_token` is needed for the tokens that are left out")
        return cls(
            [*special, *kept],
            unit=unit,
            unknown_token=unknown_token,
            end_token=end_token,
            lowercase=lowercase,
            **kwargs,
        )

    def _tokenize(self, texts):
        ids = self._tokens_to_ids(texts)
        if self.end_token is None:
            return ids
        end = tf.fill([ids.nrows(), 1], self.token_to_id(self.end_token))
        return tf.concat([ids, end], axis=1)

    def _tokens_to_ids(self, texts):
        """The ids of texts, without the `end_token`."""
        self._require_tables()
        texts = replace_characters(valid_utf8(texts), self.lowercase, remove_accents=False)
        if self.unit == "word":
            # In two steps, because `tf.strings.split` splits only at ASCII white space.
            tokens = tf.strings.split(with_single_spaces(texts))
        else:
            tokens = tf.strings.unicode_split(texts, "UTF-8")
        ids = tf.ragged.map_flat_values(self._table.lookup, tokens)
        check = tf.debugging.assert_non_negative(
            ids.flat_values, "`inputs` has tokens that are not in the vocabulary"
        )
        with tf.control_dependencies([check] if check is not None else []):
            return tf.cast(ids, tf.int32)

    def encode(self, texts: Any) -> list[np.ndarray]:
        """Converts texts to ids on the host, without TensorFlow. The ids equal the call's.

        Args:
            texts: List, array or column of a table of strings, or of bytes in UTF-8.

        Returns:
            A list with an int32 array `(num_tokens,)` for each text.

        Raises:
            ValueError: If a text has a token that is not in the vocabulary, and there is no
                `unknown_token`.

        Example:

        >>> from keras_xlnet.tokenizers import VocabularyTokenizer
        >>> tokenizer = VocabularyTokenizer.train(["a rose is a rose"], end_token="<eos>")
        >>> [ids.tolist() for ids in tokenizer.encode(["a rose", ""])]
        [[1, 2, 0], [0]]
        """
        self._require_vocabulary()
        end = [] if self.end_token is None else [self.token_to_id(self.end_token)]
        return [
            np.array([*self._host_ids(text), *end], "int32") for text in as_texts(texts, "texts")
        ]

    def _host_ids(self, text):
        """The ids of a text, without the `end_token`."""
        text = replace_surrogates(text)
        text = text.lower() if self.lowercase else text
        ids = self._untracked.ids
        unknown = ids.get(self.unknown_token)
        found = [ids.get(token, unknown) for token in self._split(text)]
        if unknown is None and None in found:
            missing = next(token for token in self._split(text) if token not in ids)
            raise ValueError(
                f"`texts` must have tokens of the vocabulary only: there is no `unknown_token`. "
                f"Received: {missing!r}"
            )
        return found

    def _split(self, text):
        return text.split() if self.unit == "word" else text

    def split_at_blanks(self, text: str, blank: str = "<mask>") -> list[np.ndarray]:
        """Returns the tokens around the blanks of a text, as they are once the blanks are filled.

        The last array ends with the `end_token`, if there is one.

        Args:
            text: String.
            blank: String that stands for each blank in the text.

        Returns:
            List of int32 arrays: the ids before the first blank, between blanks, and after the
            last one. One array more than there are blanks.

        Raises:
            ValueError: If tokens are words, and a blank is only part of a word.

        Example:

        >>> from keras_xlnet.tokenizers import VocabularyTokenizer
        >>> tokenizer = VocabularyTokenizer.train(["a rose is a rose"], end_token="<eos>")
        >>> [part.tolist() for part in tokenizer.split_at_blanks("a rose <mask> a")]
        [[1, 2], [1, 0]]
        """
        if self.unit == "word":
            for word in text.split():
                if blank in word and word != blank:
                    raise ValueError(
                        f"`text` must have blanks that are whole words, with white space around "
                        f"them: tokens are words. Received: {word!r}"
                    )
        self._require_vocabulary()
        parts = [np.array(self._host_ids(part), "int32") for part in text.split(blank)]
        if self.end_token is not None:
            parts[-1] = np.append(parts[-1], np.int32(self.token_to_id(self.end_token)))
        return parts

    def detokenize(self, inputs: Any) -> tf.Tensor:
        """Converts ids back to text, words joined by spaces, without the `end_token`.

        Args:
            inputs: Integer ids `(num_tokens,)` or `(batch, num_tokens)`, dense or ragged.

        Returns:
            A string tensor `()` or `(batch,)`.
        """
        self._require_tables()
        with tf.device("CPU:0"):
            ids = as_ids(inputs)
            if ids.shape.rank == 1:
                return self.detokenize(tf.RaggedTensor.from_tensor(ids[tf.newaxis]))[0]
            if self.end_token is not None:
                is_end = ids == tf.cast(self.token_to_id(self.end_token), ids.dtype)
                ids = tf.ragged.boolean_mask(ids, tf.logical_not(is_end))
            tokens = tf.ragged.map_flat_values(lambda flat: tf.gather(self._strings, flat), ids)
            separator = " " if self.unit == "word" else ""
            return tf.strings.reduce_join(tokens, axis=1, separator=separator)

    def decode(self, ids: Sequence[Any]) -> Any:
        """Converts ids back to text on the host, as `detokenize` does.

        Args:
            ids: Integers `(num_tokens,)`, or a list of such rows. An empty list is one row.

        Returns:
            A string, or a list with a string for each row.

        Raises:
            ValueError: If an id is not in the vocabulary.

        Example:

        >>> from keras_xlnet.tokenizers import VocabularyTokenizer
        >>> tokenizer = VocabularyTokenizer.train(["a rose is a rose"], end_token="<eos>")
        >>> tokenizer.decode([1, 2, 0])
        'a rose'
        >>> tokenizer.decode(tokenizer.encode(["a rose", "is"]))
        ['a rose', 'is']
        """
        self._require_vocabulary()
        is_row = not len(ids) or np.ndim(ids[0]) == 0
        return self._host_text(ids) if is_row else [*map(self._host_text, ids)]

    def _host_text(self, row):
        row, size = np.asarray(row), self.vocabulary_size()
        if row.ndim != 1 or (row.size and not np.issubdtype(row.dtype, np.integer)):
            raise ValueError(
                "`ids` must be integers of rank 1, or a list of such rows. "
                f"Received: dtype {row.dtype}, shape {row.shape}"
            )
        if ((row < 0) | (row >= size)).any():
            raise ValueError(f"`ids` must be from 0 to {size - 1}. Received: {row.tolist()}")
        tokens = [self._untracked.tokens[index] for index in row]
        separator = " " if self.unit == "word" else ""
        return separator.join(token for token in tokens if token != self.end_token)

    def token_to_id(self, token: str) -> int:
        """Returns the id of a token, or the id of the unknown token.

        Raises:
            KeyError: If there is neither.
        """
        self._require_vocabulary()
        ids = self._untracked.ids
        found = ids.get(token, ids.get(self.unknown_token))
        if found is None:
            raise KeyError(token)
        return found

    def id_to_token(self, id: int) -> str:
        """Returns the token of an id.

        Raises:
            ValueError: If the id is not in the vocabulary.
        """
        if not 0 <= id < self.vocabulary_size():
            raise ValueError(f"`id` must be in [0, {self.vocabulary_size()}). Received: id={id}")
        return self._untracked.tokens[id]

    @property
    def vocabulary(self) -> list[str]:
        """List of the tokens."""
        self._require_vocabulary()
        return list(self._untracked.tokens)

    @property
    def has_vocabulary(self) -> bool:
        """Bool, whether the tokenizer has a vocabulary. A config does not contain one."""
        return self._untracked.tokens is not None

    def vocabulary_size(self) -> int:
        """Returns the number of tokens."""
        self._require_vocabulary()
        return len(self._untracked.tokens)

    def _set_vocabulary(self, tokens):
        ids = {token: i for i, token in enumerate(tokens)}
        if not tokens or len(ids) < len(tokens):
            raise ValueError(
                "`vocabulary` must have at least one token, and none twice. Received: "
                f"{len(tokens)} tokens, {len(ids)} different ones"
            )
        for name in ("unknown_token", "end_token"):
            if getattr(self, name) not in (None, *ids):
                raise ValueError(f"`vocabulary` has no `{name}` {getattr(self, name)!r}")
        self._untracked = types.SimpleNamespace(tokens=tokens, ids=ids)
        self._strings = self._table = None
        # A SavedModel contains only tables that exist before tracing.
        if keras.backend.backend() == "tensorflow":
            self._require_tables()

    def _require_vocabulary(self):
        if self._untracked.tokens is None:
            raise ValueError("The tokenizer has no vocabulary. Load one with `load_assets`")

    def _require_tables(self):
        """Creates the tensors of calls if they do not exist yet."""
        self._require_vocabulary()
        if self._table is not None:
            return
        tokens, unknown = self._untracked.tokens, self._untracked.ids.get(self.unknown_token, -1)
        with tf.init_scope(), tf.device("CPU:0"):
            self._strings = tf.constant(tokens)
            initializer = tf.lookup.KeyValueTensorInitializer(
                self._strings, tf.range(len(tokens), dtype=tf.int64)
            )
            self._table = tf.lookup.StaticHashTable(initializer, unknown)

    def save_assets(self, directory: PathLike) -> None:
        """Writes the vocabulary to `vocabulary.txt`. Keras calls this when it saves a model."""
        lines = [_escape(token) for token in self.vocabulary]
        path = pathlib.Path(directory) / _ASSET
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def load_assets(self, directory: PathLike) -> None:
        """Reads the vocabulary that `save_assets` wrote. Keras calls this when it loads a model."""
        text = (pathlib.Path(directory) / _ASSET).read_text(encoding="utf-8")
        self._set_vocabulary([_unescape(line) for line in text.split("\n")[:-1]])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary": None,
            "unit": self.unit,
            "unknown_token": self.unknown_token,
            "end_token": self.end_token,
            "lowercase": self.lowercase,
        }


def _read(vocabulary):
    """The tokens of a list, or of the lines of a file."""
    if not isinstance(vocabulary, (str, os.PathLike)):
        return list(vocabulary)
    # Not `splitlines`, which also splits at characters such as U+2028 and U+0085.
    lines = pathlib.Path(vocabulary).read_text(encoding="utf-8-sig").split("\n")
    return [line.split()[0] for line in lines if line.strip()]


def _escape(token):
    return "".join(_ESCAPES.get(character, character) for character in token)


def _unescape(line):
    plain, characters = [], iter(line)
    by_escape = {escape[1]: character for character, escape in _ESCAPES.items()}
    for character in characters:
        plain.append(by_escape[next(characters)] if character == "\\" else character)
    return "".join(plain)

"""XLNet's tokenizer: a SentencePiece model with the cleaning and the rules of the original."""

from __future__ import annotations

import hashlib
import os
import types
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import numpy as np

from keras_xlnet.lazy_modules import tf
from keras_xlnet.registration import register
from keras_xlnet.tokenizers.added_tokens import add_tokens
from keras_xlnet.tokenizers.cleaning import clean_text
from keras_xlnet.tokenizers.graph_tokenizer import GraphTokenizer
from keras_xlnet.tokenizers.host_tokenizer import HostTokenizer
from keras_xlnet.tokenizers.normalization import preprocess_text
from keras_xlnet.tokenizers.sentencepiece_model import (
    SPECIAL_TOKENS,
    XLNET_IDS,
    load_processor,
    read_proto,
    special_ids,
    write_proto,
)
from keras_xlnet.tokenizers.sentencepiece_training import train_proto
from keras_xlnet.tokenizers.string_inputs import StringTokenizer, on_texts
from keras_xlnet.tokenizers.text_columns import as_texts
from keras_xlnet.tokenizers.token_ids import as_ids
from keras_xlnet.tokenizers.token_offsets import TokenOffsets
from keras_xlnet.tokenizers.tokenizer_preset import load_tokenizer, save_tokenizer
from keras_xlnet.types import PathLike

_ASSET = "spiece.model"
_WORD_START = "\u2581"
# Code points that are not characters: one for blanks, and one that replaces it in texts.
_BLANK, _UNKNOWN = "\ufdd0", "\ufdd1"


def _id_of(token, meaning=""):
    """A property with the id of a special token."""
    index = SPECIAL_TOKENS.index(token)
    doc = f"Int, the id of `{token}`{meaning}: {index} in XLNet's own vocabularies."
    return property(lambda self: self.special_token_ids[index], doc=doc)


@register
class XLNetTokenizer(StringTokenizer):
    """Converts strings to XLNet's token ids, in the TensorFlow graph.

    The ids equal the original's `encode_ids(sp, preprocess_text(text, ...))`. The layer
    consists of TensorFlow ops only, so it works in `tf.data`, in functional models and in
    SavedModels, which can be loaded with only `tensorflow` and `tensorflow_text`. On the JAX and
    PyTorch backends it works eagerly and in `tf.data`; its inputs and outputs are still
    TensorFlow tensors.

    The fine-tuning scripts of the original remove accents, also for cased models. To get the same
    ids, pass `remove_accents=True`, and `lowercase=True` for an uncased model.

    Lower case, white space and accents are defined by `str.lower`, `str.split` and `unicodedata`
    of the Python process that creates the layer. Bytes that are not UTF-8 are replaced by U+FFFD,
    as `bytes.decode("utf-8", "replace")` does. NUL is an ordinary character. An empty text has no
    ids.

    If a text has two splits of equal score, such as "!!!! !!!! !" and "! !!!! !!!!", rounding in
    float32 decides, and `tensorflow_text` can choose another split than `sentencepiece`. Such texts
    have long runs of one character: the ids and offsets of all 5,574 messages of the SMS collection
    are equal with both presets. The vocabulary must contain the piece ",", as every vocabulary
    trained on text with commas does.

    Args:
        proto: SentencePiece unigram model with XLNet's special pieces, at any ids: a path or
            the bytes of the model. `None` for a tokenizer that is used after `load_assets`.
        lowercase: Bool, whether to convert the text to lower case.
        remove_accents: Bool, whether to decompose the text (NFKD) and drop combining characters.
            Hangul syllables are split into letters, which SentencePiece composes again if `proto`
            normalizes to NFKC, as the models of `train` do. Kana lose their voicing marks.
        remove_space: Bool, whether to replace every run of white space by one space.
        **kwargs: Other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: String, (nested) list of strings, NumPy array or TensorFlow tensor of strings of
            shape `(...)`, dense or ragged.
        sampling_alpha: Optional float above 0. Texts are then split at random, with probabilities
            proportional to P(split)^sampling_alpha, for training a model; 0.1 is common. The
            generator of SentencePiece has no seed.
        return_offsets: Bool, whether to return the position of each token in the given text.

    Returns:
        An int32 `tf.RaggedTensor` of ids `(..., None)` with int64 row splits. For one string, a
        `tf.Tensor` `(num_tokens,)`. With `return_offsets`, a tuple of these ids and a
        `TokenOffsets` of four tensors of the same shape: `start`, `end`, `byte_start`, `byte_end`.

    Raises:
        FileNotFoundError: If `proto` is a path that does not exist.
        ValueError: If `proto` is not a SentencePiece unigram model with XLNet's special pieces,
            `inputs` are not strings, or the tokenizer has no model yet.

    Example:

    >>> from keras_xlnet.tokenizers import XLNetTokenizer
    >>> texts = ["the cat sat on the mat", "the dog sat on the cat"] * 20
    >>> tokenizer = XLNetTokenizer.train(iter(texts), vocabulary_size=30)
    >>> ids = tokenizer(["the cat", ""])
    >>> ids.shape
    TensorShape([2, None])
    >>> tokenizer.detokenize(ids).numpy().tolist()
    [b'the cat', b'']
    >>> ids, offsets = tokenizer("the   cat", return_offsets=True)
    >>> offsets.start.numpy().tolist()
    [0, 0, 1, 2, 6, 6, 7]

    Source: Yang et al. 2019, "XLNet", and `prepro_utils.py` of its release; Kudo 2018, "Subword
    Regularization", for the unigram model.
    """

    def __init__(
        self,
        proto: bytes | PathLike | None,
        lowercase: bool = False,
        remove_accents: bool = False,
        remove_space: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.lowercase = lowercase
        self.remove_accents = remove_accents
        self.remove_space = remove_space
        self._proto: Any = None  # Bytes, once there is a vocabulary.
        #: Tuple of the ids of `<unk>`, `<s>`, `</s>`, `<cls>`, `<sep>`, `<pad>`, `<mask>`, `<eod>`
        #: and `<eop>`: 0 to 8, unless the vocabulary has others.
        self.special_token_ids: tuple[int, ...] = XLNET_IDS
        # Not tracked, because Keras would save it with every model. Made at the first use.
        self._untracked = types.SimpleNamespace(graph=None, blanks=None, host=None)
        if proto is not None:
            self._set_proto(read_proto(proto))

    @classmethod
    def train(
        cls,
        files: PathLike | Iterable[PathLike],
        vocabulary_size: int,
        proto_path: PathLike | None = None,
        lowercase: bool = False,
        remove_accents: bool = False,
        remove_space: bool = True,
        user_defined_symbols: Sequence[str] = (".", "(", ")", '"', "-", "–", "£", "€"),
        character_coverage: float = 0.99995,
        input_sentence_size: int = 10_000_000,
        **kwargs: Any,
    ) -> XLNetTokenizer:
        """Trains a tokenizer with the settings of the released models.

        The corpus is cleaned in the same way as the inputs of the tokenizer. The same corpus gives
        the same model. Lines of more than 4192 bytes are skipped, the default of SentencePiece.

        Args:
            files: Path or glob pattern of text files (also `.gz`) with one sentence per line, or a
                list of them; or any other iterable of strings with one sentence each, such as a
                generator, `iter(texts)`, a column of a table or an unbatched `tf.data.Dataset`.
            vocabulary_size: Int, number of pieces, including the special pieces.
            proto_path: Path where the SentencePiece model is written. `None` to not write it.
            lowercase, remove_accents, remove_space: See `XLNetTokenizer`.
            user_defined_symbols: Strings that are always one piece. Their ids begin at 9.
            character_coverage: Float, fraction of the characters of the corpus that the
                vocabulary covers.
            input_sentence_size: Int above 100, number of sentences to sample from a larger corpus.
            **kwargs: Other arguments of `XLNetTokenizer`.

        Returns:
            An `XLNetTokenizer`.

        Raises:
            FileNotFoundError: If a file does not exist.
            ValueError: If the corpus is empty, or `vocabulary_size` is not possible for it. The
                message contains the largest or smallest possible size.

        Example:

        >>> from keras_xlnet.tokenizers import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
        >>> tokenizer.vocabulary_size(), tokenizer.id_to_token(9)
        (24, '.')

        Source: "Custom Usage of XLNet" in the original's README, `spm_train`.
        """
        proto = train_proto(
            files,
            vocabulary_size,
            lowercase,
            remove_space,
            remove_accents,
            user_defined_symbols,
            character_coverage,
            input_sentence_size,
        )
        if proto_path is not None:
            write_proto(proto_path, proto)
        return cls(
            proto,
            lowercase=lowercase,
            remove_accents=remove_accents,
            remove_space=remove_space,
            **kwargs,
        )

    def call(
        self, inputs: Any, sampling_alpha: float | None = None, return_offsets: bool = False
    ) -> Any:
        if sampling_alpha is None and not return_offsets:
            return super().call(inputs)
        graph = self._require_graph()
        if sampling_alpha is None:
            return on_texts(graph.tokenize_with_offsets, inputs)
        return on_texts(lambda texts: graph.split(texts, sampling_alpha, return_offsets), inputs)

    def encode(self, texts: Any, return_offsets: bool = False) -> Any:
        """Converts texts to ids on the host, with sentencepiece and without TensorFlow.

        The ids and offsets equal the call's, except for texts with two splits of equal score.

        Args:
            texts: List, array or column of a table of strings, or of bytes in UTF-8.
            return_offsets: Bool, whether to return the position of each token in the given text.

        Returns:
            A list with an int32 array `(num_tokens,)` for each text. With `return_offsets`, a tuple
            of this list and one with an int64 array `(num_tokens, 2)` for each text: the `start`
            and the `end` of `TokenOffsets`, in characters.

        Example:

        >>> from keras_xlnet.tokenizers import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
        >>> [len(ids) for ids in tokenizer.encode(["a rose", ""])]
        [7, 0]
        >>> ids, offsets = tokenizer.encode(["is   a"], return_offsets=True)
        >>> offsets[0].tolist()
        [[0, 0], [0, 1], [1, 2], [5, 5], [5, 6]]
        """
        self._require_proto()
        return self._untracked.host.encode(as_texts(texts, "texts"), return_offsets)

    def _clean(self, text):
        return clean_text(text, *self._cleaning_flags())

    def _cleaning_flags(self):
        return self.lowercase, self.remove_space, self.remove_accents

    def compute_output_spec(
        self, inputs: Any, sampling_alpha: float | None = None, return_offsets: bool = False
    ) -> Any:
        ids = super().compute_output_spec(inputs)
        if not return_offsets:
            return ids
        place = keras.KerasTensor(ids.shape, dtype="int64", ragged=True)
        return ids, TokenOffsets(place, place, place, place)

    def with_tokens(self, tokens: Sequence[str]) -> XLNetTokenizer:
        """Returns a tokenizer with more tokens, which are never split, such as `"<url>"`.

        Their ids follow the ids of the vocabulary, in order. `model.with_vocabulary(tokenizer)`
        gives a model rows for them.

        Args:
            tokens: List of strings. They are found wherever they occur in a text, even within a
                word.

        Returns:
            An `XLNetTokenizer` with the other arguments of this one.

        Raises:
            ValueError: If a token is not a string, is in the vocabulary already, or is changed in a
                text, such as capitals with `lowercase`, or "①", which SentencePiece normalizes to
                "1".

        Example:

        >>> from keras_xlnet.tokenizers import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
        >>> tokenizer = tokenizer.with_tokens(["<url>"])
        >>> [tokenizer.id_to_token(id) for id in tokenizer("a rose <url>").numpy()][-1]
        '<url>'
        """
        self._require_proto()
        proto = add_tokens(self._proto, tokens)
        for token in tokens:
            cleaned = self._clean(token)
            # SentencePiece finds added tokens before it normalizes a text, and the graph after it.
            normalized = self._processor.normalize(cleaned).replace(_WORD_START, " ").strip()
            if cleaned != token or normalized != token.strip():
                raise ValueError(
                    f"`tokens` must be as this tokenizer cleans texts: {normalized!r}. Received: "
                    f"{token!r}"
                )
        return type(self)(**{**self.get_config(), "proto": proto})

    def split_at_blanks(self, text: str, blank: str = "<mask>") -> list[np.ndarray]:
        """Returns the tokens around the blanks of a text, as they are once the blanks are filled.

        The parts of the text are not tokenized separately, because a part would then begin with the
        piece of a space, even before a punctuation mark. The space before a blank belongs to the
        blank, as the first piece of a word includes the space before the word.

        If words fill the blanks, and the text is then split where the words begin and end, all
        other tokens are the ones returned here. SentencePiece does not split there if a piece
        contains the end of a word and the characters after it, such as `'s` or a suffix.

        Args:
            text: String.
            blank: String that stands for each blank in the text.

        Returns:
            List of int32 arrays: the ids before the first blank, between blanks, and after the
            last one. One array more than there are blanks.

        Example:

        >>> from keras_xlnet.tokenizers import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.from_preset("xlnet_small_en")
        >>> parts = tokenizer.split_at_blanks("The <mask> (in <mask>) is new.")
        >>> [[tokenizer.id_to_token(id) for id in part] for part in parts]
        [['▁The'], ['▁', '(', 'in'], [')', '▁is', '▁new', '.']]
        """
        self._require_proto()
        if self._untracked.blanks is None:
            self._untracked.blanks = self.with_tokens([_BLANK])
        text = text.replace(_BLANK, _UNKNOWN).replace(blank, _BLANK)
        (ids,) = self._untracked.blanks.encode([text])
        is_blank = ids == self.vocabulary_size()
        is_space = ids == self._processor.piece_to_id(_WORD_START)
        kept = ~(is_space & np.append(is_blank[1:], False))
        ids, is_blank = ids[kept], is_blank[kept]
        parts = np.split(ids, np.flatnonzero(is_blank))
        return [parts[0], *(part[1:] for part in parts[1:])]

    def preprocess(self, inputs: Any) -> tf.Tensor | tf.RaggedTensor:
        """Cleans texts as the call does, without splitting them into pieces.

        Args:
            inputs: Strings of shape `(...)`, as in the call.

        Returns:
            A string tensor of the same shape, the result of the original's `preprocess_text`.

        Example:

        >>> from keras_xlnet.tokenizers import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer(None, lowercase=True, remove_accents=True)
        >>> tokenizer.preprocess("  Caf\\u00e9  NOIR ").numpy()
        b'cafe noir'
        """
        return on_texts(lambda texts: preprocess_text(texts, *self._cleaning_flags()), inputs)

    def detokenize(self, inputs: Any) -> tf.Tensor:
        """Converts ids back to text, in the graph.

        The nine `special_token_ids`, including padding, are removed. Cleaning is not undone.

        Args:
            inputs: Integer ids `(num_tokens,)` or `(batch, num_tokens)`, dense or ragged.

        Returns:
            A string tensor `()` or `(batch,)`.

        Raises:
            ValueError: If `inputs` are not integers of rank 1 or 2.
            tf.errors.InvalidArgumentError: If an id is negative or not in the vocabulary.
        """
        graph = self._require_graph()
        with tf.device("CPU:0"):
            ids = as_ids(inputs)
            if ids.shape.rank == 1:
                return graph.detokenize(tf.RaggedTensor.from_tensor(ids[tf.newaxis]))[0]
            return graph.detokenize(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Converts ids back to text on the host, as `detokenize` does.

        Args:
            ids: Integers `(num_tokens,)`.

        Returns:
            A string.

        Raises:
            ValueError: If an id is not in the vocabulary.
        """
        processor = self._require_proto()
        ids = np.asarray(ids)
        size = processor.vocab_size()
        if ids.ndim != 1 or (ids.size and not np.issubdtype(ids.dtype, np.integer)):
            raise ValueError(
                f"`ids` must be integers of rank 1. Received: dtype {ids.dtype}, shape {ids.shape}"
            )
        if ((ids < 0) | (ids >= size)).any():
            raise ValueError(f"`ids` must be from 0 to {size - 1}. Received: {ids.tolist()}")
        special = set(self.special_token_ids)
        return processor.decode([int(index) for index in ids if index not in special])

    @property
    def has_vocabulary(self) -> bool:
        """Bool, whether the tokenizer has a SentencePiece model. A config does not contain one."""
        return self._proto is not None

    @property
    def vocabulary_sha256(self) -> str:
        """String, the SHA-256 of the SentencePiece model, equal to the SHA-256 of its file."""
        self._require_proto()
        return hashlib.sha256(self._proto).hexdigest()

    def vocabulary_size(self) -> int:
        """Returns the number of pieces, including the special pieces."""
        return self._require_proto().vocab_size()

    def id_to_token(self, index: int) -> str:
        """Returns the piece of an id.

        Raises:
            ValueError: If the id is not in the vocabulary.
        """
        if not 0 <= index < self.vocabulary_size():
            raise ValueError(
                f"`index` must be in [0, {self.vocabulary_size()}). Received: index={index}"
            )
        return self._processor.id_to_piece(int(index))

    def token_to_id(self, token: str) -> int:
        """Returns the id of a piece, or `unk_token_id` if it is not in the vocabulary."""
        return self._require_proto().piece_to_id(token)

    unk_token_id = _id_of("<unk>", ", for unknown pieces")
    cls_token_id = _id_of("<cls>")
    sep_token_id = _id_of("<sep>")
    pad_token_id = _id_of("<pad>")
    mask_token_id = _id_of("<mask>")
    eod_token_id = _id_of("<eod>", ", the end of a document")
    eop_token_id = _id_of("<eop>", ", the end of a paragraph")

    def get_config(self) -> dict[str, Any]:
        # The SentencePiece model is saved as an asset, not in the config.
        return {
            **super().get_config(),
            "proto": None,
            "lowercase": self.lowercase,
            "remove_accents": self.remove_accents,
            "remove_space": self.remove_space,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> XLNetTokenizer:
        # A config from an untrusted source must not make this process read a file.
        if config.get("proto") is not None:
            raise ValueError(
                "`proto` must be None in a config, which does not contain a SentencePiece model. "
                f"Received: proto={config['proto']!r}"
            )
        return super().from_config(config)

    @classmethod
    def from_preset(cls, location: PathLike) -> XLNetTokenizer:
        """Loads the tokenizer of a preset.

        Args:
            location: Directory, `"hf://owner/name"` or URL of the preset, as for
                `XLNetBackbone.from_preset`.

        Returns:
            An `XLNetTokenizer` with the arguments with which it was saved.

        Raises:
            FileNotFoundError: If `location` has no `tokenizer.json` or no `assets/spiece.model`.
            ConnectionError: If `location` cannot be reached.
            ValueError: If a file is damaged.

        Example:

        >>> import tempfile
        >>> from keras_xlnet.tokenizers import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.train(
        ...     iter(["a rose is a rose"] * 9), vocabulary_size=24, lowercase=True)
        >>> directory = tempfile.mkdtemp()
        >>> tokenizer.save_to_preset(directory)
        >>> XLNetTokenizer.from_preset(directory).lowercase
        True
        """
        return load_tokenizer(location, cls)

    def save_to_preset(self, directory: PathLike) -> None:
        """Writes `tokenizer.json` and `assets/spiece.model` to a directory.

        To save a model together with its tokenizer, use
        `model.save_to_preset(directory, tokenizer)`.

        Args:
            directory: Path of the preset. It is created if it does not exist.
        """
        save_tokenizer(self, directory)

    def save(self, path: PathLike) -> None:
        """Writes the SentencePiece model to a file for `XLNetTokenizer(path)`.

        The file does not contain `lowercase`, `remove_accents` and `remove_space`. `save_to_preset`
        writes them too.

        Args:
            path: Path of the file, such as `"spiece.model"`. Its folder must exist.

        Example:

        >>> import pathlib, tempfile
        >>> from keras_xlnet.tokenizers import XLNetTokenizer
        >>> tokenizer = XLNetTokenizer.train(iter(["a rose is a rose"] * 9), vocabulary_size=24)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rose.model"
        >>> tokenizer.save(path)
        >>> XLNetTokenizer(path).vocabulary_size()
        24
        """
        self._require_proto()
        write_proto(path, self._proto)

    def save_assets(self, dir_path: PathLike) -> None:
        """Writes the SentencePiece model to `spiece.model` in a directory. Called by Keras."""
        self._require_proto()
        write_proto(os.path.join(dir_path, _ASSET), self._proto)

    def load_assets(self, dir_path: PathLike) -> None:
        """Reads the SentencePiece model from `spiece.model` in a directory. Called by Keras."""
        # If several layers share a tokenizer, Keras saves its assets only once and passes None for
        # the others. These layers (`XLNetTextClassifierPreprocessor`) save the assets themselves.
        if dir_path is not None:
            self._set_proto(read_proto(os.path.join(dir_path, _ASSET)))

    def _set_proto(self, proto):
        self._processor = load_processor(proto)
        self._proto = proto
        self.special_token_ids = special_ids(self._processor)
        host = HostTokenizer(proto, self._processor, self._cleaning_flags())
        # Values that were cached at first use belong to another vocabulary.
        self._untracked = types.SimpleNamespace(graph=None, blanks=None, host=host)

    def _require_proto(self):
        if self._proto is None:
            raise ValueError(
                "This XLNetTokenizer has no SentencePiece model, because a config does not contain "
                "it. Pass `proto` to the constructor or call `load_assets(directory)`."
            )
        return self._processor

    def _require_graph(self) -> GraphTokenizer:
        processor = self._require_proto()
        if self._untracked.graph is None:
            flags = self._cleaning_flags()
            self._untracked.graph = GraphTokenizer(self._proto, processor, *flags)
        return self._untracked.graph

    def _tokenize(self, texts):
        return self._require_graph().tokenize(texts)

"""Converts texts to the ids of an `XLNetTokenizer` on the host, with sentencepiece and NumPy.

Exported directories contain this file (`serving/portable/`), so it does not import Keras.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_xlnet.tokenizers.cleaning import clean_text
from keras_xlnet.tokenizers.digit_comma import digit_comma_rows
from keras_xlnet.tokenizers.host_cleaning import clean_with_places
from keras_xlnet.tokenizers.host_offsets import HostOffsetFinder

# From this number of texts on, sentencepiece uses several threads.
_MANY = 64


class HostTokenizer:
    """Converts texts to ids: cleaning, SentencePiece, and the rule for digits and commas.

    Args:
        proto: Bytes of the SentencePiece model.
        processor: A `sentencepiece.SentencePieceProcessor` of the model.
        flags: Three bools, `lowercase`, `remove_space` and `remove_accents`.
    """

    def __init__(self, proto: bytes, processor: Any, flags: Sequence[bool]) -> None:
        self._proto = proto
        self._processor = processor
        self._flags = tuple(flags)
        self._parts = digit_comma_rows(processor)
        self._is_split = np.array([row != [index] for index, row in enumerate(self._parts)])
        # Made at the first use.
        self._offset_finder: HostOffsetFinder | None = None

    def encode(self, texts: list[str], return_offsets: bool = False) -> Any:
        """Returns what `XLNetTokenizer.encode` does, for a list of strings."""
        if not return_offsets:
            cleaned = [clean_text(text, *self._flags) for text in texts]
            return [*map(self._split_digit_commas, self._pieces(cleaned))]
        if self._offset_finder is None:
            self._offset_finder = HostOffsetFinder(self._proto, self._processor)
        with_places = [clean_with_places(text, *self._flags) for text in texts]
        rows = self._pieces([text.text for text in with_places])
        pairs = zip(with_places, rows, strict=True)
        offsets = [self._offset_finder.offsets(*pair) for pair in pairs]
        return [*map(self._split_digit_commas, rows)], offsets

    def token_to_id(self, token: str) -> int:
        """Returns the id of a piece, or the id of `<unk>` if it is not in the vocabulary."""
        return self._processor.piece_to_id(token)

    def _pieces(self, cleaned):
        """The ids of cleaned texts, before the rule for digits and commas."""
        threads = 1 if len(cleaned) < _MANY else -1
        rows = self._processor.encode(cleaned, out_type=int, num_threads=threads)
        return [np.array(row, "int32") for row in rows]

    def _split_digit_commas(self, ids):
        if not self._is_split[ids].any():
            return ids
        return np.array([part for index in ids for part in self._parts[index]], "int32")

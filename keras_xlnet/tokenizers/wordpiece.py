"""WordPiece, BERT's way of splitting texts."""

from __future__ import annotations

import collections
import functools
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence

from keras_xlnet.registration import refuse_unknown_arguments
from keras_xlnet.tokenizers.sentencepiece_model import SPECIAL_TOKENS as XLNET_SPECIAL_TOKENS
from keras_xlnet.tokenizers.wordpiece_model import sentencepiece_proto

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_UNUSED = re.compile(r"\[unused\d+\]")
_CONTINUES = "##"
_WORD_START = "\u2581"
# A longer word is one unknown token, as in BERT.
_MOST_CHARACTERS = 100
# Blocks of Unicode whose characters BERT treats as words.
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


@refuse_unknown_arguments
class WordPieceVocabulary:
    """A BERT vocabulary, and BERT's way of splitting texts with it.

    A text is cleaned and split into words at white space and punctuation. A word is split into the
    longest token that it begins with, the longest token that the rest begins with, and so on.

    `to_sentencepiece` returns a SentencePiece model for an `XLNetTokenizer`, which splits nearly
    all texts in the same way.

    Args:
        tokens: Strings, the lines of `vocab.txt`: a token's place is its id. A token that
            continues a word begins with `##`.
        lowercase: Bool, whether texts are converted to lower case (`do_lower_case`).
        strip_accents: Bool, whether accents are dropped, and Hangul syllables split into letters,
            as in BERT. `None`: the value of `lowercase`.
        keep: Optional collection of tokens to keep, or a function from a token to a bool. Other
            tokens are left out, except for characters of kept tokens. Tokens `[unused0]`,
            `[unused1]`, ... are always left out.
        split_ideographs: Bool, whether each Chinese character is a word (`tokenize_chinese_chars`).

    Raises:
        ValueError: If `[PAD]`, `[UNK]`, `[CLS]`, `[SEP]` or `[MASK]` is not in the vocabulary.

    Example:

    >>> special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    >>> tokens = [*special, "the", "turtle", "##s", "swim", ",", *"tursleswimh"]
    >>> vocabulary = keras_xlnet.tokenizers.WordPieceVocabulary(tokens)
    >>> vocabulary.split("The turtles, 99")
    ['the', 'turtle', '##s', ',', '[UNK]']
    >>> vocabulary.encode("The turtles")
    [5, 6, 7]

    Source: Devlin et al. 2019, "BERT", and `tokenization.py` of its release; Wu et al. 2016,
    "Google's Neural Machine Translation System", section 4.1, for WordPiece.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        lowercase: bool = True,
        strip_accents: bool | None = None,
        keep: Collection[str] | Callable[[str], bool] | None = None,
        split_ideographs: bool = True,
    ) -> None:
        self.tokens = tuple(tokens)
        self.lowercase = bool(lowercase)
        self.strip_accents = self.lowercase if strip_accents is None else bool(strip_accents)
        self.split_ideographs = bool(split_ideographs)
        # The last of several equal lines counts, as in transformers.
        ids = {token: index for index, token in enumerate(self.tokens)}
        missing = [token for token in SPECIAL_TOKENS if token not in ids]
        if missing:
            raise ValueError(
                f"`tokens` must contain {', '.join(SPECIAL_TOKENS)}. Missing: {missing}"
            )
        kept = _kept([*filter(_is_text, ids)], keep).union(SPECIAL_TOKENS)
        self._ids = {token: index for token, index in ids.items() if token in kept}
        self._longest = max(map(len, self._ids))

    def split(self, text: str) -> list[str]:
        """Returns the tokens of a text.

        Args:
            text: String. Special tokens in it are ordinary text.

        Returns:
            List of strings. A word that cannot be split is one `[UNK]`.
        """
        return [token for word in self.words(text) for token in self._split_word(word)]

    def encode(self, text: str) -> list[int]:
        """Returns the ids of the tokens of a text, without `[CLS]` and `[SEP]`."""
        return [self._ids[token] for token in self.split(text)]

    def words(self, text: str) -> list[str]:
        """Returns the words of a text, cleaned: BERT's "basic tokenization"."""
        return "".join(map(self.replacement, text)).split()

    def counts(self, texts: Iterable[str]) -> collections.Counter[str]:
        """Returns how often each token occurs in texts, as a basis for `keep`.

        Example:

        >>> special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        >>> vocabulary = keras_xlnet.tokenizers.WordPieceVocabulary([*special, "a", "rose", "is"])
        >>> vocabulary.counts(["A rose is a rose"])["rose"]
        2
        """
        return collections.Counter(token for text in texts for token in self.split(text))

    def to_sentencepiece(self, texts: Iterable[str] = ()) -> bytes:
        """Returns a SentencePiece model that splits nearly all texts as this vocabulary does.

        The token `abc` becomes the piece `▁abc`, `##abc` becomes `abc`, and XLNet's nine special
        pieces come first. Normalization rules reproduce BERT's cleaning. The scores of the unigram
        model are fitted so that the best split of a word is the longest match from the left, which
        is not possible for every word. A word with an unknown character is not unknown as a whole,
        and `▁` is a separate piece before an unknown character. `tensorflow_text` splits tokens
        with punctuation that are added later (`XLNetTokenizer.with_tokens`); `encode` does not.

        Args:
            texts: Strings. The scores are fitted to their words, and to words that are assembled
                from the tokens.

        Returns:
            Bytes for `XLNetTokenizer(proto)`. It needs neither `lowercase` nor `remove_accents`.

        Example:

        >>> special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        >>> tokens = [*special, "the", "turtle", "##s", ",", *"abcdefghijklmnopqrstuvwxyz"]
        >>> vocabulary = keras_xlnet.tokenizers.WordPieceVocabulary(tokens)
        >>> tokenizer = keras_xlnet.tokenizers.XLNetTokenizer(vocabulary.to_sentencepiece())
        >>> [tokenizer.id_to_token(id) for id in tokenizer.encode(["The turtles,"])[0]]
        ['▁the', '▁turtle', 's', '▁,']
        """
        words = {word for text in texts for word in self.words(text)}
        return sentencepiece_proto(self, sorted(words))

    @functools.cached_property
    def pieces(self) -> dict[str, int]:
        """Dict from the pieces of the SentencePiece model, in order, to ids of this vocabulary.

        It has no special pieces. Characters that are not tokens, and `▁`, are pieces with the id of
        `[UNK]`.
        """
        pieces = {}
        for token, index in self._ids.items():
            if token not in SPECIAL_TOKENS:
                pieces[_as_piece(token)] = index
        # Offsets need a piece for each character.
        for character in sorted({_WORD_START, *"".join(pieces)}):
            pieces.setdefault(character, self._ids["[UNK]"])
        return pieces

    def id_of(self, token: str) -> int:
        """Returns the id of a token, such as `"[CLS]"`."""
        return self._ids[token]

    def word_pieces(self, word: str) -> list[str]:
        """Returns the pieces of a word in the SentencePiece model, `[]` for an unknown word."""
        tokens = self._split_word(word)
        return [] if tokens == ["[UNK]"] else [*map(_as_piece, tokens)]

    def replacement(self, character: str) -> str:
        """Returns the result of cleaning a character: none, one or more characters, or spaces."""
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            return " "
        if character in "\0\ufffd" or category in ("Cc", "Cf"):
            return ""
        if self.lowercase:
            character = character.lower()
        if self.strip_accents:
            character = "".join(
                part
                for part in unicodedata.normalize("NFD", character)
                if unicodedata.category(part) != "Mn"
            )
        is_word = _is_word if self.split_ideographs else _is_punctuation
        return "".join(f" {part} " if is_word(part) else part for part in character)

    def _split_word(self, word):
        if len(word) > _MOST_CHARACTERS:
            return ["[UNK]"]
        tokens, place, prefix = [], 0, ""
        while place < len(word):
            for end in range(min(len(word), place + self._longest), place, -1):
                token = prefix + word[place:end]
                if token in self._ids:
                    break
            else:
                return ["[UNK]"]
            tokens.append(token)
            place, prefix = end, _CONTINUES
        return tokens


def _kept(tokens, keep):
    """Returns the set of tokens to keep, with the tokens that are their single characters."""
    if keep is None:
        return set(tokens)
    kept = set(filter(keep if callable(keep) else set(keep).__contains__, tokens))
    characters = {character for token in kept for character in _text(token)}
    return kept | {token for token in tokens if _text(token) in characters}


def _text(token):
    """Returns what a token stands for in a text."""
    return token if token == _CONTINUES else token.removeprefix(_CONTINUES)


def _is_text(token):
    """Returns whether a token can occur in a text."""
    is_special = token.removeprefix(_CONTINUES) in XLNET_SPECIAL_TOKENS
    return bool(token) and not (is_special or _UNUSED.fullmatch(token) or _WORD_START in token)


def _as_piece(token):
    text = _text(token)
    return _WORD_START + token if text == token else text


def _is_word(character):
    """Returns whether a character is a separate word: punctuation, symbols and ideographs."""
    code = ord(character)
    is_ideograph = any(first <= code <= last for first, last in _IDEOGRAPHS)
    return is_ideograph or _is_punctuation(character)


def _is_punctuation(character):
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")

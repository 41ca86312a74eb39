"""Makes a SentencePiece model of a WordPiece vocabulary: its pieces and rules of normalization."""

import io
import os
import sys
import tempfile
import unicodedata
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
from keras_xlnet.tokenizers.wordpiece_scores import fit_scores

# The score of `▁` and of characters that are no tokens: as low as those of four pieces. Not lower,
# so that `▁` and an added token are better than the pieces of the token.
_LOWEST = -45.0


def sentencepiece_proto(vocabulary: Any, words: list[str]) -> bytes:
    """Returns the bytes of the model that `WordPieceVocabulary.to_sentencepiece` describes.

    Args:
        vocabulary: A `WordPieceVocabulary`.
        words: List of words of texts, cleaned.
    """
    pieces = [*vocabulary.pieces]
    unknown = vocabulary.id_of("[UNK]")
    others = [piece for piece, index in vocabulary.pieces.items() if index == unknown]
    scores = fit_scores(pieces, others, words, vocabulary.word_pieces, _LOWEST)
    rules = normalization_rules(vocabulary.replacement, set("".join(pieces)))
    model = SentencePieceProto.unigram(_with_special(pieces, scores), compile_rules(rules))
    return model.serialize()


def _with_special(pieces, scores):
    # Not even `<eop>` is a symbol of users: `tensorflow_text` normalizes these, and would split it.
    unknown, *control = SPECIAL_TOKENS
    special = [Piece(unknown, type=UNKNOWN), *(Piece(piece, type=CONTROL) for piece in control)]
    return special + [Piece(p, float(s), NORMAL) for p, s in zip(pieces, scores, strict=True)]


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


def compile_rules(rules: dict[str, str]) -> bytes:
    """Returns rules of normalization as a SentencePiece model has them.

    Only the trainer of SentencePiece compiles them, so a model is trained, and thrown away.
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

"""Fills blanks in sentences with an `XLNetPermutationLM`, for what_it_knows.py."""

import dataclasses
import re

import numpy as np

from keras_xlnet.task_files import read_table

# Text before every sentence, because the rows of pretraining are never as short as a sentence. It
# ends with a document, as texts in the records do, and says nothing of what is asked.
CONTEXT = """\
We had walked along the canal for most of the afternoon and talked of nothing in particular. \
Some boats were lying under the trees. A woman on one of them was hanging up shirts, and she \
waved when she noticed us. Further on, the path became narrow and turned away from the bank, \
between gardens and sheds, until we came to a small square with a fountain and a few benches. \
No one else was there. We sat for some time, and then we went back the way we had come."""
# Stands in for a word that cannot be known.
UNKNOWN, PLACEHOLDER = "?", "it"


@dataclasses.dataclass(frozen=True)
class FillIn:
    """A sentence with a blank. The first of `answers` says how many pieces the blank has.

    `answers` is empty if there is no right one; the blank then has one piece.
    """

    kind: str
    before: str
    answers: tuple
    after: str

    @property
    def sentence(self):
        return f"{self.before}____{self.after}"

    @property
    def right_pieces(self):
        """The answers as SentencePiece writes them: `▁` where a space stands before them."""
        space = "" if self.before.strip() and not self.before.endswith(" ") else "▁"
        return [space + answer.replace(" ", "▁") for answer in self.answers]


def read_fill_ins(path):
    """Returns the sentences of a file with the columns `kind` and `sentence`.

    The blank of a sentence is `{answer}`, `{answer|other answer}` or `{?}`.

    Args:
        path: `pathlib.Path` of the file.

    Raises:
        ValueError: If a row does not have this form.
    """
    table = read_table(path, {"kind": "kind", "sentence": "sentence"})
    found = []
    for kind, sentence in zip(table["kind"], table["sentence"], strict=True):
        match = re.fullmatch(r"([^{}]*)\{([^{}]+)\}([^{}]*)", sentence)
        if match is None:
            raise ValueError(f"{path}: not a sentence with one blank: {sentence!r}")
        before, answers, after = match.groups()
        answers = () if answers == UNKNOWN else tuple(answers.split("|"))
        found.append(FillIn(kind, before, answers, after))
    return found


class RowMaker:
    """Makes rows that look like those of pretraining: `[context, <eod>, text, <sep>, <cls>]`.

    Args:
        tokenizer: An `XLNetTokenizer`.
        length: Int, the number of tokens of a row.
    """

    def __init__(self, tokenizer, length):
        self.tokenizer = tokenizer
        self.length = length
        self.ending = [tokenizer.sep_token_id, tokenizer.cls_token_id]
        self.context = [*self.pieces(CONTEXT), tokenizer.eod_token_id]

    def pieces(self, text):
        return [int(i) for i in np.asarray(self.tokenizer(text))]

    def row(self, pieces):
        """Returns a row, and where the text begins in it.

        Raises:
            ValueError: If the text is too long for a row.
        """
        room = self.length - len(self.ending) - len(pieces)
        if room < 0:
            raise ValueError(
                f"`length` must be at least {self.length - room} for a text of {len(pieces)} "
                f"pieces. Received: length={self.length}"
            )
        # The end of the context, repeated in long rows.
        context = (self.context * (room // len(self.context) + 1))[-room:] if room else []
        return [*context, *pieces, *self.ending], room

    def segment_ids(self, count):
        """Returns the segments of `count` rows: 0, and 2 for `<cls>`."""
        return np.tile([0] * (self.length - 1) + [2], (count, 1)).astype("int32")

    def blank(self, fill_in):
        """Returns the pieces of a sentence with its first answer, and where the blank is.

        Returns:
            The pieces, and the `slice` of those of the answer; or `None` if the vocabulary does
            not split the sentence at the blank.
        """
        answer = fill_in.answers[0] if fill_in.answers else PLACEHOLDER
        before, until, pieces = (
            self.pieces(text)
            for text in (
                fill_in.before,
                fill_in.before + answer,
                fill_in.before + answer + fill_in.after,
            )
        )
        if pieces[: len(before)] != before or pieces[: len(until)] != until:
            return None
        if len(until) == len(before):
            return None
        return pieces, slice(len(before), len(until))


def fill(model, rows, blanks, width=5):
    """Returns the most probable fillings of blanks.

    The pieces of a blank are filled from left to right; the best `width` beginnings are kept. A
    piece that is not filled yet is seen by no token. All other tokens see each other, except that
    the first half of a row sees nothing of the second, as in pretraining.

    Args:
        model: An `XLNetPermutationLM` without memory.
        rows: `RowMaker`.
        blanks: List of `(pieces, slice)` as `RowMaker.blank` returns them.
        width: Int, number of fillings of a blank.

    Returns:
        For each blank a list of `(pieces, probability)`, the most probable first.
    """
    placed = [rows.row(pieces) for pieces, _ in blanks]
    starts = [begin + blank.start for (_, begin), (_, blank) in zip(placed, blanks, strict=True)]
    lengths = [blank.stop - blank.start for _, blank in blanks]
    found = [[([], 0.0)] for _ in blanks]
    for step in range(max(lengths, default=0)):
        active = [i for i in range(len(blanks)) if lengths[i] > step]
        batch = [(i, pieces) for i in active for pieces, _ in found[i]]
        token_ids = np.array([placed[i][0] for i, _ in batch], "int32")
        hidden = np.zeros(token_ids.shape, "bool")
        for row, (i, pieces) in enumerate(batch):
            token_ids[row, starts[i] : starts[i] + step] = pieces
            hidden[row, starts[i] + step : starts[i] + lengths[i]] = True
        targets = np.array([[starts[i] + step] for i, _ in batch], "int32")
        scores = iter(predict(model, rows, token_ids, hidden, targets))
        for i in active:
            longer = []
            for pieces, score in found[i]:
                log_probabilities = next(scores)
                best = np.argsort(-log_probabilities)[:width]
                longer += [([*pieces, int(p)], score + log_probabilities[p]) for p in best]
            found[i] = sorted(longer, key=lambda filling: -filling[1])[:width]
    return [[(pieces, float(np.exp(score))) for pieces, score in best] for best in found]


def predict(model, rows, token_ids, hidden, targets):
    """Returns the log probabilities of all pieces at one position of each row."""
    visible = np.repeat(~hidden[:, np.newaxis], rows.length, axis=1)
    half = rows.length // 2
    visible[:, :half, half:] = False
    inputs = {
        "token_ids": token_ids,
        "segment_ids": rows.segment_ids(len(token_ids)),
        "permutation_mask": visible,
        "target_positions": targets,
    }
    logits = model.predict(inputs, batch_size=64, verbose=0)["logits"][:, 0].astype("float64")
    logits -= logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

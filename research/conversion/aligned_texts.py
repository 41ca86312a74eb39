"""Texts split by two tokenizers, and the tokens that they share."""

import itertools

import numpy as np


class AlignedTexts:
    """A corpus for a student and a teacher, whose tokenizers split each word separately.

    Args:
        arrays: Dict of arrays: `words`, the corpus as indices of different words; `lines` and
            `documents`, where each line begins in `words` and each document in `lines`, and their
            ends; for each word `student_ids` and `teacher_ids`, one after the other, and their
            numbers `student_lengths` and `teacher_lengths`; `same`, whether they agree.
    """

    def __init__(self, arrays):
        self._lines, self._documents = arrays["lines"], arrays["documents"]
        words = arrays["words"]
        self._student = _Tokens(arrays["student_ids"], arrays["student_lengths"], words)
        self._teacher = _Tokens(arrays["teacher_ids"], arrays["teacher_lengths"], words)
        lengths = arrays["student_lengths"][words]
        self._word_starts = np.zeros(len(self._student.ids) + 1, bool)
        self._word_starts[self._student.starts[:-1]] = True
        shift = self._teacher.starts[:-1] - self._student.starts[:-1]
        places = np.arange(len(self._student.ids), dtype="int32") + np.repeat(shift, lengths)
        self._places = np.where(np.repeat(arrays["same"][words], lengths), places, -1)

    @staticmethod
    def split(documents, tokenizer, vocabulary, counterparts):
        """Returns the arrays of documents, each a list of lines.

        Args:
            documents: Iterable of lists of strings.
            tokenizer: The `XLNetTokenizer` of the student.
            vocabulary: The `WordPieceVocabulary` of the teacher.
            counterparts: Int array, the teacher's id of each id of the student.
        """
        index, words, lines, starts = {}, [], [0], [0]
        for document in documents:
            for line in document:
                words.append(np.array([index.setdefault(w, len(index)) for w in line.split()], "i"))
                lines.append(lines[-1] + len(words[-1]))
            starts.append(len(lines) - 1)
        student = tokenizer.encode([*index])
        teacher = [vocabulary.encode(word) for word in index]
        pairs = zip(student, teacher, strict=True)
        same = [np.array_equal(counterparts[np.array(a, int)], b) for a, b in pairs]
        return {
            "words": np.concatenate(words),
            "lines": np.array(lines),
            "documents": np.array(starts),
            "same": np.array(same),
            **_flat("student", student),
            **_flat("teacher", teacher),
        }

    def chunks(self, most_words, of_documents, rng):
        """Returns ranges of words in random order, from all lines or all documents.

        Args:
            most_words: Pair of ints, the range of the largest number of words of a chunk.
            of_documents: Bool, whether a chunk may have words of several lines of a document.
            rng: A `numpy.random.Generator`.

        Returns:
            Int array `(number, 2)`, the first word and the one after the last.
        """
        bounds = self._lines[self._documents] if of_documents else self._lines
        most = rng.integers(most_words[0], most_words[1] + 1, len(bounds) - 1)
        counts = -(-np.diff(bounds) // most)
        first = np.repeat(bounds[:-1], counts)
        number = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        most = np.repeat(most, counts)
        start = first + number * most
        end = np.minimum(start + most, np.repeat(bounds[1:], counts))
        return rng.permutation(np.stack([start, end], axis=1))

    def fitting(self, chunks, length):
        """Returns the chunks that have from 3 to `length` tokens in both tokenizers."""
        counts = [t.starts[chunks[:, 1]] - t.starts[chunks[:, 0]] for t in self._both]
        return chunks[(np.min(counts, axis=0) >= 3) & (np.max(counts, axis=0) <= length)]

    def rows(self, chunks):
        """Returns the tokens of chunks, one row for each, and the places of the teacher's tokens.

        Returns:
            Tuple: ids of the student, whether they begin a word, the place of the same token in the
            row of the teacher or -1, ids of the teacher. Each is a pair of an array and a bool
            array that is `True` where there is a token.
        """
        student, teacher = (t.ranges(chunks) for t in self._both)
        first = self._teacher.starts[chunks[:, 0]][:, np.newaxis]
        places = self._places[student[0]]
        return (
            (self._student.ids[student[0]], student[1]),
            (self._word_starts[student[0]], student[1]),
            (np.where(places < 0, -1, places - first), student[1]),
            (self._teacher.ids[teacher[0]], teacher[1]),
        )

    @property
    def _both(self):
        return self._student, self._teacher


class _Tokens:
    """The tokens of the whole corpus, and the start of each word among them."""

    def __init__(self, ids, lengths, words):
        offsets = np.concatenate([[0], np.cumsum(lengths)])[:-1]
        lengths = lengths[words]
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype="int32")]).astype("int32")
        shift = np.repeat(offsets[words].astype("int32") - self.starts[:-1], lengths)
        self.ids = ids[np.arange(len(shift), dtype="int32") + shift]

    def ranges(self, chunks):
        """Returns the indices of the tokens of chunks, padded on the right, and their mask."""
        first, end = self.starts[chunks[:, 0]], self.starts[chunks[:, 1]]
        columns = np.arange((end - first).max())
        mask = columns < (end - first)[:, np.newaxis]
        return np.where(mask, first[:, np.newaxis] + columns, 0), mask


def _flat(name, rows):
    return {
        f"{name}_ids": np.array([*itertools.chain.from_iterable(rows)], "uint16"),
        f"{name}_lengths": np.array([*map(len, rows)], "int32"),
    }

"""Words and their tags, a word a line, in the format of CoNLL."""

import pathlib
import re
from collections.abc import Iterator, Sequence

from keras_xlnet.task_files.reporting import (
    check_has_rows,
    existing_file,
    file_error,
    in_cell,
    lines_of,
    read_text,
    shown,
)
from keras_xlnet.types import PathLike

_TAG = re.compile(r"O|[BIES]-[^\s,]+")
_TAG_FORMS = "be O, or B-, I-, E- or S- and one type without a comma"
_DOCUMENT_START = "-DOCSTART-"
_DOCUMENT_START_LINE = re.compile(rf"{_DOCUMENT_START}([ \t]|$)")


def read_conll(
    path: PathLike,
    word_column: int = 0,
    tag_column: int = -1,
    delimiter: str | None = None,
) -> dict[str, list[list[str]]]:
    """Reads sentences of words with tags, such as those of WNUT 2017 and CoNLL 2003.

    A sentence ends at an empty line, at one that has only tabs and spaces, and at a line that
    begins with `-DOCSTART-`. All other lines must have equally many columns.

    Of WNUT 2017, read `emerging.test.annotated` and not `emerging.test.conll`: in that, words have
    the tags of several annotators, such as `B-person,B-group`.

    Args:
        path: The file.
        word_column: Int, the index of the column of words, negative from the end.
        tag_column: Int, the index of the column of tags.
        delimiter: Optional character between columns. Defaults to a tab if the first word has one
            in its line, and otherwise to one or more spaces.

    Returns:
        Dict of two lists with one entry a sentence: `words` and `tags`, lists of strings of equal
        lengths. Words can be any text, also a space such as U+00A0.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If an argument is not as above.
        TaskFileError: If a line has no tag, no word, or more or fewer columns than the first, or a
            tag is neither `O` nor one of `B-`, `I-`, `E-` and `S-` with a type. The message names
            the line.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.task_files import read_conll
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.conll"
    >>> _ = path.write_text("Empire\\tB-location\\nState\\tI-location\\n.\\tO\\n\\nHello\\tO\\n")
    >>> sentences = read_conll(path)
    >>> sentences["words"]
    [['Empire', 'State', '.'], ['Hello']]
    >>> sentences["tags"]
    [['B-location', 'I-location', 'O'], ['O']]

    Source: Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 shared task";
    Derczynski et al. 2017, "Results of the WNUT2017 shared task on novel and emerging entity
    recognition".
    """
    if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1):
        raise ValueError(f"`delimiter` must be one character. Received: {shown(delimiter)}")
    path = existing_file("path", path)
    lines = lines_of(read_text(path))
    words: list[list[str]] = []
    tags: list[list[str]] = []
    is_new_sentence = True
    for line, row in _rows(path, lines, delimiter):
        if row is None:
            is_new_sentence = True
            continue
        word, tag = _word_and_tag(path, line, row, word_column, tag_column)
        if is_new_sentence:
            words.append([])
            tags.append([])
        words[-1].append(word)
        tags[-1].append(tag)
        is_new_sentence = False
    check_has_rows(path, words)
    return {"words": words, "tags": tags}


def _rows(
    path: pathlib.Path, lines: list[str], delimiter: str | None
) -> Iterator[tuple[int, list[str] | None]]:
    """Yields (line, columns), with `None` where a sentence ends."""
    first = None
    for line, text in enumerate(lines, 1):
        # Only these characters: words of tweets are other spaces, and a line with nothing but such
        # a word has lost its tag.
        if not text.strip(" \t") or _DOCUMENT_START_LINE.match(text):
            yield line, None
            continue
        if delimiter is None and first is None:
            delimiter = "\t" if "\t" in text else None
        row = text.split(delimiter) if delimiter else re.findall("[^ ]+", text)
        first = first or (line, len(row))
        if len(row) != first[1]:
            must = f"have as many columns as line {first[0]}, {first[1]}"
            raise file_error(path, f"line {line}", must, f"{len(row)}, {shown(row)}")
        yield line, row


def _word_and_tag(path, line, row, word_column, tag_column):
    indices = []
    for column in (word_column, tag_column):
        if not -len(row) <= column < len(row):
            must = "be there"
            raise file_error(path, in_cell(line, column), must, f"{len(row)} columns, {shown(row)}")
        indices.append(column % len(row))
    if indices[0] == indices[1]:
        raise file_error(path, f"line {line}", "have a word and a tag", shown(row))
    word, tag = (row[index] for index in indices)
    if not word:
        raise file_error(path, in_cell(line, word_column), "have a word", shown(word))
    if not _TAG.fullmatch(tag):
        raise file_error(path, in_cell(line, tag_column), _TAG_FORMS, shown(tag))
    return word, tag


def write_conll(
    path: PathLike, words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]
) -> None:
    """Writes sentences of words with tags, so that `read_conll` reads them as they are.

    A line has a word, a tab and its tag. An empty line follows each sentence.

    Args:
        path: The file. An older one is replaced.
        words: List with one entry a sentence, a list of strings.
        tags: List with one entry a sentence, a list of strings: `O`, or `B-`, `I-`, `E-` or `S-`
            and a type.

    Raises:
        ValueError: If the lengths differ, a sentence or word is empty, a word has a tab or newline
            in it or is `-DOCSTART-`, or a tag has another form. The message names the sentence.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_xlnet.task_files import write_conll
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "predictions.conll"
    >>> write_conll(path, [["Hello", "Berlin"]], [["O", "B-location"]])
    >>> path.read_text()
    'Hello\\tO\\nBerlin\\tB-location\\n\\n'
    """
    if len(words) != len(tags) or not len(words):
        raise ValueError(
            "`words` and `tags` must have equal lengths, one or more. "
            f"Received: {len(words)} and {len(tags)}"
        )
    text = "".join(
        _written(row, *sentence) for row, sentence in enumerate(zip(words, tags, strict=True))
    )
    # A reader takes U+FEFF at the very beginning for a byte order mark. After one, it is text.
    encoding = "utf-8-sig" if text.startswith("\ufeff") else "utf-8"
    pathlib.Path(path).write_bytes(text.encode(encoding))


def _written(row, words, tags):
    if isinstance(words, str) or isinstance(tags, str) or len(words) != len(tags) or not len(words):
        raise ValueError(
            "`words` and `tags` must have lists of equal lengths, one or more. "
            f"Received in sentence {row}: {shown(words)} and {shown(tags)}"
        )
    for word in words:
        is_word = isinstance(word, str) and word and not set(word) & {"\t", "\n"}
        if not is_word or word == _DOCUMENT_START:
            raise ValueError(
                f"`words` must have texts without tabs and newlines, and not {_DOCUMENT_START!r}. "
                f"Received in sentence {row}: {shown(word)}"
            )
    for tag in tags:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise ValueError(f"`tags` must {_TAG_FORMS}. Received in sentence {row}: {shown(tag)}")
    lines = [f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)]
    return "".join(lines) + "\n"

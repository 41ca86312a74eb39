"""Reads labelled messages for spam_classifier.py; its errors are one line each."""

import collections
import csv
import io
import pathlib

import numpy as np

# The UCI SMS Spam Collection, byte for byte: examples/data/README.md.
BUNDLED = pathlib.Path(__file__).parent / "data" / "SMSSpamCollection"
BUNDLED_SHA256 = "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d"
# Training, validation and test messages, and the folds of the baselines, need both classes.
FEWEST_OF_A_CLASS = 10


class DataError(ValueError):
    """Says in one line what is wrong with the data."""


def read_messages(path, text_column="text", label_column="label", positive_label="spam"):
    """Reads messages and labels from a file.

    The file is UTF-8. It has lines `label<TAB>text` without a header, as the UCI collection, or is
    a TSV file, or a CSV file (with the suffix `.csv`), whose first line names the columns.

    Args:
        path: Path of the file.
        text_column: Name of the column with the messages, if there is a header.
        label_column: Name of the column with the labels, if there is a header.
        positive_label: The label that counts as 1.

    Returns:
        An object array `(messages,)` of str and an int array `(messages,)` of 0 and 1.

    Raises:
        DataError: If the file cannot be read or is invalid. The message names file and line.
    """
    text = _read_text(pathlib.Path(path))
    if pathlib.Path(path).suffix.lower() == ".csv":
        rows = _csv_rows(path, text, text_column, label_column)
    else:
        rows = _tab_rows(path, text, text_column, label_column)
    if not rows:
        raise DataError(f"{path}: the file has no messages")
    labels, messages = zip(*rows, strict=True)
    return np.array(messages, dtype=object), _binary(path, labels, positive_label)


def _read_text(path):
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    if not raw.strip():
        raise DataError(f"{path}: the file is empty")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise DataError(
            f"{path}: line {line} is not UTF-8 (byte 0x{raw[error.start]:02x}); convert the file, "
            "for example with: iconv -f latin1 -t utf-8"
        ) from error


def _tab_rows(path, text, text_column, label_column):
    lines = text.split("\n")
    header = lines[0].rstrip("\r").split("\t")
    label_at, text_at, first = 0, 1, 0
    if {text_column, label_column} <= set(header):
        label_at, text_at, first = header.index(label_column), header.index(text_column), 1
    rows = []
    for number, line in enumerate(lines[first:], first + 1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        # The text of the UCI format is the rest of the line; with a header, columns are counted.
        cells = line.split("\t") if first else line.split("\t", 1)
        expected = len(header) if first else 2
        if len(cells) != expected:
            raise DataError(
                f"{path}: line {number} has {len(cells)} columns, expected {expected}, separated "
                f"by tabs: {_short(line)}"
            )
        rows.append((cells[label_at].strip(), cells[text_at]))
    return rows


def _csv_rows(path, text, text_column, label_column):
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = []
    try:
        header = next(reader)
        for column, flag in ((text_column, "--text_column"), (label_column, "--label_column")):
            if column not in header:
                raise DataError(
                    f"{path}: no column {column!r}; the first line has {header} (see {flag})"
                )
        label_at, text_at = header.index(label_column), header.index(text_column)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise DataError(
                    f"{path}: line {reader.line_num} has {len(cells)} columns, expected "
                    f"{len(header)}: {_short(','.join(cells))}"
                )
            rows.append((cells[label_at].strip(), cells[text_at]))
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num} is not valid CSV: {error}") from error
    return rows


def _binary(path, labels, positive_label):
    counts = collections.Counter(labels)
    found = ", ".join(f"{label!r}: {count}" for label, count in counts.most_common(5))
    if len(counts) == 1:
        raise DataError(f"{path}: all messages have one label ({found}); two classes are needed")
    if positive_label not in counts:
        raise DataError(
            f"{path}: no message has the label {positive_label!r}; found {found} "
            "(see --positive_label)"
        )
    if len(counts) > 2:
        raise DataError(f"{path}: two labels are expected, found {len(counts)}: {found}")
    if min(counts.values()) < FEWEST_OF_A_CLASS:
        raise DataError(
            f"{path}: at least {FEWEST_OF_A_CLASS} messages of each class are needed; found {found}"
        )
    return np.array([int(label == positive_label) for label in labels])


def _short(line):
    return repr(line if len(line) <= 60 else line[:57] + "...")

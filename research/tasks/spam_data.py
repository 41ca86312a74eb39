"""Reads labelled messages for spam_classifier.py; its errors are one line each."""

import collections
import pathlib

import numpy as np

from keras_xlnet.task_files import TaskFileError, read_table
from keras_xlnet.task_files.reporting import file_error, lines_of, read_text, shown

# The UCI SMS Spam Collection, byte for byte: examples/data/README.md.
BUNDLED = pathlib.Path(__file__).parents[2] / "examples" / "data" / "SMSSpamCollection"
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
    try:
        rows = _rows(pathlib.Path(path), text_column, label_column)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except TaskFileError as error:
        raise DataError(str(error)) from error
    if not rows:
        raise DataError(f"{path}: must have at least one message. Received: none")
    labels, messages = zip(*rows, strict=True)
    return np.array(messages, dtype=object), _binary(path, labels, positive_label)


def _rows(path, text_column, label_column):
    """Returns pairs of a label and a message."""
    lines = lines_of(read_text(path))
    columns = {"label": label_column, "text": text_column}
    if path.suffix.lower() == ".csv" or {*columns.values()} <= {*"".join(lines[:1]).split("\t")}:
        table = read_table(path, columns, allow_empty=["text"])
        return [(label.strip(), text) for label, text in zip(*table.values(), strict=True)]
    rows = []
    for number, line in enumerate(lines, 1):
        # Not a table: the text is the rest of the line, with tabs.
        label, tab, text = line.partition("\t")
        if tab:
            rows.append((label.strip(), text))
        elif line.strip():
            raise file_error(path, f"line {number}", "be a label, a tab and a text", shown(line))
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

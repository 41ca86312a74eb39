"""Invalid data gives an error of one line that says what is wrong and where."""

import hashlib
import sys

import numpy as np
import pytest

from tests.examples import EXAMPLES

sys.path.insert(0, str(EXAMPLES))
import spam_data
from spam_data import DataError, read_messages

GOOD = "".join(f"ham\thello number {i}\nspam\twin {i} pounds\tnow\n" for i in range(10))


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_uci_format(tmp_path):
    texts, labels = read_messages(write(tmp_path / "messages", GOOD))
    assert list(texts[:2]) == ["hello number 0", "win 0 pounds\tnow"]
    np.testing.assert_array_equal(labels, [0, 1] * 10)


def test_bundled_messages_are_those_of_uci():
    digest = hashlib.sha256(spam_data.BUNDLED.read_bytes()).hexdigest()
    assert digest == spam_data.BUNDLED_SHA256
    texts, labels = read_messages(spam_data.BUNDLED)
    assert len(texts) == 5574 and labels.sum() == 747


def test_made_up_messages():
    texts, labels = read_messages(spam_data.BUNDLED.with_name("spam_messages.tsv"))
    assert len(set(texts)) == len(texts) == 723 and labels.sum() == 190


def test_columns_by_name_in_csv_and_tsv(tmp_path):
    rows = [("x", f'say "{i}", ok\nbye', "no") for i in range(10)]
    rows += [("y", f"win {i}", "yes") for i in range(10)]
    quoted = ['"{}","{}","{}"'.format(a, b.replace('"', '""'), c) for a, b, c in rows]
    path = write(tmp_path / "m.CSV", "id,body,kind\r\n" + "\r\n".join(quoted) + "\r\n")
    texts, labels = read_messages(path, "body", "kind", "yes")
    assert list(texts) == [b for _, b, _ in rows]
    assert labels.sum() == 10
    lines = [f"{kind}\t{key}\t{body.splitlines()[0]}" for key, body, kind in rows]
    content = "\ufeff" + "\n".join(["kind\tid\tbody", *lines])
    path = write(tmp_path / "m.tsv", content)
    texts, labels = read_messages(path, "body", "kind", "yes")
    assert texts[0] == 'say "0", ok' and texts[-1] == "win 9"


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "must have at least one message. Received: none"),
        (b" \n\n", "must have at least one message. Received: none"),
        (b"\xef\xbb\xbfhello", "line 1: must be a label, a tab and a text. Received: 'hello'"),
        (GOOD.encode() + b"ham no tab here\n", "line 21: must be a label, a tab and a text"),
        (
            GOOD.encode() + "ham\tcaf\u00e9".encode("latin1"),
            "line 21: must be UTF-8 text. Received: b'",
        ),
        (GOOD.encode("utf-16"), "line 1: must be UTF-8 text. Received: UTF-16 text"),
        ("ham\thi\n" * 30, "all messages have one label ('ham': 30)"),
        (GOOD.replace("spam", "junk"), "no message has the label 'spam'; found 'ham': 10, 'junk'"),
        (GOOD + "eggs\thi\n", "two labels are expected, found 3"),
        ("ham\thi\n" * 30 + "spam\twin\n" * 9, "at least 10 messages of each class are needed"),
        ("label\ttext\n", "must have at least one row"),
        ("label\ttext\tid\nham\thi\n", "line 2: must have as many columns as the header, 3"),
    ],
)
def test_bad_files(tmp_path, content, message):
    path = write(tmp_path / "messages.txt", content)
    with pytest.raises(DataError) as caught:
        read_messages(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content, message",
    [
        ("a,b\n1,2\n", "line 1: must have a column 'label'. Received: the columns 'a', 'b'"),
        ("label,text\nham,hi,there\n", "line 2: must have as many columns as the header, 2"),
        ('label,text\nham,"hi\n', "line 2: must be a row of a CSV file"),
    ],
)
def test_bad_csv(tmp_path, content, message):
    with pytest.raises(DataError) as caught:
        read_messages(write(tmp_path / "m.csv", content))
    assert message in str(caught.value)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DataError, match="missing.txt: cannot be read: No such file"):
        read_messages(tmp_path / "missing.txt")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_messages(tmp_path)

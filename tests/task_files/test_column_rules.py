"""What values are converted to, and which are refused."""

import math
import pathlib
import re

import pytest

from keras_xlnet.task_files import TaskFileError
from keras_xlnet.task_files.column_rules import ColumnRules

PATH = pathlib.Path("a.tsv")
COLUMNS = {"text": "sentence", "label": "score"}


def checked(rules, name, value):
    return rules.checked(name, value, PATH, "line 2")


@pytest.mark.parametrize(
    "value, number",
    [
        ("1", 1.0),
        ("-0.25", -0.25),
        ("+.5", 0.5),
        ("5.", 5.0),
        ("1e-3", 0.001),
        ("2E2", 200.0),
        (" 4.750 ", 4.75),
        (3, 3.0),
        (2.5, 2.5),
    ],
)
def test_numbers(value, number):
    converted = checked(ColumnRules(COLUMNS, numeric=["label"]), "label", value)
    assert converted == number and type(converted) is float


@pytest.mark.parametrize(
    "value",
    ["good", "nan", "inf", "-inf", "1e999", "1_000", "1,5", "0x1", "٣", "1 2", "."]
    + [True, None, math.nan, math.inf, 10**400, [1]],
)
def test_what_is_no_number(value):
    received = repr(value)
    received = received if len(received) <= 80 else received[:77] + "..."
    with pytest.raises(TaskFileError) as info:
        checked(ColumnRules(COLUMNS, numeric=["label"]), "label", value)
    assert str(info.value) == f"a.tsv, line 2: must be a finite number. Received: {received}"


@pytest.mark.parametrize(
    "value, integer", [("1", 1), ("-3", -3), ("+07", 7), (" 2 ", 2), (5, 5), (2**63 - 1, 2**63 - 1)]
)
def test_integers(value, integer):
    converted = checked(ColumnRules(COLUMNS, integer=["label"]), "label", value)
    assert converted == integer and type(converted) is int


@pytest.mark.parametrize(
    "value", ["good", "1.0", "1_0", "٣", 1.0, True, None, 2**63, str(2**63), "9" * 5000]
)
def test_what_is_no_integer(value):
    with pytest.raises(TaskFileError, match=r"^a\.tsv, line 2: must be an integer\. Received: "):
        checked(ColumnRules(COLUMNS, integer=["label"]), "label", value)


@pytest.mark.parametrize("value", ["", " ", "\t", "\u00a0\u3000"])
def test_empty_values(value):
    with pytest.raises(TaskFileError) as info:
        checked(ColumnRules(COLUMNS), "text", value)
    assert str(info.value) == f"a.tsv, line 2: must not be empty. Received: {value!r}"
    assert checked(ColumnRules(COLUMNS, allow_empty=["text"]), "text", value) == value


def test_other_values_stay_as_they_are():
    rules = ColumnRules(COLUMNS, numeric=["label"])
    assert checked(rules, "text", ' "1.0" ') == ' "1.0" '


def test_class_names():
    rules = ColumnRules(COLUMNS, class_names=["no", "yes"])
    assert checked(rules, "label", "yes") == "yes"
    assert checked(rules, "text", "maybe") == "maybe"
    with pytest.raises(TaskFileError) as info:
        checked(rules, "label", "Yes")
    message = "a.tsv, line 2: must be in class_names=['no', 'yes']. Received: 'Yes'"
    assert str(info.value) == message


def test_class_names_of_another_column():
    rules = ColumnRules(COLUMNS, labels="text", class_names=["no", "yes"])
    assert checked(rules, "label", "7") == "7"
    with pytest.raises(TaskFileError, match="Received: 'maybe'$"):
        checked(rules, "text", "maybe")


def test_class_names_are_compared_with_converted_labels():
    rules = ColumnRules(COLUMNS, class_names=[0, 1], integer=["label"])
    assert checked(rules, "label", "1") == 1
    with pytest.raises(TaskFileError, match=re.escape("class_names=[0, 1]. Received: 2")):
        checked(rules, "label", "2")
    with pytest.raises(TaskFileError, match="Received: '1'$"):
        checked(ColumnRules(COLUMNS, class_names=[0, 1]), "label", "1")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            {"columns": {}},
            "`columns` must be a dict from names in the result to columns of the file. "
            "Received: {}",
        ),
        (
            {"columns": ["text"]},
            "`columns` must be a dict from names in the result to columns of the file. "
            "Received: ['text']",
        ),
        (
            {"numeric": ["score"]},
            "`numeric` must be names in `columns`, ['text', 'label']. Received: ['score']",
        ),
        (
            {"integer": "label"},
            "`integer` must be names in `columns`, ['text', 'label']. Received: 'label'",
        ),
        (
            {"allow_empty": ["mark"]},
            "`allow_empty` must be names in `columns`, ['text', 'label']. Received: ['mark']",
        ),
        (
            {"numeric": ["label"], "integer": ["label"]},
            "`numeric` and `integer` must not share names. Received: ['label']",
        ),
        (
            {"labels": "score"},
            "`labels` must be names in `columns`, ['text', 'label']. Received: ['score']",
        ),
        (
            {"columns": {"text": "sentence"}, "class_names": ["a"]},
            "`labels` must be names in `columns`, ['text']. Received: ['label']",
        ),
        ({"class_names": "yes"}, "`class_names` must be a list. Received: 'yes'"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError) as info:
        ColumnRules(**{"columns": COLUMNS, **arguments})
    assert str(info.value) == message

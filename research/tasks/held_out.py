"""Measures adapters on examples that no model has seen, and prints those that they get wrong.

    python research/tasks/held_out.py
    python research/tasks/held_out.py --adapters runs/adapters --tasks names

`--adapters` is the folder that train_adapters.py writes; without it, the adapters of the package
are measured. The examples, written for this, are in `held_out/`. Accuracy, the F1 of exact names of
persons, places and organizations, and exact answers, in percent.
"""

import argparse
import collections
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from keras_xlnet import adapters
from keras_xlnet.evaluation import answer_scores
from keras_xlnet.models import Task
from keras_xlnet.task_files import read_conll, read_squad, read_table

FOLDER = pathlib.Path(__file__).parent / "held_out"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adapters", type=pathlib.Path)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    arguments = parser.parse_args()
    for name in arguments.tasks:
        location = name if arguments.adapters is None else arguments.adapters / name
        if name not in adapters() if arguments.adapters is None else not location.is_dir():
            print(f"{name}: there is no such adapter")
            continue
        model = Task.from_preset(adapter=location)
        score, by_kind, wrong = TASKS[name](model)
        print(f"{name}: {100 * score:.1f}")
        for kind, (right, total) in by_kind.items():
            print(f"    {kind}: {right} of {total}")
        print(*(f"  - {line}" for line in wrong), sep="\n", flush=True)


def classes(name, *columns):
    """Returns a function of a model that reads the texts of a file and compares their classes."""

    def measure(model):
        rows = read_table(FOLDER / f"{name}.tsv", {x: x for x in (*columns, "label")})
        texts = [*zip(*(rows[x] for x in columns), strict=True)]
        found = model.classify(texts if len(columns) > 1 else rows["text"], verbose=0)
        right = [one.label == label for one, label in zip(found, rows["label"], strict=True)]
        wrong = [
            f"{' / '.join(text)} [{label}, found {one.label} {one.score:.2f}]"
            for text, label, one, is_right in zip(texts, rows["label"], found, right, strict=True)
            if not is_right
        ]
        return sum(right) / len(right), by_kind(f"{name}.tsv", right), wrong

    return measure


def names(model):
    rows = read_conll(FOLDER / "names.conll")
    counts = collections.Counter()
    complete, wrong = [], []
    found = model.find_entities(rows["words"], verbose=0)
    for words, tags, entities in zip(rows["words"], rows["tags"], found, strict=True):
        expected = {span for span in spans(tags) if span[0] != "other"}
        given = {(_kind(e.type), e.start, e.end) for e in entities} - {None}
        given = {span for span in given if span[0] != "other"}
        counts.update(right=len(expected & given), expected=len(expected), given=len(given))
        complete.append(expected == given)
        if expected != given:
            shown = [
                ", ".join(f"{' '.join(words[i:j])}: {kind}" for kind, i, j in sorted(group))
                for group in (expected - given, given - expected)
            ]
            wrong.append(f"{' '.join(words)} [missed {shown[0] or '-'}; wrong {shown[1] or '-'}]")
    f1 = 2 * counts["right"] / (counts["expected"] + counts["given"])
    return f1, by_kind("names.conll", complete), wrong


def spans(tags):
    """Returns a set of `(type, start, end)`."""
    found, start = set(), 0
    for i, tag in enumerate([*tags, "O"]):
        if i and tags[i - 1] != "O" and not tag.startswith("I"):
            found.add((tags[i - 1].partition("-")[2], start, i))
        if tag.startswith("B"):
            start = i
    return found


def _kind(kind):
    """The types of WNUT-17 as those of the file."""
    groups = {"location": "place", "corporation": "organization", "group": "organization"}
    return groups.get(kind, kind if kind in ("person", "place", "organization") else "other")


def questions(model):
    rows = read_squad(FOLDER / "questions.json")
    found = model.answer({x: rows[x] for x in ("question", "context")}, verbose=0)
    right = [
        answer_scores([one], [answers]).exact > 0
        for one, answers in zip(found, rows["answers"], strict=True)
    ]
    wrong = [
        f"{question} [{answers[0]['text']}, found {one.text}]"
        for question, answers, one, is_right in zip(
            rows["question"], rows["answers"], found, right, strict=True
        )
        if not is_right
    ]
    return sum(right) / len(right), {}, wrong


def by_kind(file, right):
    """Returns `{kind: (right, total)}`."""
    kinds = json.loads((FOLDER / "kinds.json").read_text(encoding="utf-8"))[file]
    counts = collections.Counter(kinds)
    good = collections.Counter(
        kind for kind, is_right in zip(kinds, right, strict=True) if is_right
    )
    return {kind: (good[kind], total) for kind, total in counts.items()}


TASKS = {
    "sentiment": classes("sentiment", "text"),
    "spam": classes("spam", "text"),
    "questions": questions,
    "names": names,
    "duplicates": classes("duplicates", "text", "pair"),
}


if __name__ == "__main__":
    main()

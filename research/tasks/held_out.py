"""Measures adapters on examples that no model has seen, and prints those that they get wrong.

    python research/tasks/held_out.py
    python research/tasks/held_out.py --adapters runs/adapters --tasks names --write

`--adapters` is the folder that train_adapters.py writes; without it, the adapters of the package
are measured. The examples, written for this, are in `held_out/`. Accuracy, the F1 of exact names of
persons, places and organizations, and exact answers, in percent. `--write` adds the figure and two
examples that go wrong to the card of each adapter, and the figure to its `preset.json`.
"""

import argparse
import collections
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from train_adapters import TYPES_OF_FILES

from keras_xlnet.evaluation import answer_scores, entity_scores, entity_spans
from keras_xlnet.models import Task
from keras_xlnet.preset_files import shipped
from keras_xlnet.preset_files.files import read_json, write_json
from keras_xlnet.task_files import read_conll, read_squad, read_table

FOLDER = pathlib.Path(__file__).parent / "held_out"
_SHIPPED = shipped.FOLDER / shipped.ADAPTERS
_SECTION = "## What it gets wrong"
_TEXT = """\
On examples of many kinds that were written to measure it (`research/tasks/held_out/`), {measure} is
{score:.1f} %. Two that go wrong:

{examples}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adapters", type=pathlib.Path, default=_SHIPPED)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.tasks:
        directory = arguments.adapters / name
        if not directory.is_dir():
            print(f"{name}: there is no such adapter")
            continue
        model = Task.from_preset(adapter=directory)
        measure, function = TASKS[name]
        score, by_kind, wrong = function(model)
        print(f"{name}: {100 * score:.1f}")
        for kind, (right, total) in by_kind.items():
            print(f"    {kind}: {right} of {total}")
        print(*(f"  - {line}" for line in wrong), sep="\n", flush=True)
        if arguments.write:
            write(directory, measure, score, wrong)


def write(directory, measure, score, wrong):
    """Writes what was measured to the card and to the `preset.json` of an adapter."""
    path = directory / "preset.json"
    info = read_json(path)
    title = f"{measure} (held_out.py)"
    info["figures"][title] = round(100 * score, 1)
    write_json(path, info)
    path = directory / "README.md"
    card = path.read_text(encoding="utf-8").partition(_SECTION)[0].rstrip()
    examples = "\n".join(f"- {line}" for line in wrong[:2])
    text = _TEXT.format(measure=measure, score=100 * score, examples=examples)
    path.write_text(f"{card}\n\n{_SECTION}\n\n{text}", encoding="utf-8")


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
    true = [[*compared(tags)] for tags in rows["tags"]]
    found = [[*compared(tags)] for tags in model.tag(rows["words"], verbose=0)]
    right, wrong = [], []
    for words, *both in zip(rows["words"], true, found, strict=True):
        expected, given = map(entity_spans, both)
        right.append(expected == given)
        if expected != given:
            missed, extra = (
                ", ".join(f"{' '.join(words[x.start : x.end])}: {x.type}" for x in spans)
                for spans in (
                    [x for x in expected if x not in given],
                    [x for x in given if x not in expected],
                )
            )
            wrong.append(f"{' '.join(words)} [missed {missed or '-'}; wrong {extra or '-'}]")
    return entity_scores(true, found).f1, by_kind("names.conll", right), wrong


def compared(tags):
    """Tags with the types of `TYPES_OF_FILES`. Only persons, places and organizations count."""
    for tag in tags:
        letter, _, kind = tag.partition("-")
        kind = TYPES_OF_FILES.get(kind, kind)
        yield "O" if kind in ("", "other") else f"{letter}-{kind}"


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


# What is measured, and a function of a model.
TASKS = {
    "sentiment": ("accuracy", classes("sentiment", "text")),
    "spam": ("accuracy", classes("spam", "text")),
    "questions": ("exact match", questions),
    "names": ("F1 of persons, places and organizations", names),
    "duplicates": ("accuracy", classes("duplicates", "text", "pair")),
}


if __name__ == "__main__":
    main()

"""Makes questions from passages: each asks for a part that is left out of a sentence.

    python research/tasks/cloze_questions.py --data ../shared/data --number 20

prints some. `train_adapters.py` trains on them before the questions of SQuAD, which are too few to
teach that an answer is near the words of the question. If a passage repeats a name or a number,
most questions about it leave out their sentence: the answer is the other occurrence of the name,
which the model has to find by its context.

Sources: Lewis et al. 2019, "Unsupervised question answering by cloze translation"; Ram et al. 2021,
"Few-shot question answering by pretraining span selection".
"""

import argparse
import itertools
import lzma
import pathlib
import random
import re
from typing import NamedTuple

# In the folder of the data.
CORPUS = "corpus/redistributable.train.txt.xz"
# Characters of a passage.
_SHORTEST, _LONGEST, _MIN_SENTENCES, _MIN_NAMES = 350, 950, 3, 9
# Shorter lines of a passage are headings and lists.
_SHORTEST_LINE, _LONGEST_TITLE, _SHORTEST_SENTENCE, _LONGEST_ANSWER = 150, 90, 40, 60
# A question has at most this many words from either side of the gap: a random number in between.
_MIN_SIDE, _MAX_SIDE = 2, 9
_MAX_DROPPED, _SHUFFLED, _WITHOUT_SENTENCE = 0.5, 0.3, 0.6

_FUNCTION_WORDS = frozenset(
    """a about after again against all also an and any are as at be been before being between both
    but by can could did do does down during each few for from further had has have he her here his
    how if in into is it its just may might more most must no not of off on once one only or other
    out over own same shall she should so some such than that the their then there these they this
    those through to two under until up very was we were what when where which while who whom whose
    why will with would you i""".split()
)
_WORD = re.compile(r"[A-Za-z0-9][\w'’.,%-]*[\w%]|[A-Za-z0-9]")
_END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'“0-9])")
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_ASKS_FOR = {
    "year": ("when", "in what year", "what year"),
    "number": ("how many", "how much", "what", "when", "what number"),
    "name": ("who", "what", "where", "which"),
    "other": ("what", "what", "how", "which", "what kind of"),
}
# Names and numbers are drawn more often: a passage has many more other words.
_WEIGHTS = {"year": 5, "number": 5, "name": 5, "other": 1}


class Span(NamedTuple):
    """A part of a sentence: its first character, the one after its last, and its kind."""

    start: int
    end: int
    kind: str


class Question(NamedTuple):
    """A question, its context, and the answer with its first character."""

    question: str
    context: str
    start: int
    answer: str


def read_passages(file, number, seed=0):
    """Returns passages of a corpus (`.xz`) whose documents end with an empty line and have titles.

    The passages have several sentences with names or numbers.
    """
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        passages = [passage for passage in _passages(lines) if _has_names(passage)]
    random.Random(seed).shuffle(passages)
    return passages[:number]


def cloze_questions(passages, each, seed=0):
    """Returns the columns `question`, `context` and `answers`, up to `each` rows of a passage."""
    rng = random.Random(seed)
    rows = [row for passage in passages for row in questions_about(passage, each, rng)]
    columns = {name: [getattr(row, name) for row in rows] for name in ("question", "context")}
    return {**columns, "answers": [(row.start, row.answer) for row in rows]}


def questions_about(passage, number, rng):
    """Returns up to `number` instances of `Question`."""
    parts = sentences(passage)
    choices = [
        (sentence, span)
        for sentence in parts
        if sentence.stop - sentence.start >= _SHORTEST_SENTENCE
        for span in spans(passage[sentence])
        if 2 <= span.end - span.start <= _LONGEST_ANSWER
    ]
    if not choices:
        return []
    weights = [_WEIGHTS[span.kind] for _, span in choices]
    drawn = dict.fromkeys(rng.choices(range(len(choices)), weights, k=2 * number))
    found = (_ask(passage, len(parts), *choices[place], rng) for place in drawn)
    return [question for question in found if question][:number]


def sentences(text):
    """Returns the sentences of a text as slices."""
    ends = [*_END_OF_SENTENCE.finditer(text)]
    starts = [0, *(gap.end() for gap in ends)]
    return [*map(slice, starts, [*(gap.start() for gap in ends), len(text)])]


def spans(sentence):
    """Returns the names, numbers and other words of a sentence, each as long as possible."""
    words = [*_WORD.finditer(sentence)]
    found, first = [], 0
    while first < len(words):
        if words[first].group().lower() in _FUNCTION_WORDS:
            first += 1
            continue
        last = first
        while _goes_on(sentence, words, first, last):
            last += 1
        # "Bank of" is a name only together with the next word.
        while words[last].group().lower() in _FUNCTION_WORDS:
            last -= 1
        start, end = words[first].start(), words[last].end()
        found.append(Span(start, end, _kind(sentence[start:end])))
        first = last + 1
    return found


def _goes_on(sentence, words, first, last):
    if last + 1 == len(words) or sentence[words[last].end() : words[last + 1].start()] != " ":
        return False
    word, following = words[first].group(), words[last + 1].group()
    if word[0].isupper():
        is_part = not following[0].islower() or following in ("of", "the", "and")
        return is_part and last - first < 5
    return following[0].islower() and following not in _FUNCTION_WORDS and last - first < 2


def _kind(answer):
    if _YEAR.fullmatch(answer):
        return "year"
    if answer[0].isdigit():
        return "number"
    return "name" if answer[0].isupper() else "other"


def _ask(passage, num_sentences, sentence, span, rng):
    text = passage[sentence]
    words = _question_words(text, span, rng)
    if len(words) < 3:
        return None
    answer = text[span.start : span.end]
    context, start = passage, sentence.start + span.start
    others = [
        match.start()
        for match in re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", passage)
        if not sentence.start <= match.start() < sentence.stop
    ]
    is_repeated = others and span.kind != "other" and num_sentences > 2
    if is_repeated and rng.random() < _WITHOUT_SENTENCE:
        context = passage[: sentence.start] + passage[sentence.stop + 1 :]
        start = rng.choice(others)
        start -= (sentence.stop + 1 - sentence.start) * (start > sentence.start)
    return Question(" ".join(words) + "?", context, start, answer)


def _question_words(sentence, span, rng):
    """Returns some words near a gap and a question word, in one of several orders."""
    before = _WORD.findall(sentence[: span.start])[-rng.randint(_MIN_SIDE, _MAX_SIDE) :]
    after = _WORD.findall(sentence[span.end :])[: rng.randint(_MIN_SIDE, _MAX_SIDE)]
    dropped = rng.uniform(0, _MAX_DROPPED)
    before, after = ([word for word in side if rng.random() >= dropped] for side in (before, after))
    if rng.random() < _SHUFFLED:
        rng.shuffle(before or after)
    asks = [rng.choice(_ASKS_FOR[span.kind])]
    orders = [asks + after + before, asks + before + after, before + asks + after]
    return rng.choices([*orders, after + before + asks], (35, 30, 20, 15))[0]


# === Passages ===


def _passages(lines):
    for is_text, group in itertools.groupby(map(str.strip, lines), key=bool):
        if is_text:
            yield from _of_document([*group])


def _of_document(lines):
    if len(lines) < 2 or len(lines[0]) > _LONGEST_TITLE or lines[0][-1] in ".!?:\"'":
        return
    passage = ""
    for line in lines[1:]:
        is_speech = line[0] in "\"'“" or line.count('"') > 4
        if len(line) < _SHORTEST_LINE or is_speech:
            continue
        for sentence in sentences(line):
            longer = f"{passage} {line[sentence]}".strip()
            if len(longer) <= _LONGEST:
                passage = longer
                continue
            yield passage
            passage = line[sentence]
    yield passage


def _has_names(passage):
    parts = sentences(passage)
    if not _SHORTEST <= len(passage) <= _LONGEST or len(parts) < _MIN_SENTENCES:
        return False
    # The first word of a sentence is capitalized like a name.
    found = (span for part in parts for span in spans(passage[part]) if span.start)
    return sum(span.kind != "other" for span in found) >= _MIN_NAMES


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--number", type=int, default=20, help="of passages")
    arguments = parser.parse_args()
    passages = read_passages(arguments.data / CORPUS, arguments.number)
    for passage in passages:
        print(f"\n{passage}")
        for row in questions_about(passage, 5, random.Random(len(passage))):
            print(f"    {row.question}  ->  {row.answer}")


if __name__ == "__main__":
    main()

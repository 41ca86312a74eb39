"""Sentences of many kinds with persons, places, organizations and other names, with their tags.

The other training data are tweets, which rarely look like news, mails or reviews. The sentences of
names_sentences.txt and the lists of names_lists.txt were written for this file.

What a name is:

- "the" before a name is no part of it, but a title has its own (The Godfather).
- Titles and roles (Mr, Dr, President) and the `'s` of possession are no parts of names.
- New York City, Lake Geneva and Bank of Rome are one name. In "Paris , France" there are two.
- Streets, districts, stations, airports, stadiums and other sites are places. Museums, hotels,
  shops, schools, parliaments, newspapers, bands and teams are organizations.
- Works, products, events, prizes, wars, treaties, laws and ships are others. Numbers of houses
  and years of events are no parts of names, but numbers of products are.
- Nationalities, peoples, languages, days, months and holidays are no names.

Tags have no B: a word or a comma is between two names of one type.
"""

import re

import numpy as np

from made import filled, part_of, read_lines

TYPES = ("person", "place", "organization", "other")

# The slots of sentences that are names. What other slots are filled with (days, roles) is none.
_SLOTS = {
    "person": "p first last full figure",
    "place": "l city country state region water mount island district street site village",
    "organization": "o organization firm made_firm body paper school team band shop",
    "other": "x work product event history craft",
}
_TYPE_OF = {slot: kind for kind, slots in _SLOTS.items() for slot in slots.split()}
# Lists that are shorter, and what has slots, are in training and in development.
_FEWEST_TO_SPLIT = 30


def _read(file):
    return [line for line in read_lines(file) if not line.startswith("# ")]


def _read_lists():
    lists = {}
    for line in _read("names_lists.txt"):
        kind, _, entries = line.partition(": ")
        lists.setdefault(kind, []).extend(entries.split(" | "))
    return lists


def _part_of_lists(lists, seed):
    parts = {}
    for kind, entries in lists.items():
        names = [entry for entry in entries if "{" not in entry]
        patterns = [entry for entry in entries if "{" in entry]
        is_split = len(names) >= _FEWEST_TO_SPLIT
        parts[kind] = (part_of(names, seed) if is_split else names) + patterns
    return parts


_TEMPLATES = _read("names_sentences.txt")
_LISTS = _read_lists()


def sentences(number, seed=0):
    """Returns columns of lists: `words`, and `tags` such as `"I-person"`.

    Args:
        number: Int, the number of sentences; three in ten have no name.
        seed: Int. 0 is for training. Others have sentences and names that training does not.
    """
    rng = np.random.default_rng(seed)
    templates = part_of(_TEMPLATES, seed)
    lists = _part_of_lists(_LISTS, seed)
    words, tags = [], []
    for _ in range(number):
        found = [*_sentence(_any(templates, rng), lists, rng)]
        # Two sentences.
        if found[-1][0] in (".", "?", "!") and rng.random() < 0.25:
            found += _sentence(_any(templates, rng), lists, rng)
        # Without the point at the end.
        if found[-1][0] == "." and rng.random() < 0.2:
            found.pop()
        case = rng.choice([str, str.lower, str.upper], p=[0.64, 0.33, 0.03])
        words.append([case(word) for word, _ in found])
        tags.append([tag for _, tag in found])
    return {"words": words, "tags": tags}


def _sentence(template, lists, rng):
    """Yields words with tags."""
    for word in template.split():
        slot = re.fullmatch(r"\{(\w+)\}", word)
        kind = _TYPE_OF.get(slot[1]) if slot else None
        text = filled(word, lambda slot, rng: _entry(slot, lists, rng), rng)
        for i, part in enumerate(text.split()):
            is_article = i == 0 and part == "the"
            yield part, "O" if kind is None or is_article else f"I-{kind}"


def name(kind, rng):
    """Returns a random name of a type."""
    return _entry(kind, _LISTS, rng)


def _entry(kind, lists, rng):
    """An entry of a list. Its own slots are filled with entries."""
    entry = _any(lists[kind], rng)

    def part(inner, rng):
        text = _entry(inner, lists, rng)
        # "Air Netherlands"
        return text if entry == f"{{{inner}}}" else text.removeprefix("the ")

    return filled(entry, part, rng)


def _any(items, rng):
    return items[rng.integers(len(items))]

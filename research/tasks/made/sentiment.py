"""Sentences with an opinion, or news that is good or bad, of many kinds.

Reviews of films, which the adapter is trained on otherwise, have few negated words, no irony, and
no news. All sentences and lists were written for this file and `sentiment_sentences.tsv`: a line
there is a class, a kind, and a sentence, with a `{kind}` of the lists below in place of some words.
`{good1}` and `{bad1}` are adjectives of one word, as they are before a noun.
"""

import re

import numpy as np

from made import choice, filled, in_case_of, part_of, read_lines

CLASSES = ("negative", "positive")

THINGS = """food|soup|pizza|coffee|steak|dessert|breakfast|menu|service|waiter|staff|waitress|
place|restaurant|bar|room|bed|shower|hotel|view|location|reception|pool|flight|seat|crew|phone|
screen|battery|camera|keyboard|case|cable|charger|headset|sound|volume|microphone|laptop|printer|
vacuum|kettle|mattress|jacket|pair of shoes|fabric|size|colour|app|update|interface|game|website|
checkout|delivery|packaging|support|manual|price|quality|design|film|plot|ending|acting|script|
dialogue|cast|music|soundtrack|book|story|chapter|lecture|course|teacher|doctor|dentist|garage|
mechanic|plumber|trip|tour|guide|museum|concert|show|episode|series|meeting|speech|idea|plan|
report|software|version|garden|neighbourhood|train|bus|road|weather|weekend|party|cake|recipe|
performance|novel"""
GOOD = """
good|great|excellent|wonderful|fantastic|delicious|lovely|superb|amazing|brilliant|perfect|
friendly|helpful|clean|comfortable|fast|reliable|sturdy|beautiful|charming|funny|moving|
clever|fresh|
tasty|spotless|cosy|quiet|attentive|generous|impressive|enjoyable|smooth|crisp|bright|easy to use|
well made|worth every penny|top notch|a joy|a treat|better than expected|outstanding|polite|
punctual|
affordable|gripping|memorable|delightful|elegant|solid|flawless|convincing|refreshing|warm"""
BAD = """
bad|terrible|awful|horrible|disgusting|poor|disappointing|boring|dull|slow|dirty|rude|noisy|
cold|bland|stale|overpriced|cheap looking|useless|broken|defective|flimsy|uncomfortable|ugly|
tedious|
predictable|confusing|unreliable|annoying|greasy|tasteless|cramped|smelly|mediocre|a joke|a mess|
a waste of money|a waste of time|worse than expected|a letdown|unusable|frustrating|pointless|
forgettable|unhelpful|late|misleading|painful|lifeless|sloppy|awkward|dreadful|pathetic|shabby"""
BEST = "|".join(("best", "kindest", "finest", "nicest", "most helpful", "most honest"))
WORST = "|".join(("worst", "rudest", "dullest", "weakest", "most annoying", "most useless"))
VERY = "very |really |so |absolutely |truly |quite |just |simply |totally ||||||"

# Quantities that are good news when they rise, and when they fall.
LIKED = """profits|sales|wages|exports|orders|shares|the number of jobs|attendance|donations|
life expectancy|investment|tourism|harvests|savings|production|confidence among consumers"""
FEARED = """unemployment|crime|inflation|debt|infections|deaths on the road|losses|rents|poverty|
complaints|delays|emissions|accidents|bankruptcies|waiting times|prices of food"""
UP = "rose|climbed|went up|grew|increased|jumped"
DOWN = "fell|dropped|went down|shrank|declined|sank"
WHEN = (
    "last year|in March|this quarter|for the third month in a row|again|sharply|by a tenth|by 4 %"
)
LISTS = {
    "thing": THINGS,
    "good": GOOD,
    "bad": BAD,
    "best": BEST,
    "worst": WORST,
    "very": VERY,
    "liked": LIKED,
    "feared": FEARED,
    "up": UP,
    "down": DOWN,
    "when": WHEN,
}


def _templates():
    """Returns the sentences of the file by class."""
    lines = [line.split("\t") for line in read_lines("sentiment_sentences.tsv")]
    return {name: [text for label, _, text in lines if label == name] for name in CLASSES}


def sentences(number, seed=0):
    """Returns columns: `text`, and `label`, one of `CLASSES`, half of each.

    Args:
        number: Int, the number of sentences.
        seed: Int. 0 is for training: other seeds use other sentences of the file.
    """
    rng = np.random.default_rng(seed)
    labels = [CLASSES[i % 2] for i in range(number)]
    # All sentences of the file are used before any is used again.
    templates = {
        label: rng.permutation(part_of(texts, seed)) for label, texts in _templates().items()
    }
    texts = []
    for i, label in enumerate(labels):
        of_class = templates[label]
        texts.append(_sentence(str(of_class[i // 2 % len(of_class)]), rng))
    return {"text": texts, "label": labels}


def _sentence(template, rng):
    text = filled(template, _part, rng)
    # Not before "useful", "unique" or "one", which begin with the sound of a consonant.
    text = re.sub(r"\b([Aa]) (?=[aeiou])(?!us[ei]|uni[^nm]|one\b)", r"\1n ", text)
    if rng.random() < 0.25:
        text = text.lower()
    # Reviews are written without spaces before points, the data of films with them.
    return text if rng.random() < 0.5 else re.sub(r"([.,!?:;]+)(?=\s|$)", r" \1", text)


def _part(kind, rng):
    name = kind.lower().rstrip("1")
    found = choice(LISTS[name], rng)
    while kind.endswith("1") and " " in found:
        found = choice(LISTS[name], rng)
    return in_case_of(kind, found)

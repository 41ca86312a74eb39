"""Pairs of sentences that say the same in other words, or that differ in one thing that matters.

The pairs of MRPC share most of their words in both classes, and few of them differ only
in a number, a name, or who did what. All sentences and lists were written for this file,
and for `duplicates_groups.tsv`: a line has three or four ways to say the same, a field `|`,
and at least three near misses, that say something else.
"""

import functools
import re

import numpy as np

from made import choice, names, part_of, read_lines

CLASSES = ("different", "duplicate")

# A word and its opposite: either of them makes another sentence.
OPPOSITES = """rose:fell|increased:decreased|increase:decrease|higher:lower|up:down|more:less|
most:least|before:after|first:last|won:lost|win:lose|bought:sold|buy:sell|accepted:rejected|
opened:closed|open:closed|started:ended|began:ended|early:late|earlier:later|above:below|over:under|
cheap:expensive|cheaper:dearer|old:new|young:old|big:small|large:small|larger:smaller|hot:cold|
good:bad|better:worse|best:worst|rich:poor|safe:dangerous|possible:impossible|legal:illegal|
happy:unhappy|guilty:innocent|alive:dead|left:right|north:south|east:west|inside:outside|
with:without|always:never|all:none|everyone:nobody|remember:forget|allowed:forbidden|
arrived:left|entered:left|gain:loss|gained:lost|profit:loss|strong:weak|heavy:light|fast:slow|
full:empty|clean:dirty|easy:difficult|man:woman|boy:girl|men:women|mother:father|brother:sister|
approved:denied|agreed:refused|confirmed:denied|positive:negative|married:divorced|
borrow:lend""".replace("\n", "")
_OPPOSITE = {
    a: b for pair in OPPOSITES.split("|") for a, b in [pair.split(":"), pair.split(":")[::-1]]
}
# `a` did something to `b`: what says the same, and what says the reverse.
ACTS = """{a} beat {b}|{b} was beaten by {a}|{b} lost to {a}|{a} won against {b}
{a} bought {b}|{b} was bought by {a}|{a} acquired {b}|{a} has taken over {b}
{a} sued {b}|{b} was sued by {a}|{a} took {b} to court|{a} brought a case against {b}
{a} called {b}|{b} got a call from {a}|{a} phoned {b}|{a} rang {b} up
{a} praised {b}|{b} was praised by {a}|{a} spoke well of {b}|{a} had kind words for {b}
{a} criticised {b}|{b} was criticised by {a}|{a} found fault with {b}|{b} came under fire from {a}
{a} owes {b} money|{b} is owed money by {a}|{a} is in debt to {b}|{b} lent money to {a}
{a} taught {b}|{b} was taught by {a}|{b} was a student of {a}|{a} was the teacher of {b}
{a} is older than {b}|{b} is younger than {a}|{a} was born before {b}|{b} was born after {a}
{a} is taller than {b}|{b} is shorter than {a}|{b} is not as tall as {a}|{a} stands above {b} in height
{a} left before {b}|{b} left after {a}|{a} was gone when {b} left|{b} stayed longer than {a}
{a} hired {b}|{b} was hired by {a}|{b} got a job from {a}|{a} gave {b} a job
{a} invited {b} to dinner|{b} was invited to dinner by {a}|{b} got a dinner invitation from {a}|{a} asked {b} over for dinner
{a} helped {b} move|{b} was helped by {a} with the move|{b} moved with the help of {a}|{a} gave {b} a hand with the move""".split(
    "\n"
)
ANIMALS = """
the dog:the man|the cat:the mouse|the fox:the hen|the lion:the zebra|the spider:the fly|
the wolf:the sheep|the eagle:the fish|the snake:the frog|the shark:the swimmer|
the bull:the farmer"""
VERBS = "bit:bitten|chased:chased|saw:seen|followed:followed|ate:eaten|killed:killed|scared:scared"
# Statements with a number, a day or a place, each in three ways.
FACTS = """The meeting starts at {n} o'clock|We will begin the meeting at {n} o'clock|It's {n} o'clock when the meeting starts
The ticket costs {n} dollars|You pay {n} dollars for the ticket|The price of the ticket is {n} dollars
{n} people were hurt in {l}|In {l} , {n} people were injured|There were {n} injured people in {l}
The shop in {l} closes on {d}|On {d} the shop in {l} is shut|The {l} shop does not open on {d}
{p} arrives in {l} on {d}|On {d} {p} gets to {l}|{p} will be in {l} from {d}
{p} has lived in {l} for {n} years|For {n} years {p} has been living in {l}|{l} has been the home of {p} for {n} years
The train to {l} leaves at {n}|At {n} the {l} train departs|Departure of the train to {l} is at {n}
{o} opened an office in {l}|In {l} , {o} has a new office|A new office of {o} was opened in {l}
{o} will cut {n} jobs in {l}|{n} jobs at {o} in {l} will go|In {l} {o} is laying off {n} people
The price of oil rose by {n} percent|Oil became {n} percent dearer|Oil prices were up {n} percent
Shares of {o} fell {n} percent|{o} stock lost {n} percent|There was a {n} percent drop in {o} shares
Add {n} eggs and stir|Stir in {n} eggs|{n} eggs are added and stirred
The exam is on {d}|We write the exam on {d}|{d} is the day of the exam
{p} was born in 19{n}|19{n} is the year of {p} 's birth|The birth of {p} was in 19{n}
The battery lasts {n} hours|After {n} hours the battery is empty|You get {n} hours out of the battery
The library is open until {n}|You can stay in the library until {n}|The library does not close before {n}
{p} is in favour of the plan|{p} supports the plan|The plan has the support of {p}
The flight was delayed by {n} hours|The plane left {n} hours late|There was a delay of {n} hours on the flight""".split(
    "\n"
)
# Questions about one thing, that ask the same, one group of answers a line; a blank line before another thing.
QUESTIONS = """How do I get to the {x} ?|What is the way to the {x} ?|Can you tell me how to reach the {x} ?
When does the {x} open ?|At what time does the {x} open ?|What are the opening hours of the {x} ?
How much does the {x} cost ?|What is the price of the {x} ?|What do I pay for the {x} ?
Who owns the {x} ?|To whom does the {x} belong ?|Who is the owner of the {x} ?
Why is the {x} closed ?|What is the reason that the {x} is shut ?|How come the {x} isn't open ?

How do I learn {y} ?|What is the best way to learn {y} ?|How can I become good at {y} ?
How long does it take to learn {y} ?|How many months do I need for {y} ?|How quickly can one learn {y} ?
Why should I learn {y} ?|What is {y} good for ?|What are the benefits of learning {y} ?
Where can I learn {y} ?|Which school teaches {y} ?|Is there a place that offers lessons in {y} ?

How do I delete my {z} account ?|What do I have to do to close my {z} account ?|How can I get rid of my account at {z} ?
How do I create a {z} account ?|What are the steps to sign up for {z} ?|How can I register at {z} ?
How do I change my password on {z} ?|Where can I set a new {z} password ?|What is the way to reset the password of {z} ?
Is {z} free ?|Do I have to pay for {z} ?|Does {z} cost anything ?
Is {z} safe ?|Can I trust {z} ?|How secure is {z} ?

How do I lose weight ?|What helps to get slimmer ?|What is a good way to drop some pounds ?
How do I gain weight ?|What helps to get heavier ?|What is a good way to put on some pounds ?

What is the capital of {l} ?|Which city is the capital of {l} ?|Name the capital city of {l}
How many people live in {l} ?|What is the population of {l} ?|What number of inhabitants does {l} have ?
What language is spoken in {l} ?|Which language do people in {l} speak ?|What do they speak in {l} ?
When is the best time to visit {l} ?|In which month should I travel to {l} ?|What season is best for a trip to {l} ?"""
WORDS = {
    "x": "museum|station|library|pool|castle|zoo|market|gallery|airport|stadium|park|theatre|harbour",
    "y": "Spanish|guitar|chess|programming|cooking|Python|swimming|drawing|piano|German|statistics",
    "z": "Facebook|Gmail|Netflix|Instagram|PayPal|LinkedIn|Spotify|eBay|Twitter|Zoom",
    "d": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
}
# Comparisons: a word and its opposite, each with how it is in `not as ...`.
COMPARED = """taller:tall:shorter:short|older:old:younger:young|richer:rich:poorer:poor|
faster:fast:slower:slow|heavier:heavy:lighter:light|stronger:strong:weaker:weak|
louder:loud:quieter:quiet|happier:happy:sadder:sad|wiser:wise:more foolish:foolish|
more careful:careful:more careless:careless|more polite:polite:ruder:rude|
braver:brave:more timid:timid|more generous:generous:meaner:mean|busier:busy:idler:idle"""
COMPARISON = """{a} is {more} than {b}|{b} is {less} than {a}|{b} is not as {plain} as {a}|\
compared with {b} , {a} is {more}|of {a} and {b} , {b} is the {less} one"""
# Neither of them is more than the other.
EQUAL = "{a} is as {plain} as {b}|{a} and {b} are equally {plain}|{b} is no {less} than {a}"
PAID = """{a} paid {b} {n} {c}|{b} got {n} {c} from {a}|{n} {c} went from {a} to {b}|\
{b} was given {n} {c} by {a}|the {n} {c} that {b} received came from {a}"""
CURRENCIES = "dollars|euros|pounds|francs|rupees|crowns"
# Things that happened, one before the other.
EVENTS = """the rain stopped|the bell rang|the bus came|the guests arrived|the lights went out|
the baby woke up|the phone rang|the film began|the shop closed|the train left|the sun went down|
the doctor came|the police arrived|the game was over|the soup was ready|the music stopped|
the price was cut|the letter was sent|the window broke|the votes were counted"""
ORDER = """{a} before {b}|{b} after {a}|first {a} , then {b}|after {a} , {b}|before {b} , {a}|\
{a} , and then {b}"""
# An appointment: the hour after noon, in two ways of counting, and in words.
SCHEDULE = """The {e} is on {d} at {h} pm|On {d} at {t}:00 there is the {e}|\
The {e} takes place on {d} at {w} o'clock in the afternoon|\
{w} in the afternoon is the time of the {e} on {d}"""
APPOINTMENTS = "lesson|concert|funeral|interview|call|tour|match|exam|party|lecture|rehearsal|class"
NUMBERS = "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty".split()


def pairs(number, seed=0):
    """Returns columns: `text`, `pair`, and `label`, one of `CLASSES`, half of each.

    Args:
        number: Int, the number of pairs.
        seed: Int. Every tenth group of `duplicates_groups.tsv` is held out for development: it is
            drawn from with seeds other than 0 only, and with 0 the other groups are.
    """
    rng = np.random.default_rng(seed)
    groups = functools.partial(_groups, seed)
    makers = [_acts, _acts, _animals, _facts, _facts, _questions, _questions]
    makers += [_compared, _paid, _order, _schedule]
    makers += [groups] * len(makers)
    rows = [makers[rng.integers(len(makers))](bool(i % 2), rng) for i in range(number)]
    first, second = zip(*(_written(row, rng) for row in rows), strict=True)
    return {"text": [*first], "pair": [*second], "label": [CLASSES[i % 2] for i in range(number)]}


def near_misses(texts, seed=0):
    """Returns pairs of each text with one that differs in a number, a word, or a `not`.

    Args:
        texts: List of strings. Those where nothing can be changed are left out.
        seed: Int.

    Returns:
        Columns as of `pairs`, all different.
    """
    rng = np.random.default_rng(seed)
    rows = [(text, changed) for text in texts if (changed := _changed(text, rng)) != text]
    first, second = zip(*rows, strict=True)
    return {"text": [*first], "pair": [*second], "label": [CLASSES[0]] * len(rows)}


def _changed(text, rng):
    changes = [_other_number, _opposite, _negated]
    for i in rng.permutation(len(changes)):
        found = changes[i](text, rng)
        if found != text:
            return found
    return text


def _other_number(text, rng):
    return re.sub(
        r"\d", lambda digit: str((int(digit[0]) + rng.integers(1, 10)) % 10), text, count=1
    )


def _opposite(text, rng):
    words = text.split(" ")
    places = [i for i, word in enumerate(words) if word in _OPPOSITE]
    if places:
        place = rng.choice(places)
        words[place] = _OPPOSITE[words[place]]
    return " ".join(words)


def _negated(text, rng):
    if " not " in text:
        return text.replace(" not ", " ", 1)
    return re.sub(r" (is|was|are|were|will|can|has been|should) ", r" \1 not ", text, count=1)


def _acts(same, rng):
    kind = "organization" if rng.random() < 0.4 else "person"
    a, b = _two_names(kind, rng)
    return _swapped(ACTS[rng.integers(len(ACTS))], a, b, same, rng)


def _two_names(kind, rng):
    found = {}
    while len(found) < 2:
        found[names.name(kind, rng)] = None
    return found


def _swapped(text, a, b, same, rng, **values):
    """Two ways of `text` with `a` and `b`, which change places if they shall not be the same."""
    ways = text.split("|")
    first, second = rng.permutation(len(ways))[:2]
    if same:
        return ways[first].format(a=a, b=b, **values), ways[second].format(a=a, b=b, **values)
    second = rng.choice([first, second])
    return ways[first].format(a=a, b=b, **values), ways[second].format(a=b, b=a, **values)


def _compared(same, rng):
    a, b = _two_names("person", rng)
    words, others = (choice(COMPARED, rng).split(":") for _ in "ab")
    more, plain, less, _ = words if rng.random() < 0.5 else words[2:] + words[:2]
    values = {"more": more, "plain": plain, "less": less}
    kind = rng.random()
    if same or kind < 0.6:
        return _swapped(COMPARISON, a, b, same, rng, **values)
    first, second = choice(COMPARISON, rng), choice(EQUAL, rng)
    if kind < 0.8 and others != words:
        values_too = {"more": others[0], "plain": others[1], "less": others[2]}
        second = choice(COMPARISON, rng).format(a=a, b=b, **values_too)
    return first.format(a=a, b=b, **values), second.format(a=a, b=b, **values)


def _paid(same, rng):
    a, b = _two_names("person", rng)
    sum_paid, other = rng.choice(range(11, 990), size=2, replace=False)
    currency = choice(CURRENCIES, rng)
    if same or rng.random() < 0.6:
        return _swapped(PAID, a, b, same, rng, n=sum_paid, c=currency)
    ways = choice(PAID, rng), choice(PAID, rng)
    sums = zip(ways, (sum_paid, other), strict=True)
    return tuple(way.format(a=a, b=b, n=n, c=currency) for way, n in sums)


def _order(same, rng):
    a, b, c = rng.choice(EVENTS.replace("\n", "").split("|"), size=3, replace=False)
    if same or rng.random() < 0.8:
        return _swapped(ORDER, a, b, same, rng)
    return choice(ORDER, rng).format(a=a, b=b), choice(ORDER, rng).format(a=a, b=c)


def _schedule(same, rng):
    hour, other = (int(i) for i in rng.choice(range(2, 9), size=2, replace=False))
    day, other_day = rng.choice(WORDS["d"].split("|"), size=2, replace=False)
    event = choice(APPOINTMENTS, rng)
    if same:
        other, other_day = hour, day
    elif rng.random() < 0.5:
        other = hour
    elif rng.random() < 0.6:
        other_day = day
    ways = SCHEDULE.split("|")
    first, second = rng.permutation(len(ways))[:2]
    second = second if same else rng.choice([first, second])
    return _at(ways[first], event, day, hour), _at(ways[second], event, other_day, other)


def _at(way, event, day, hour):
    return way.format(e=event, d=day, h=hour, t=hour + 12, w=NUMBERS[hour - 2])


@functools.cache
def _read(seed):
    """The groups for a seed: the ways to say the same, and the near misses, of each."""
    lines = read_lines("duplicates_groups.tsv")
    return [[part.split("\t") for part in line.split("\t|\t")] for line in part_of(lines, seed)]


def _groups(seed, same, rng):
    groups = _read(seed)
    # Neighbours in the file are mostly about like things.
    place = rng.integers(len(groups))
    (ways, misses), (other, _) = groups[place], groups[place - 1]
    first, second = rng.choice(ways, size=2, replace=False)
    if not same:
        second = rng.choice(misses if rng.random() < 0.9 else other)
        # The first way is most like the near misses.
        first = first if rng.random() < 0.6 else ways[0]
    return (first, second) if rng.random() < 0.5 else (second, first)


def _animals(same, rng):
    a, b = choice(ANIMALS, rng).split(":")
    verb, participle = choice(VERBS, rng).split(":")
    active, passive = f"{a} {verb} {b}", f"{b} was {participle} by {a}"
    if same:
        return (active, passive) if rng.random() < 0.5 else (passive, active)
    reverse = f"{b} {verb} {a}", f"{a} was {participle} by {b}"
    return active, str(rng.choice(reverse))


def _facts(same, rng):
    ways = FACTS[rng.integers(len(FACTS))].split("|")
    first, second = rng.permutation(len(ways))[:2]
    values = _values(rng)
    others = dict(values)
    if same:
        return ways[first].format(**values), ways[second].format(**values)
    fields = re.findall(r"\{(\w)\}", ways[first])
    second = rng.choice([first, second])
    changed = str(rng.choice(fields))
    while others[changed] == values[changed]:
        others[changed] = _values(rng)[changed]
    return ways[first].format(**values), ways[second].format(**others)


def _questions(same, rng):
    things = [block.split("\n") for block in QUESTIONS.split("\n\n")]
    groups = [line.split("|") for line in things[rng.integers(len(things))]]
    i, j = rng.permutation(len(groups))[:2]
    values = _values(rng)
    first, second = rng.permutation(3)[:2]
    if same:
        return groups[i][first].format(**values), groups[i][second].format(**values)
    return groups[i][first].format(**values), groups[j][second].format(**values)


def _values(rng):
    values = {name: choice(text, rng) for name, text in WORDS.items()}
    number = str(rng.choice(NUMBERS)) if rng.random() < 0.4 else str(rng.integers(11, 99))
    kinds = {"p": "person", "l": "place", "o": "organization"}
    return {**values, "n": number, **{name: names.name(kind, rng) for name, kind in kinds.items()}}


def _written(row, rng):
    """With capital letters and points, or without."""
    plain = rng.random() < 0.2
    for text in row:
        text = re.sub(r" ([.,?'])", r"\1", text)
        if plain:
            yield text.lower()
        else:
            text = text[:1].upper() + text[1:]
            yield text if text.endswith(("?", ".")) else f"{text}."

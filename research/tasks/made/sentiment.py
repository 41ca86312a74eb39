"""Sentences with an opinion, or news that is good or bad, with negation.

Reviews of films, which the adapter is trained on otherwise, have few negated words,
and no news. All sentences and lists were written for this file.
"""

import re

import numpy as np

from made import choice, filled, in_case_of

CLASSES = ("negative", "positive")

THINGS = """food|soup|pizza|coffee|steak|dessert|breakfast|menu|service|waiter|staff|waitress|place|
restaurant|bar|room|bed|shower|hotel|view|location|reception|pool|flight|seat|crew|phone|screen|
battery|camera|keyboard|case|cable|charger|headset|sound|volume|microphone|laptop|printer|vacuum|
kettle|mattress|jacket|shoes|fabric|size|colour|app|update|interface|game|website|checkout|delivery|
packaging|support|manual|price|quality|design|film|plot|ending|acting|script|dialogue|cast|music|
soundtrack|book|story|chapter|lecture|course|teacher|doctor|dentist|garage|mechanic|plumber|
trip|tour|
guide|museum|concert|show|episode|series|meeting|speech|idea|plan|report|software|new version|
garden|neighbourhood|train|bus|road|weather|weekend|party|cake|recipe|performance|novel"""
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
HARD = "|".join(("best", "kindest", "finest", "nicest", "most helpful", "most honest"))
WORST = "|".join(("worst", "rudest", "dullest", "weakest", "most annoying", "most useless"))
VERY = "very |really |so |absolutely |truly |quite |just |simply |totally ||||||"

# What is said, by class: `{good}` and `{bad}` are adjectives, `{thing}` what it is about.
SAID = {
    "positive": """The {thing} is {very}{good} .|The {thing} was {very}{good} .|{Good} {thing} .|
What a {good1} {thing} !|I love the {thing} .|We loved the {thing} .|I like this {thing} a lot .|
I am very happy with the {thing} .|Very pleased with this {thing} .|
The {thing} is not {bad} at all .|
The {thing} wasn't {bad} .|not {bad} at all|There is nothing {bad1} about the {thing} .|
I have no complaints about the {thing} .|No problems with the {thing} so far .|
I couldn't find anything {bad1} .|The {thing} never lets me down .|It never gets {bad1} .|
You can't go wrong with this {thing} .|I couldn't be happier with the {thing} .|
The {thing} could not have been better .|It doesn't get better than this {thing} .|
I would recommend the {thing} to anyone .|I will be back for the {thing} .|
I expected a {bad1} {thing} and was wrong .|I was afraid it would be {bad} , but it is {good} .|
The {thing} is {bad} , but the {thing} more than makes up for it .|
The {thing} is {bad} , yet I enjoyed every minute .|Far from {bad} : the {thing} is {good} .|
The {thing} is anything but {bad} .|Hardly a {bad1} {thing} .|I can't complain .|
Not a single {bad1} moment .|One of the {best} {thing}s I have had .|
This is the {best} {thing} in town .|
Works as it should , {thing} is {good} .|The {thing} exceeded my expectations .|
Thank you for the {good1} {thing} !|Five stars for the {thing} .|Who would not like this {thing} ?|
Without the {thing} I would be lost : {good} .|The {thing} is hard to beat .|
i was not disappointed by the {thing}|the {thing} was surprisingly {good}|
Nobody does a better {thing} .|The {thing} has never been this {good} .|
Don't miss the {thing} .|If only every {thing} were this {good} .|Glad I bought this {thing} .""",
    "negative": """The {thing} is {very}{bad} .|The {thing} was {very}{bad} .|{Bad} {thing} .|
What a {bad1} {thing} !|I hate the {thing} .|We hated the {thing} .|I don't like this {thing} .|
I am very unhappy with the {thing} .|Very disappointed with this {thing} .|
The {thing} is not {good} at all .|The {thing} wasn't {good} .|not {good} at all|
There is nothing {good1} about the {thing} .|I have only complaints about the {thing} .|
Nothing but problems with the {thing} so far .|I couldn't find anything {good1} .|
The {thing} lets me down every time .|It never gets {good1} .|You can do better than this {thing} .|
I couldn't be less happy with the {thing} .|The {thing} could have been better .|
It doesn't get worse than this {thing} .|I would not recommend the {thing} to anyone .|
I will not be back for the {thing} .|Never again this {thing} .|
I expected a {good1} {thing} and was wrong .|I hoped it would be {good} , but it is {bad} .|
The {thing} is {good} , but the {thing} ruins it .|
The {thing} is {good} , yet I want my money back .|
Far from {good} : the {thing} is {bad} .|The {thing} is anything but {good} .|
Hardly a {good1} {thing} .|I can't say anything nice about the {thing} .|
Not a single {good1} moment .|
One of the {worst} {thing}s I have had .|This is the {worst} {thing} in town .|
Stopped working after a week , {thing} is {bad} .|The {thing} did not meet my expectations .|
No thanks to the {bad1} {thing} !|One star for the {thing} .|Who would like this {thing} ?|
I wanted to like the {thing} , but it is {bad} .|The {thing} is hard to bear .|
i was not impressed by the {thing}|the {thing} was surprisingly {bad}|
Anybody does a better {thing} .|
The {thing} has never been this {bad} .|Avoid the {thing} .|I wish the {thing} were {good} .|
I regret buying this {thing} .|The {thing} used to be {good} .|Too {bad} for me .|
They promised a {good1} {thing} . It isn't .|The {thing} fails to be {good} .""",
}
# Quantities that are good news when they rise, and when they fall.
LIKED = """profits|sales|wages|exports|orders|shares|the number of jobs|attendance|donations|
life expectancy|investment|tourism|harvests|savings|production|confidence among consumers"""
FEARED = """unemployment|crime|inflation|debt|infections|deaths on the road|losses|rents|poverty|
complaints|delays|emissions|accidents|bankruptcies|waiting times|prices of food"""
UP = "rose|climbed|went up|grew|increased|jumped|reached a record high"
DOWN = "fell|dropped|went down|shrank|declined|sank|hit a record low"
WHEN = (
    "last year|in March|this quarter|for the third month in a row|again|sharply|by a tenth|by 4 %"
)
NEWS = {
    "positive": """{Liked} {up} {when} .|{Feared} {down} {when} .|
The missing girl was found alive and well .|The team won the cup .|She got the job !|
All hostages were freed on Sunday .|Doctors say he will recover completely .|
The court cleared her of all charges .|The two sides agreed to end the fighting .|
Volunteers rebuilt the school in a month .|The company will hire 200 people .|
The new vaccine protects most children .|He was awarded a prize for his courage .|
Firefighters rescued the family from the roof .|The river is clean enough to swim in again .|
They paid back all debts ahead of time .|Scientists celebrate the successful landing .|
we passed the exam|I got my money back within a day .|They are expecting a baby .|
The charity raised twice as much as it had hoped .|The strike ended with a deal .""",
    "negative": """{Liked} {down} {when} .|{Feared} {up} {when} .|
The missing girl was found dead .|The team lost again and is out .|She did not get the job .|
The hostages are still held .|Doctors say he will never walk again .|
The court found her guilty of fraud .|The talks failed and the fighting goes on .|
The storm destroyed the school .|The company will cut 200 jobs .|
The new vaccine does not protect children .|He was arrested for bribery .|
A family of four died in the fire .|The river is too dirty to swim in .|
They could not pay their debts .|The launch failed seconds after the start .|we failed the exam|
I never got my money back .|Three people were killed in the crash .|
The charity had to close for lack of money .|The workers went on strike after talks broke down .|
Thousands lost their homes in the flood .|My flight was cancelled twice .|
He was bullied at school .""",
}


def sentences(number, seed=0):
    """Returns columns: `text`, and `label`, one of `CLASSES`, half of each.

    Args:
        number: Int, the number of sentences.
        seed: Int.
    """
    rng = np.random.default_rng(seed)
    labels = [CLASSES[i % 2] for i in range(number)]
    texts = [_sentence(label, rng) for label in labels]
    return {"text": texts, "label": labels}


def _sentence(label, rng):
    template = choice((NEWS if rng.random() < 0.2 else SAID)[label], rng)
    text = filled(template, _part, rng)
    text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
    if rng.random() < 0.25:
        text = text.lower()
    # Reviews are written without spaces before points, the data of films with them.
    return text if rng.random() < 0.5 else re.sub(r" ([.,!?:])", r"\1", text)


def _part(kind, rng):
    lists = {"thing": THINGS, "very": VERY, "best": HARD, "worst": WORST, "up": UP, "down": DOWN}
    lists |= {"when": WHEN, "good": GOOD, "bad": BAD, "liked": LIKED, "feared": FEARED}
    found = choice(lists[kind.lower().rstrip("1")], rng)
    while kind.endswith("1") and " " in found:  # An adjective before its noun is one word.
        found = choice(lists[kind.rstrip("1")], rng)
    return in_case_of(kind, found)

"""Writes a small corpus for pretrain.py: threads of messages, generated from templates.

Names, places and times are repeated within a thread, so that memory helps to predict them.
"""

import pathlib
import random
import string

WORDS = {
    "friend": "Maya Tom Priya Lewis Ana Kofi Ruth Danny Mei Oscar Ines Femi Greta Sam Noor Bea",
    "place": "the station|the library|the pool|the old bakery|the market|the park|the pub|"
    "the cinema|the bus stop|the harbour|school|work|the gym|the river|gran's",
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|tomorrow|tonight",
    "hour": "six|half seven|eight|noon|quarter past nine|ten|half four|two",
    "thing": "the keys|my charger|the blue jumper|your umbrella|the tickets|the big pot|"
    "the tent|a cake|the guitar|my bike|the drill|those photos",
    "reason": "the train is late|it is raining|my shift ran over|the car won't start|"
    "the kids are ill|I lost track of time|the meeting dragged on",
    "shop": "PhoneBarn|SwapShed|QuickLoan|StarPrize|TextHeaven|MegaTone|CashPod|LuckyLine",
    "prize": "a free phone|500 free texts|a holiday for two|a cash prize|a new tablet|"
    "a ringtone|a shopping voucher",
}
CHOICES = {k: v.split("|") if "|" in v else v.split() for k, v in WORDS.items()}

MEETING = """\
Hi $friend, are we still on for $day at $place?|$friend, fancy $place on $day?
Yes, $hour at $place works for me.|Can we make it $hour? See you at $place.
I will bring $thing if you want.|Could you bring $thing to $place?
Running late, $reason.|Sorry $friend, $reason.|Be there in ten, $friend.
Okay, meet you at $place at $hour instead.|No worries, $hour is fine.
Lovely to see you at $place, $friend!|Thanks for $day, $friend."""
LENDING = """\
$friend, have you seen $thing?|Did I leave $thing at $place, $friend?
I think I left it at $place on $day.|Last I saw $thing was at $place.
No, but $other might have $thing.|Ask $other, she was at $place on $day.
Found it! $other had $thing all along.|$other says $thing is still at $place.
Can you pick up $thing at $hour on $day?|I will fetch $thing from $place on $day.
You are a star, $friend.|Thanks $friend, I owe you one."""
ERRAND = """\
Mum says dinner is at $hour on $day.|Dinner at $hour, don't be late, $friend.
Can you get milk on the way from $place?|We need bread, and bring $thing.
$other is coming too, with $thing.|Tell $other it is at $hour, not later.
Sorry, $reason, start without me.|I might be late, $reason.
There is a plate for you in the oven.|We saved you some, $friend.
See you on $day then.|Love you, see you at $hour."""
OFFER = """\
CONGRATULATIONS! $shop has picked you to win $prize!|You have won $prize from $shop!
To claim $prize call $number now.|Text WIN to $number to get $prize.
Offer ends $day! Only from $shop.|Hurry, $shop closes this offer on $day!
Calls cost £1.50 a minute, over 18s only.|Reply STOP to $number to end messages.
$shop: last chance to claim $prize on $number!|Don't miss out, call $number before $day!"""
THREADS = [MEETING, LENDING, ERRAND, OFFER]


def write_corpus(directory, num_threads=2000, num_held_out=200, seed=0):
    """Writes `train.txt` and `held_out.txt`, one sentence a line, a blank line between threads.

    Files that exist already are kept.

    Args:
        directory: Path of the folder; it is made if it does not exist.
        num_threads: Int, number of threads to train on.
        num_held_out: Int, number of held-out threads.
        seed: Int. The same seed gives the same corpus.

    Returns:
        A list of the two paths.
    """
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    paths = [directory / "train.txt", directory / "held_out.txt"]
    for path, count in zip(paths, (num_threads, num_held_out), strict=True):
        threads = [make_thread(rng) for _ in range(count)]
        # Records remember the time at which their files were written.
        if not path.is_file():
            path.write_text("\n\n".join("\n".join(t) for t in threads) + "\n", encoding="utf-8")
    return paths


def make_thread(rng):
    """Returns the sentences of one thread."""
    facts = {slot: rng.choice(choices) for slot, choices in CHOICES.items()}
    facts["other"] = rng.choice([f for f in CHOICES["friend"] if f != facts["friend"]])
    facts["number"] = "0800 " + "".join(rng.choice(string.digits) for _ in range(3)) + " 0199"
    lines = rng.choice(THREADS).splitlines()
    # Some sentences are left out at random, so that threads differ in their course.
    kept = [line for line in lines if rng.random() < 0.85] or lines
    return [string.Template(rng.choice(line.split("|"))).substitute(facts) for line in kept]

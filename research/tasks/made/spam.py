"""Text messages of today, spam and ham, by kind.

The SMS Spam Collection is of 2011: ringtones and prize draws, but no parcels and no
locked accounts. All messages and lists were written for this file and `spam_messages.tsv`, which
has a label, a kind and a template in each line. Numbers are reserved for fiction, short codes are
invented (they begin with 0), and domains end in `.example`: they belong to nobody.
"""

import re

import numpy as np

from made import choice, filled, in_case_of, part_of, read_lines

CLASSES = ("ham", "spam")
LISTS = {
    "authority": """
HMRC|IRS|Revenue|DVLA|DMV|City Council|Tax Office|Social Security|Centrelink|Treasury""",
    "bank": """
Lloyds|Chase|Barclays|HSBC|Santander|Northern Trust Bank|SBI|HDFC Bank|AIB|GTBank|Zenith|Monzo""",
    "carrier": "Post Office|DHL|UPS|FedEx|Royal Mail|Evri|USPS|DPD|An Post|Blue Dart|GLS|AusPost",
    "chat": "WhatsApp|Telegram|Signal|Messenger|Line|Viber|whatsapp|TG",
    "city": """
London|Dublin|Leeds|Austin|Chicago|Lagos|Mumbai|Delhi|Cork|Sydney|Toronto|Glasgow|Abuja|Pune|
Boston""",
    "coin": "Bitcoin|BTC|ETH|Ethereum|USDT|Solana|Dogecoin|XRP",
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|Sat|Fri|Tues|Mon",
    "energy": "British Gas|Octopus|PG&E|EDF|Electric Ireland|Con Edison|Tata Power|Harbour Energy",
    "fee": "redelivery|handling|postage|import|storage|shipping|clearance",
    "firm": """
Northgate Logistics|Brightwell Care|Harbour Foods|Oakline Media|Summit Staffing|Delta Labs|
Kestrel Legal""",
    "food": "pizza|curry|tacos|sushi|chips|jollof|biryani|burgers|noodles|dosa",
    "hours": "24 hours|12 hours|48 h|2 days|72 hours|24hrs|one hour|3 days",
    "item": """
sofa|bike|pram|desk|fridge|camera|drill|coffee machine|headset|PS5|tent|bookcase|mirror|cot|
guitar|TV""",
    "kin": "brother|sister|cousin|nephew|uncle|son|niece|daughter|father",
    "letter": "A|B|C|J|M|R|S",
    "month": """
January|February|March|April|May|June|July|August|September|October|November|December|Jan|Sept|
Dec""",
    "name": """
Anna|David|Lisa|Tom|Sophie|Mark|Emma|Chris|Julia|Ben|Nina|Paul|Priya|Rahul|Chidi|Ngozi|Aoife|
Sean|Fatima|Omar|Mei|Carlos|Maria|Tunde|Anil|Grace|Liam|Zoe|Jack|Deepa""",
    "parent": "mum|dad|mom|grandma|mama|auntie|mammy|papa|nan",
    "pet": "dog|cat|puppy|kitten|rabbit|parrot",
    "phone": "iPhone|Galaxy|Pixel|iPhone 16|Galaxy S24|MacBook",
    "school": "St Mary's|Hillside Primary|Oak Park High|Greenfield School|the college|Loreto",
    "shop": """
Amazon|Tesco|Walmart|IKEA|Costco|Aldi|Target|Argos|eBay|Boots|Flipkart|Jumia|Dunnes|Best Buy""",
    "sport": "football|cricket|tennis|hurling|basketball|golf|padel|badminton",
    "stream": "Netflix|Spotify|Prime|Disney+|iCloud|Apple ID|PayPal|Microsoft|YouTube|Steam",
    "street": """
High Street|Mill Lane|Park Road|Station Rd|Elm Avenue|MG Road|Church St|Allen Avenue|5th Ave""",
    "surname": "Lane|Patel|Murphy|Okafor|Walker|Hughes|Rossi|Singh|Byrne|Adeyemi|Miller|Chen|Evans",
    "team": "United|City|Rovers|the Tigers|the Eagles|Athletic|Arsenal|the Lakers|Mumbai|Munster",
    "telco": "Vodafone|EE|O2|Three|Airtel|MTN|Verizon|T-Mobile|Jio|Glo|AT&T|eir",
    "time": "9.15|10:30|5pm|7 pm|noon|4|half past six|11am|8.45|6:00|14:00|3.20 pm|midnight",
    "greeting": "Hi! |Hello! |Hey, |Hi there, |Good morning. |Hello, |hiya ",
    "ending": " Thanks.| Thank you!| x| Thx| Regards| Cheers| :)",
}
# "#" is a random digit.
NUMBERS = "07700 9001##|+44 7700 9002##|555-01##|(202) 555-01##|020 7946 0###|08081 5701##"
MONEY = "£{}|£{}|${}|${}|€{}|€{}|₹{}|Rs {}|N{}|{} EUR|{} pounds|{} USD|{} euros|{} dollars|{} Rs"
WORDS = """parcel track secure login verify refund update pay help my account info id claim app docs
team video photos news shop menu book events go online portal home view form status club""".split()


def messages(number, seed=0):
    """Returns columns: `text`, and `label`, one of `CLASSES`, half of each.

    Args:
        number: Int, the number of messages.
        seed: Int. 0 is for training: other seeds use other kinds of messages.
    """
    rng = np.random.default_rng(seed)
    labels = [CLASSES[i % 2] for i in range(number)]
    kinds = {label: part_of([*of_kind.values()], seed) for label, of_kind in templates().items()}
    return {"text": [_message(kinds[label], rng) for label in labels], "label": labels}


def templates():
    """Returns lists of templates by label and kind, in the order of the file."""
    kinds = {label: {} for label in CLASSES}
    for line in read_lines("spam_messages.tsv"):
        label, kind, template = line.split("\t")
        kinds[label].setdefault(kind, []).append(template)
    return kinds


def _message(group, rng):
    of_kind = group[rng.integers(len(group))]
    return _varied(filled(of_kind[rng.integers(len(of_kind))], _part, rng), rng)


def _varied(text, rng):
    """Returns a text as someone else would type it, which says nothing about its class."""
    if rng.random() < 0.06 and not re.match(r"(hi|hiya|hello|hey|dear|good)\b", text.lower()):
        text = choice(LISTS["greeting"], rng) + text
    if rng.random() < 0.06:
        text += choice(LISTS["ending"], rng)
    if rng.random() < 0.06:
        words = text.split(" ")
        place = rng.integers(len(words))
        words[place] = words[place].upper() if words[place].isalpha() else words[place]
        text = " ".join(words)
    if rng.random() < 0.1:
        text = re.sub(r"\b([Yy]ou)(r?)\b", r"u\2", text)
    if rng.random() < 0.1:
        text = text.replace("'", "")
    if rng.random() < 0.2:
        text = text.lower()
    return text.rstrip(".") if rng.random() < 0.3 else text


def _part(kind, rng):
    if kind in LISTS or kind.lower() in LISTS:
        return in_case_of(kind, choice(LISTS[kind.lower()], rng))
    if kind in ("small", "money", "large"):
        return _money(kind, rng)
    if kind == "number":
        return re.sub("#", lambda _: str(rng.integers(10)), choice(NUMBERS, rng))
    if kind == "code":
        return "".join(rng.choice([*"ABCDEFGHKLMNPRSTUVWX23456789"], rng.integers(6, 11)))
    if kind == "date":
        day, month = rng.integers(1, 29), choice(LISTS["month"], rng)
        return str(rng.choice([f"{day} {month}", f"{month} {day}", f"{day}/{rng.integers(1, 13)}"]))
    if kind == "link":
        words = "-".join(rng.choice(WORDS, rng.integers(1, 4), replace=False))
        path = rng.integers(1, 99) if rng.random() < 0.5 else _part("code", rng)[:5]
        return ("https://" if rng.random() < 0.6 else "") + f"{words}.example/{path}"
    if kind == "short":
        return f"0{rng.integers(1000, 10000)}"
    low, high = {"digits": (1000, 999999), "n": (2, 10), "pct": (5, 99)}[kind]
    return str(rng.integers(low, high))


def _money(kind, rng):
    if kind == "large":
        amount = f"{rng.integers(1, rng.choice([10, 100, 1000])) * 1000:,}"
        if rng.random() < 0.2:
            amount = f"{rng.integers(1, 20)}.{rng.integers(1, 9)} million"
    else:
        amount = (
            rng.integers(1, 20) if kind == "small" else rng.integers(10, rng.choice([100, 5000]))
        )
        amount = f"{amount}.{rng.integers(10, 99)}" if rng.random() < 0.5 else str(amount)
    return choice(MONEY, rng).format(amount)

"""Text messages of today, spam and ham, by kind.

The SMS Spam Collection is of 2011: ringtones and prize draws, but no parcels and no
locked accounts. All messages and lists were written for this file. Numbers are reserved for
fiction, and domains end in `.example`, so they belong to nobody.
"""

import re

import numpy as np

from made import choice, filled, in_case_of

CLASSES = ("ham", "spam")
SPAM = {
    "parcel": """Your parcel {code} could not be delivered . Pay the {fee} fee of {money} : {link}|
{carrier} : your package is held at our depot . Confirm your address within {hours} : {link}|
A customs fee of {money} is due for your shipment {code} . Settle it here {link}|
We tried to deliver your item today . Reschedule now ( {money} ) {link}|
{carrier} notice : delivery {code} is on hold because the house number is missing . Update : {link}""",
    "bank": """{bank} alert : your account has been locked . Verify your identity at {link}|
{bank} : a payment of {money} was attempted from a new device . If this was NOT you , visit {link}|
Your card has been suspended for security reasons . Reactivate it here : {link}|
{bank} security : a new payee was added . To cancel call {number} at once .|
Your online banking expires today . Log in to renew it : {link}""",
    "tax": """You are owed a tax refund of {money} . Claim it before midnight : {link}|
Tax office : there is a warrant in your name for unpaid tax . Call {number} now to avoid arrest .|
Government : you qualify for an energy rebate of {money} . Apply here {link}|
Final notice of a tax penalty , case {code} . Pay {money} today : {link}""",
    "new number": """
Hi {parent} , I dropped my phone in the toilet , this is my new number . Text me on {number} x|
{Parent} it's me , my phone broke , save this number and delete the old one . Are you busy ?|
hey {parent} got a new phone , old number is gone . can you help me pay a bill today ? i'll pay you back tomorrow|
Hi {parent} , I can't get into my bank on the new phone , could you transfer {money} for me today ?""",
    "crypto": """Your wallet holds {money} in unclaimed coins . Withdraw now : {link}|
Our members made {money} last week with AI trading . Join free : {link}|
I turned {money} into {money} in ten days with this platform , ask me how|
Join our signals group , 98 % accuracy , profits guaranteed , message {number}""",
    "job": """
We saw your resume . Earn {money} a day working from home , no experience needed . Reply YES|
Part - time online job , {money} per hour , just like videos . Contact us on WhatsApp {number}|
Hello , I am {name} from recruitment . Can I share a remote position with you ? {money} daily .|
HR here : you are selected for a data entry job . Register with a deposit of {money} {link}""",
    "subscription": """
{stream} : we could not process your payment . Update your card or lose access : {link}|
Your {stream} subscription is on hold . Renew : {link}|
Your {stream} membership ends today . Get 90 days free here : {link}|
Thank you for your order of {money} at {shop} . To cancel call {number}""",
    "toll": """
You have an unpaid toll of {money} . Pay within {hours} to avoid a fine of {money} : {link}|
Parking charge {code} is overdue . Pay now or it doubles : {link}|
Your vehicle is listed for a fine . Check the photo at {link}""",
    "prize": """
Congratulations ! You have been chosen for a {shop} voucher of {money} . Claim : {link}|
You are today's lucky visitor . Answer 3 questions and get a new phone : {link}|
{shop} survey : tell us what you think and receive {money} {link}|
Last chance to collect your {shop} gift card before it expires {link}""",
    "loan": """Your loan of {money} is approved . No credit check . Accept : {link}|
Need cash ? Borrow up to {money} today , reply LOAN|
We can write off up to 80 % of your debts . Reply HELP or STOP to opt out|
You may be owed {money} for your accident . Call {number} free""",
    "stranger": """Hi , is this {name} ? We met at the party in May , I lost your number|
Hello dear , I found your number in my contacts , are you {name} from the yoga class ?|
I am new in town and looking for a serious man . My photos are here : {link}|
Good morning {name} , shall we play golf on Saturday ? Sorry wrong number , but nice to meet you , where are you from ?""",
    "code": """We sent you a code by mistake , please forward it to this number|
Your account will be deleted in {hours} . Reply with the 6 - digit code to keep it .|
hey sorry , i used your number to sign up , can you send me the code you just got|
WhatsApp : your account is being registered on another phone . Not you ? Verify : {link}""",
    "casino": """{money} bonus waiting . Spin now : {link} 18 + T & Cs apply|
Deposit {money} play with {money} ! Tonight only {link}|
200 free spins for you , no deposit . {link}""",
    "support": """Your device is infected with 3 viruses . Clean it now : {link}|
Your cloud storage is full , photos will be deleted in {hours} . Upgrade : {link}|
Your phone contract can be upgraded for free . Call {number} today|
Your SIM will be deactivated in {hours} . Confirm your details : {link}""",
}
HAM = {
    "parcel": """
Your parcel from {shop} is with the driver and will arrive between 2 and 4 pm today .|
hey your parcel is here at ours , come round any time after 6|
{carrier} : your parcel was left with your neighbour at no . 14 . No action is needed .|
Your order is ready to collect at the shop in the High Street until Saturday . Bring your ID .|
did the package from grandma get there yet ?""",
    "bank": """{bank} : your statement is ready in the app .|
You spent {money} at {shop} on card ending 4421 .|
{bank} : your appointment at the branch is on Tuesday at 10.30 .|
I transferred you {money} for the tickets , tell me when it's there|
{bank} : we never ask for your PIN or password by text . Did you pay {money} at {shop} ? Reply Y or N .""",
    "code": """{digits} is your verification code . Do not share it with anyone .|
Your {stream} code is {digits} . It expires in 10 minutes .|
Use {digits} to log in . If you did not ask for this , ignore this message .|
the wifi code is {digits} , second drawer if you forget""",
    "appointment": """
Reminder : your dental appointment is on Friday at 9.15 . Reply C to confirm .|
Dr. Lane's surgery : your test results are back and normal .|
Your haircut with {name} is booked for 3 pm tomorrow . Reply CANCEL to cancel .|
Your car is ready , the bill is {money} . We close at half past five .|
School closes at noon today because of the snow . Please collect your child .""",
    "family": """{Parent} can you pick me up at 5 ? practice ends early|
Happy birthday {name} ! Hope you have a lovely day xx|
running late , start without me|what time is dinner|on my way , 10 min|
Don't forget milk and bread please|call me when you land|love you , good night|
{name} says thanks for the flowers , they are beautiful|
my phone is at 2 % , i'll ring from {name}'s""",
    "friends": """are you coming on saturday ? bring {name}|haha no way|
pub tonight ? usual place at 8|how did the exam go ?|
can you lend me {money} till friday ? forgot my wallet|
I got the tickets ! {money} each , pay me whenever|
look at this lol https : //video . example / cats|
new phone , who dis . joking , it's me , see you at 7|I've left the keys under the pot|
sorry i missed your call , was in a meeting|We won ! 3 - 1 , should have been five""",
    "work": """Can you cover my shift on Sunday ?|The meeting moved to 11 , room 4 .|
Please send me the invoice for March when you have a minute .|
The server is back up . Thanks for your patience .|{name} is off sick , could you open the shop ?|
Your shift tomorrow is 7 to 3 .|
Interview confirmed for Monday 14.00 with {name} . Ask for me at reception .|
Here is the link to the slides https : //team . example / d / 82""",
    "service": """Your table for four is booked for 19.30 on Saturday . See you then !|
Thanks for your payment of {money} . Receipt {code} .|
Your train at 17.42 is cancelled . Your ticket is valid on the next one .|
Water will be off in your street from 9 to 12 on Thursday for repairs .|
Your prescription is ready to collect .|Your taxi , a grey car , is arriving now .|
Your library books are due on the 14th . Renew in the app .|
Your {stream} bill of {money} will be taken on the 1st as usual .|
Thank you for voting . Results will be on our website on Friday .""",
    "long": """
I was thinking about what you said and I agree , let's wait until the summer and then decide together .|
So the landlord finally answered , he will fix the heating on Monday , but we have to be in from 8 .|
Do you remember the name of the place where we ate in June ? {name} wants to take his parents there .""",
}
LISTS = {
    "fee": "redelivery|handling|postage|import|storage",
    "carrier": "Post Office|DHL|UPS|FedEx|Royal Mail|Evri|USPS|DPD",
    "bank": "BANK|Lloyds|Chase|Barclays|HSBC|your bank|Santander|Northern Trust Bank",
    "stream": "Netflix|Spotify|Prime|Disney+|iCloud|Apple ID|PayPal|Microsoft",
    "shop": "Amazon|Tesco|Walmart|IKEA|Costco|Aldi|Target|Argos|eBay|Boots",
    "parent": "mum|dad|mom|grandma|mama|auntie",
    "name": "Anna|David|Lisa|Tom|Sophie|Mark|Emma|Chris|Julia|Ben|Nina|Paul",
    "hours": "24 hours|12 hours|48 h|today|2 days",
}
WORDS = "parcel track secure login verify refund update pay help my account info id claim".split()


def messages(number, seed=0, half=None):
    """Returns columns: `text`, and `label`, one of `CLASSES`, half of each.

    Args:
        number: Int, the number of messages.
        seed: Int.
        half: Optional int, 0 or 1. Messages are only of this half of the kinds of each class.
    """
    rng = np.random.default_rng(seed)
    labels = [CLASSES[i % 2] for i in range(number)]
    part = slice(None) if half is None else slice(half, None, 2)
    groups = {
        label: [*kinds.values()][part] for label, kinds in zip(CLASSES, (HAM, SPAM), strict=True)
    }
    return {"text": [_message(groups[label], rng) for label in labels], "label": labels}


def _message(group, rng):
    template = choice(str(rng.choice(group)), rng)
    text = filled(template, _part, rng)
    text = re.sub(r" ([.,!?:])", r"\1", text).replace(": //", "://").replace(" / ", "/")
    if rng.random() < 0.2:
        text = text.lower()
    return text.rstrip(".") if rng.random() < 0.3 else text


def _part(kind, rng):
    if kind == "money":
        amount = rng.choice([rng.integers(1, 10), rng.integers(10, 100), rng.integers(100, 5000)])
        cents = "" if rng.random() < 0.5 else f".{rng.integers(10, 99)}"
        return str(rng.choice(["£{}{}", "${}{}", "€{}{}", "{}{} EUR", "{}{} pounds"])).format(
            amount, cents
        )
    if kind == "number":
        return str(rng.choice(["07700 900{}", "555 0{}", "020 7946 0{}"])).format(
            rng.integers(100, 200)
        )
    if kind == "digits":
        return str(rng.integers(1000, 999999))
    if kind == "code":
        return "".join(rng.choice([*"ABCDEFGHKLMNPRSTUVWX23456789"], rng.integers(6, 11)))
    if kind == "link":
        words = "-".join(rng.choice(WORDS, rng.integers(1, 4), replace=False))
        return ("https://" if rng.random() < 0.6 else "") + f"{words}.example/{rng.integers(1, 99)}"
    found = choice(LISTS[kind.lower()], rng)
    return in_case_of(kind, found)

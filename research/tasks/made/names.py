"""Sentences of many kinds with persons, places, organizations and other names, with their tags.

The other training data are tweets, which rarely look like news, mails or reviews. All sentences and lists were written for this file.
"""

import numpy as np

from made import choice, filled

TYPES = ("person", "place", "organization", "other")

FIRST = """
James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Susan Richard
Jessica Joseph Sarah Thomas Karen Charles Lisa Daniel Nancy Matthew Betty Mark Sandra Paul
Ashley Steven Emily Andrew Donna Joshua Michelle Kevin Carol Brian Amanda George Melissa
Edward Deborah Ronald Laura Emma Olivia Noah Liam Sophia Ava Lucas Mia Ethan Chloe Oliver
Grace Harry Alice Jack Ruby Oscar Freya Angela Dieter Jürgen Heike Klaus Ingrid Pierre Camille
Luc Sylvie Marco Giulia Luca Paolo Javier Carmen Diego Lucia Carlos Ana Pedro Inês Sven Astrid
Lars Freja Mikko Aino Piotr Agnieszka Ivan Olga Dmitri Natasha Mehmet Ayşe Ahmed Fatima Omar
Leila Yusuf Amina Ravi Priya Arjun Deepa Sanjay Anjali Wei Mei Li Hiroshi Yuki Kenji Sakura
Min-jun Ji-woo Nguyen Linh Kwame Ama Chidi Ngozi Thabo Zanele Tariq Zainab Eli Rachel Aaron
Hannah Caleb Naomi Gareth Siobhan Declan Aoife Hamish Fiona Will Mark Rose May June Bill Frank
Grant Jordan Taylor Morgan Casey Chase Hope Faith Dawn Max Gene Art Drew Pat Sue Bob Tom Tim
Ted Jim Joe Ben Sam Nick Kate Anne Jane Lucy Amy Beth Meg Tina Rita Nina Vera""".split()
LAST = """
Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez
Wilson Anderson Taylor Moore Jackson Martin Lee Perez Thompson White Harris Clark Lewis
Robinson Walker Young Allen King Wright Scott Torres Hill Green Adams Baker Nelson Carter
Mitchell Roberts Turner Phillips Campbell Parker Evans Edwards Collins Stewart Morris Murphy
Cook Rogers Reed Morgan Bell Cooper Richards Cox Ward Gray Watson Brooks Kelly Sanders Price
Bennett Wood Barnes Ross Henderson Coleman Jenkins Perry Powell Long Patterson Hughes Flores
Butler Simmons Foster Bryant Russell Griffin Hayes Merkel Schröder Müller Schmidt Weber
Fischer Becker Hoffmann Dupont Moreau Laurent Bernard Rossi Bianchi Ferrari Romano Sánchez
Fernández Silva Santos Pereira Jansen de Vries van Dijk Johansson Lindqvist Nielsen Hansen
Virtanen Kowalski Nowak Novák Horváth Popescu Petrov Ivanova Volkov Yılmaz Demir Khan Ahmed
Hassan Haddad Cohen Levi Singh Patel Sharma Gupta Reddy Chen Wang Zhang Liu Yang Wong Tanaka
Suzuki Sato Kim Park Choi Nguyen Tran Okafor Mensah Dlamini Mbeki O'Brien O'Neill McDonald
MacLeod Fitzgerald Shaw Bishop Knight Page Stone Rivers Fields Marsh Banks Lane Park Winter
Frost Fox Wolf Swan Sparrow Rice Bacon""".split()
CITIES = """
London|Paris|Berlin|Madrid|Rome|Vienna|Prague|Budapest|Warsaw|Lisbon|Dublin|Edinburgh|Glasgow|
Manchester|Liverpool|Leeds|Bristol|Cardiff|Belfast|Oxford|Cambridge|York|Bath|Brighton|
Sheffield|Newcastle|New York|New York City|Los Angeles|San Francisco|San Diego|Chicago|Boston|
Seattle|Houston|Dallas|Austin|Denver|Miami|Atlanta|Philadelphia|Phoenix|Detroit|Washington|
Las Vegas|New Orleans|Salt Lake City|Kansas City|St. Louis|Toronto|Vancouver|Montreal|Ottawa|
Calgary|Mexico City|Havana|Rio de Janeiro|São Paulo|Buenos Aires|Santiago|Lima|Bogotá|Tokyo|
Kyoto|Osaka|Seoul|Beijing|Shanghai|Hong Kong|Taipei|Bangkok|Hanoi|Ho Chi Minh City|Singapore|
Kuala Lumpur|Jakarta|Manila|Mumbai|New Delhi|Delhi|Kolkata|Chennai|Bangalore|Karachi|Lahore|
Dhaka|Kathmandu|Kabul|Tehran|Baghdad|Dubai|Abu Dhabi|Riyadh|Tel Aviv|Jerusalem|Beirut|
Damascus|Amman|Cairo|Tripoli|Tunis|Casablanca|Lagos|Accra|Nairobi|Addis Ababa|Cape Town|
Johannesburg|Sydney|Melbourne|Brisbane|Perth|Auckland|Wellington|Moscow|Kyiv|St. Petersburg|
Istanbul|Ankara|Athens|Sofia|Belgrade|Zagreb|Munich|Hamburg|Cologne|Frankfurt|Leipzig|Zurich|
Geneva|Basel|Brussels|Antwerp|Amsterdam|Rotterdam|Copenhagen|Stockholm|Oslo|Helsinki|
Reykjavik|Milan|Naples|Venice|Florence|Turin|Barcelona|Seville|Valencia|Porto|Lyon|Marseille|
Nice|Bordeaux|Springfield|Fairview|Riverside|Georgetown|Ashford|Millbrook|Hatfield|Newbury|
Kingston|Bradford|Reading"""
REGIONS = """
France|Germany|Italy|Spain|Portugal|Greece|Turkey|Poland|Ukraine|Russia|Norway|Sweden|Denmark|
Finland|Iceland|Ireland|Scotland|Wales|England|Britain|the Netherlands|Belgium|Switzerland|
Austria|Hungary|Romania|Bulgaria|Serbia|Croatia|Egypt|Morocco|Nigeria|Ghana|Kenya|Ethiopia|
South Africa|Zimbabwe|India|Pakistan|Bangladesh|Nepal|Sri Lanka|China|Japan|South Korea|
North Korea|Vietnam|Thailand|Malaysia|Indonesia|the Philippines|Australia|New Zealand|Canada|
Mexico|Brazil|Argentina|Chile|Peru|Colombia|Venezuela|Cuba|Jamaica|Iran|Iraq|Syria|Israel|
Lebanon|Jordan|Saudi Arabia|Qatar|Yemen|Afghanistan|the United States|the US|USA|the UK|UK|
the United Kingdom|Europe|Asia|Africa|America|South America|the Middle East|California|Texas|
Florida|Ohio|Georgia|Virginia|Oregon|Nevada|Alaska|Hawaii|Montana|New Jersey|New Mexico|
North Carolina|South Dakota|Ontario|Quebec|Queensland|Bavaria|Saxony|Tuscany|Catalonia|
Brittany|Cornwall|Devon|Kent|Yorkshire|Sussex|Siberia|Crimea|Kashmir|Punjab|Gaza|the Alps|
the Andes|the Himalayas|the Sahara|the Amazon|the Nile|the Rhine|the Danube|the Thames|
the Mississippi|Lake Geneva|Lake Victoria|Loch Ness|Mount Everest|Mount Fuji|Ben Nevis|
the Black Sea|the Baltic|the Pacific|the Atlantic|the English Channel|Long Island|Manhattan|
Brooklyn|Queens|Soho|Brixton|Silicon Valley|Hollywood|Wall Street|Oxford Street|Fifth Avenue|
Main Street|Abbey Road|Times Square|Trafalgar Square|Central Park|Hyde Park|Yellowstone|
Heathrow|Gatwick|Victoria Station|Penn Station"""
COMPANIES = """
Google|Microsoft|Apple|Amazon|Facebook|Meta|Twitter|Netflix|Intel|IBM|Oracle|Cisco|Samsung|
Sony|Nintendo|Toyota|Honda|Ford|Tesla|Volkswagen|BMW|Siemens|Bosch|Bayer|Nestlé|Unilever|
Shell|BP|Exxon|Boeing|Airbus|Lufthansa|Ryanair|British Airways|Delta|United Airlines|FedEx|
UPS|DHL|Royal Mail|Walmart|Target|Costco|Tesco|Sainsbury's|Aldi|Lidl|IKEA|Starbucks|
McDonald's|Burger King|KFC|Subway|Pepsi|Coca-Cola|Nike|Adidas|Zara|H&M|Goldman Sachs|
Morgan Stanley|JPMorgan|Barclays|HSBC|Lloyds|Visa|PayPal|Vodafone|Verizon|AT&T|T-Mobile|Nokia|
Ericsson|Pfizer|Moderna|Novartis|Uber|Airbnb|Spotify|eBay|Reuters|Bloomberg|CNN|BBC|the BBC|
Fox News|Sky|ITV|the Guardian|the New York Times|the Washington Post|the Times|Le Monde|
Disney|Pixar|Warner Bros|Universal|the UN|the United Nations|NATO|the EU|the European Union|
UNICEF|WHO|the World Health Organization|the World Bank|the IMF|the Red Cross|Greenpeace|
Oxfam|Amnesty|the FBI|the CIA|NASA|the Pentagon|the White House|Congress|the Senate|
Parliament|the House of Commons|the Supreme Court|the Bank of England|the Federal Reserve|
the European Central Bank|the NHS|Scotland Yard|the Labour Party|the Conservatives|
the Republicans|the Democrats|the Green Party|Harvard|MIT|Stanford|Yale|Oxford University|
Cambridge University|Imperial College|the Louvre|the British Museum|the Met|Arsenal|Chelsea|
Liverpool FC|Manchester United|Real Madrid|Barcelona FC|Bayern Munich|Juventus|Ajax|Celtic|
the Lakers|the Yankees|the Red Sox|the Chicago Bulls|the Dallas Cowboys|FIFA|UEFA|the NBA|
the NFL|the Rolling Stones|the Beatles|Coldplay|Metallica|Radiohead|Queen|Abba|
Greenwich Council|City Hall"""
OTHERS = """
iPhone|iPhone 12|Galaxy S21|PlayStation 5|Xbox|Switch|Kindle|MacBook Pro|iPad|AirPods|
Windows 10|Photoshop|Excel|Android|Gmail|Minecraft|Fortnite|Tetris|Zelda|Mario Kart|Star Wars|
Titanic|Casablanca|The Godfather|Jaws|Frozen|Inception|The Matrix|Toy Story|Pulp Fiction|
The Lion King|Harry Potter|The Lord of the Rings|Pride and Prejudice|Moby Dick|War and Peace|
Hamlet|Macbeth|The Great Gatsby|1984|Breaking Bad|Game of Thrones|Friends|The Simpsons|
Doctor Who|Sherlock|Downton Abbey|The Office|Bohemian Rhapsody|Yesterday|Thriller|Imagine|
Abbey Road|the Mona Lisa|Sunflowers|the World Cup|the Olympics|the Super Bowl|Wimbledon|
the Tour de France|the Champions League|the Oscars|the Grammys|Glastonbury|Oktoberfest|
Eurovision|Ramadan|Christmas|Easter|Thanksgiving|Diwali|Halloween|Black Friday|World War II|
the Cold War|the French Revolution|Brexit|Hurricane Sandy|the Nobel Prize|Covid-19|Corolla|
Golf|Model 3|Boeing 737|A380|the Titanic|Apollo 11|Hubble"""
_MADE = {
    "organization": """
{last} & Sons|{last} and {last}|{last} Brothers|{last} Industries|{last} Group|
{last} Foods Ltd|{last} Holdings|{last} Capital|the {last} Foundation|{city} University|
the University of {city}|{city} City Council|Bank of {city}|{city} General Hospital|
{city} Police|{city} United|{city} FC|{city} Chamber of Commerce|the {city} Times|
the {city} Herald|Radio {city}|{city} Airport Authority|the Ministry of Finance|
the Ministry of Defence|the Department of Health|the Department of Justice|
the {region} Football Association|Air {region}|{region} Telecom|St. {first}'s School|
{last} High School|the {city} Symphony Orchestra|{last} Books|Café {last}|{last} Motors|
{last} Software|the {city} Planning Office|{first}'s Bakery""",
    "place": """
{city}|{city}|{city}|{region}|{region}|{city}|{last} Street|{last} Road|{last} Avenue|
{first} Street|Lake {last}|Mount {last}|{last} Park|{last} Square|Port {last}|Fort {last}|
{last}ville|North {last}|Upper {last}|{city} Airport|{city} Cathedral|{last} Bridge|
{last} Bay""",
    "person": """
{first} {last}|{first} {last}|{first} {last}|{first}|{first}|{first} {last}-{last}|
{first} {first} {last}|{initial}. {last}|{first} {initial}. {last}|{last}""",
    "other": """
{adjective} {noun}|The {noun}|The {adjective} {noun}|{noun} of {noun}|{noun} {number}|
the {city} Marathon|the {city} Festival|the {region} Open|{adjective} {noun} {number}|
the {last} Prize|the Battle of {city}|the Treaty of {city}|The {noun} of {city}""",
}
# Six in ten names of these types are in the lists. `_MADE` makes the others.
_LISTS = {"organization": COMPANIES, "other": OTHERS}
ADJECTIVES = """
Silent Golden Broken Hidden Lost Crimson Electric Frozen Wild Secret Endless Burning Little
Perfect Dark Blue Final Second Distant Quiet Iron Velvet Invisible Savage""".split()
NOUNS = """
Garden River Empire Shadow Mirror Summer Promise Kingdom Machine Ocean Letter Crown Storm
Witness Harvest Signal Horizon Bridge Orchid Compass Engine Lantern Falcon Tiger Echo Nova
Pulse Vertex""".split()

# News, business, sport, travel, history, mails, chat, reviews, notices. `p`, `l`, `o` and `x` are a
# person, a place, an organization and another name.
TEMPLATES = """<p> met <p> in <l> on Monday .
<p> , who grew up in <l> , now works for <o> .
<o> said on Tuesday that it will open an office in <l> .
Shares of <o> fell after <p> resigned as chief executive .
The talks between <l> and <l> will continue in <l> next week .
<p> was born in <l> in 1961 and died in <l> .
Police in <l> are looking for <p> , 34 , who was last seen near <l> .
<o> has bought <o> for two billion dollars , according to <o> .
President <p> flew to <l> to speak at <o> .
<p> told <o> : " We did not expect this . "
The prime minister of <l> , <p> , will visit <l> in May .
A fire broke out in <l> , officials of <o> said .
<p> scored twice as <o> beat <o> 3 - 1 in <l> .
<o> signed <p> from <o> on a three - year deal .
<p> won <x> for the second time .
Have you seen <x> ? <p> is brilliant in it .
I read <x> on the train to <l> and could not stop .
We watched <x> with <p> last night .
My <x> broke after a week and <o> refused to pay .
Ordered from <o> , delivered to <l> in two days , thanks <p> !
The flight from <l> to <l> with <o> was two hours late .
Our hotel in <l> was close to <l> .
From <l> take the bus to <l> and walk ten minutes .
We spent three days in <l> , then drove along <l> to <l> .
Dear <p> , thank you for your letter . Kind regards , <p>
Hi <p> , can you send the report to <p> before noon ?
<p> and <p> are getting married in <l> !
Does <p> still live in <l> ?
who is going to <l> with <p> tomorrow
just saw <p> at <l> lol
ask <p> if <o> called back
i think <o> is better than <o>
happy birthday <p> , see you in <l>
<p> works at <o> , doesn't she ?
The novel <x> by <p> is set in <l> during the war .
<p> painted it in <l> in 1889 ; today it hangs in <o> .
In 1805 , <p> led his army from <l> to <l> .
<p> studied at <o> before moving to <l> .
Researchers at <o> and <o> published the results on Friday .
The new <x> from <o> costs 799 dollars in <l> .
<o> recalled thousands of cars in <l> and <l> .
Workers at <o> in <l> went on strike .
The capital of <l> is <l> .
<l> borders <l> and <l> .
It rained in <l> , while <l> had sun all day .
A train from <l> derailed near <l> , injuring six people .
<p> , a spokesman for <o> , declined to comment .
" I am proud of the team , " said coach <p> .
Judge <p> ruled that <o> must pay the family .
<o> sued <o> over the design of <x> .
Senator <p> of <l> voted against the plan .
Professor <p> teaches history at <o> .
Dr. <p> moved her practice to <l> .
The concert of <o> in <l> is sold out .
<p> will play <p> in the film <x> .
<x> opens in <l> on Friday .
Tickets for <x> are sold by <o> .
<p> lost to <p> in the final of <x> .
My aunt <p> sends greetings from <l> .
The package for Ms <p> is at the office of <o> in <l> .
<o> , <o> and <o> agreed to share the costs .
According to <p> of <o> , prices in <l> will rise .
<l> - <o> reported record profits on Wednesday .
Residents of <l> complained to <o> about the noise .
The mayor of <l> , <p> , opened the bridge .
She left <l> for <l> when she was nine .
Between <l> and <l> the road is closed .
He bought a <x> at <o> yesterday .
My phone , a <x> , does not work in <l> .
<p> 's mother is from <l> .
<l> 's economy grew while <l> 's shrank .
<o> 's new boss is <p> .
RT : <p> is in <l> !
so <o> is down again , great
<p> > <p> , sorry not sorry
Thanks to <p> , <p> and <p> for their help .
Meeting with <p> ( <o> ) at 3 pm , room 12 .
Re : invoice for <o> , attention <p>
Please call <p> on 555 0142 about the flat in <l> .
The kitchen at <o> in <l> closes at ten .
<p> ran <x> in under four hours .
What does <p> think about <x> ?
When did <p> leave <o> ?
Where is <o> based ?
How far is <l> from <l> ?
Is <l> bigger than <l> ?
<o> has 300 employees in <l> , <l> and <l> .
Soldiers of <l> crossed into <l> at dawn .
The river flows from <l> through <l> into <l> .
<p> sued for peace after <x> .
The exhibition " <x> " at <o> shows works by <p> .
I flew to <l> for <x> and stayed with <p> .
<p> joined <o> as a trainee in 1998 .
The board of <o> met in <l> without <p> .
Flooding in <l> killed at least 40 people , <o> said .
<p> / <p> / <p> were in the car .
My <x> arrived today , shipped from <l> .
The app of <o> crashes on my <x> .
Tonight on <o> : <p> talks to <p> .
Signed in <l> by <p> for <o>""".split("\n")
# Words of names that are no names here.
PLAIN = """The apple fell from the tree .
I bought two apples and a loaf of bread .
We may go for a walk later .
He left a mark on the table .
She will bill you next month .
The turkey was a little dry , the potatoes were fine .
Add the rice and cook it for ten minutes .
The bank was closed , so I paid by card .
In the long run prices will rise .
They sat by the river until dawn .
There is hope for everyone .
The king spoke first , then the bishop .
A fox ran across the road .
Please target the older version .
The office opens at nine .
My friends came for dinner .
The green light means go .
Turn left at the second bridge .
The amount is shown on the last page .
You can switch the lamp off yourself .
it was nice to see you all
the shell was empty and very light
thanks , see you tomorrow at ten
ok i will call you when i get home
Boil the water , then add salt .
The meeting was moved to Thursday afternoon .
Nobody knew what to say .
The results were better than expected .
The queen died before winter .
Save the file and start the program again .
Our team lost the match in the last minute .
The weather will stay dry on Sunday .
The delta of the river is full of birds .
I was reading in bed .
This film is a waste of time .
The battery lasts about a day .
The doctor told her to rest .
Sales rose by four percent in March .
It is cold in the north and warm in the south .
The judge sent him home .""".split("\n")


def sentences(number, seed=0):
    """Returns columns of lists: `words`, and `tags` such as `"I-person"`.

    Args:
        number: Int, the number of sentences; one in six has no name.
        seed: Int.
    """
    rng = np.random.default_rng(seed)
    words, tags = [], []
    for _ in range(number):
        pool = PLAIN if rng.random() < 1 / 6 else TEMPLATES
        found = [*_sentence(str(rng.choice(pool)), rng)]
        lower = rng.random() < 0.15
        words.append([word.lower() if lower else word for word, _ in found])
        tags.append([tag for _, tag in found])
    return {"words": words, "tags": tags}


def _sentence(template, rng):
    """Yields words with tags."""
    kinds = dict(zip(("<p>", "<l>", "<o>", "<x>"), TYPES, strict=True))
    for word in template.split():
        if word not in kinds:
            yield word, "O"
            continue
        for part in name(kinds[word], rng).split():
            # Articles are no part of names, as in the data of tweets; a title has its own.
            is_article = part == "the"
            yield part, "O" if is_article else f"I-{kinds[word]}"


def name(kind, rng):
    """Returns a random name of a type."""
    is_listed = kind in _LISTS and rng.random() < 0.6
    choices = _LISTS[kind] if is_listed else _MADE[kind]
    return filled(choice(choices, rng), _part, rng)


def _part(kind, rng):
    if kind == "initial":
        return str(rng.choice([*"ABCDEFGHJKLMNPRSTW"]))
    if kind == "number":
        return str(rng.integers(2, 13))
    if kind in ("city", "region"):
        return choice(CITIES if kind == "city" else REGIONS, rng).removeprefix("the ")
    words = {"first": FIRST, "last": LAST, "adjective": ADJECTIVES, "noun": NOUNS}
    return str(rng.choice(words[kind]))

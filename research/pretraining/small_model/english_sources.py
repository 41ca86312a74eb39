"""Sorts a mixed file of English documents into sources, and joins pieces of books.

    python research/pretraining/small_model/english_sources.py runs/english corpus/*.txt.xz

The corpus of xlnet_small_en came as one shuffled file, in which long books are cut into pieces of
40,000 characters. To hold out whole books, pieces with the same proper names are put together.
Texts that have a file for each source do not need this step.
"""

import collections
import pathlib
import re

from absl import app
from corpus import BLANK_LINES, read_text, write_documents
from sklearn.cluster import AgglomerativeClustering
from sklearn.feature_extraction.text import TfidfVectorizer

# Capitalized words within a sentence.
NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}")
NICK = re.compile(r"[^\s:]{1,20}: ")
PIECE_LENGTH = 38_000  # Books were cut into longer pieces.
# Pieces whose names have a lower mean cosine similarity are different books.
SAME_BOOK = 0.2


def main(arguments):
    if len(arguments) < 3:
        raise app.UsageError("name a folder to write and the files of the corpus")
    output_dir, *files = map(pathlib.Path, arguments[1:])
    sources = collections.defaultdict(list)
    for file in files:
        for document in filter(None, map(str.strip, BLANK_LINES.split(read_text(file)))):
            sources[source_of(document)].append(document)
    books = join_books(sources.pop("books", []))
    (output_dir / "books").mkdir(parents=True, exist_ok=True)
    for number, pieces in enumerate(books):
        write_documents(output_dir / "books" / f"{number:04}.txt", ["\n".join(pieces)])
    for source, documents in sources.items():
        write_documents(output_dir / f"{source}.txt", documents)
    counts = {source: len(documents) for source, documents in sources.items()}
    print(f"{output_dir}: {counts | {'books': len(books)}} documents")


def source_of(document):
    """Returns the kind of a document, from the form of its lines."""
    lines = document.split("\n")
    if len(lines) > 5 and sum(map(bool, map(NICK.match, lines))) > 0.8 * len(lines):
        return "chat"
    if len(document) > PIECE_LENGTH:
        return "books"
    if is_article(lines):
        return "encyclopedia"
    if len(document) < 4000 and len(document) / len(lines) < 160:
        return "dialogues"
    return "prose"


def is_article(lines):
    """Whether the first line is a title and the second begins with its first word."""
    title = re.sub(r"\(.*\)", "", lines[0]).split()
    if (
        len(lines) < 2
        or not title
        or len(lines[0]) >= 90
        or lines[0].endswith((".", "!", "?", ":"))
    ):
        return False
    return title[0].lower().strip('",') in lines[1][:200].lower()


def join_books(pieces):
    """Groups pieces by the proper names in them. Returns a list of lists of pieces."""
    if len(pieces) < 2:
        return [pieces] if pieces else []
    # Names in many pieces, such as towns and months, do not identify a book.
    most = max(20, round(0.03 * len(pieces)))
    vectorizer = TfidfVectorizer(analyzer=NAME.findall, max_df=most, min_df=2, sublinear_tf=True)
    names = vectorizer.fit_transform(pieces)
    distances = 1 - (names @ names.T).toarray()
    clustering = AgglomerativeClustering(
        n_clusters=None, metric="precomputed", linkage="average", distance_threshold=1 - SAME_BOOK
    )
    books = collections.defaultdict(list)
    for label, piece in zip(clustering.fit_predict(distances), pieces, strict=True):
        books[label].append(piece)
    return list(books.values())


if __name__ == "__main__":
    app.run(main)

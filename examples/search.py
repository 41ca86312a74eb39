"""Searches a folder of text for what is meant, not only for the words of the query.

    python examples/search.py docs "how do I train on several machines?"

reads the text files below a folder (.md, .rst, .txt, .tex, .org and files without a suffix; other
suffixes with --suffixes), cuts them into passages of at most 120 words, embeds each passage with a
preset, and prints those that are most similar to the query, with file and line. Without a query it
asks for one after another. The vectors are kept in runs/search: the next search of the same folder
embeds only the files that have changed. It needs no network. More ways to run it:

    python examples/search.py ~/notes --top_k 3
    python examples/search.py src "where are passwords checked?" --suffixes .py,.js
    python examples/search.py docs "warmup" --preset path/to/my_preset
"""

import quiet_start  # noqa: F401

# isort: split
import hashlib
import os
import pathlib
import re
import sys

import numpy as np
from absl import app, flags

from keras_xlnet.models import XLNetTextEmbedder

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "xlnet_mini_en", "Name or path of the preset that embeds.")
flags.DEFINE_integer("top_k", 5, "Passages to show.", lower_bound=1)
flags.DEFINE_list("suffixes", [".md", ".rst", ".txt", ".tex", ".org", ""], "Files to read.")
flags.DEFINE_integer("words", 120, "The most words of a passage.", lower_bound=1)
flags.DEFINE_string("cache_dir", "runs/search", "Where vectors are kept.")

_MOST_BYTES = 10_000_000


def main(arguments):
    if not 2 <= len(arguments) <= 3:
        raise app.UsageError("give a folder and optionally a query")
    try:
        folder = pathlib.Path(arguments[1])
        embedder = XLNetTextEmbedder.from_preset(FLAGS.preset, sequence_length=256)
        passages, vectors = index(folder, embedder)
        queries = arguments[2:] or read_queries()
        for query in queries:
            show(embedder.search(query, vectors, FLAGS.top_k)[0], passages)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


def read_queries():
    """Yields the lines that a user types, until the first empty one."""
    while True:
        try:
            query = input("\nquery: ").strip()
        except EOFError:
            return
        if not query:
            return
        yield query


def show(documents, passages):
    for document in documents:
        file, line, text = passages[document.index]
        print(f"\n{document.score:.3f}  {file}:{line}\n    {shortened(text)}")


def shortened(text, most=400):
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} ..."


# === Files and passages ===


def index(folder, embedder):
    """Returns the passages of a folder, tuples of file, line and text, and their vectors."""
    files = find_files(folder)
    by_file = {file: passages_of(read(file)) for file in files}
    passages = [(file, *place) for file, places in by_file.items() for place in places]
    if not passages:
        raise ValueError(f"{folder} has no text in files with the suffixes {FLAGS.suffixes}")
    cache = pathlib.Path(FLAGS.cache_dir) / f"{digest(str(folder.resolve()), FLAGS.preset)}.npz"
    known = load_vectors(cache)
    keys = [digest(text) for *_, text in passages]
    new = {key: text for key, (*_, text) in zip(keys, passages, strict=True) if key not in known}
    print(f"{len(passages):,} passages of {len(files):,} files, {len(new):,} to embed", flush=True)
    if new:
        known |= dict(zip(new, embedder.embed([*new.values()]), strict=True))
        known = {key: known[key] for key in dict.fromkeys(keys)}
        save_vectors(cache, known)
    return passages, np.array([known[key] for key in keys])


def find_files(folder):
    """Returns the text files below a folder, but those in hidden folders."""
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (pathlib.Path(root, name) for name in sorted(names) if not name.startswith("."))
        found += [path for path in paths if path.suffix.lower() in FLAGS.suffixes]
    return [path for path in found if path.is_file() and path.stat().st_size <= _MOST_BYTES]


def read(file):
    """Returns the text of a file, `""` if it is none."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        print(f"{file} is not text, or cannot be read: it is left out", file=sys.stderr)
        return ""


def passages_of(text):
    """Returns the passages of a text, pairs of the number of the first line and the words.

    A passage ends at an empty line, unless it is short, as headings are.
    """
    passages, words, first = [], [], 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if not words:
            first = number
        words += line.split()
        is_end = not line.strip() and len(words) > FLAGS.words // 4
        while words and (is_end or len(words) >= FLAGS.words):
            passages.append((first, " ".join(words[: FLAGS.words])))
            words, first = words[FLAGS.words :], number
    if words:
        passages.append((first, " ".join(words)))
    return [(line, words) for line, words in passages if re.search(r"\w", words)]


# === Vectors ===


def digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


def load_vectors(file):
    """Returns the vectors of passages by the digest of their text."""
    if not file.exists():
        return {}
    with np.load(file) as arrays:
        return dict(zip(arrays["keys"].tolist(), arrays["vectors"].astype("float32"), strict=True))


def save_vectors(file, vectors):
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".tmp.npz")
    values = np.array([*vectors.values()], "float16")
    np.savez(unfinished, keys=np.array([*vectors]), vectors=values)
    unfinished.replace(file)


if __name__ == "__main__":
    app.run(main)

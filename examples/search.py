"""Searches a folder of text for what is meant, not only for the words of the query.

    python examples/search.py docs "how do I train on several machines?"
    python examples/search.py ~/notes --top_k 3
    python examples/search.py src "where are passwords checked?" --suffixes .py,.js

reads the text files below a folder, cuts them into passages of at most 120 words, embeds each with
a preset, and prints those that are most similar to the query, with file and line. Without a query
it asks for one after another. The vectors are kept in runs/search: the next search embeds only what
has changed. `--precision binary` keeps a bit for each number, a thirty-second of the space. The
prompts of a preset are put before queries and passages. It needs no network.
"""

import hashlib
import os
import pathlib
import re
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from absl import app, flags

from keras_xlnet.models import XLNetTextEmbedder

FLAGS = flags.FLAGS
flags.DEFINE_string("preset", "xlnet_mini_en", "Name or path of the preset that embeds.")
flags.DEFINE_integer("top_k", 5, "Passages to show.", lower_bound=1)
flags.DEFINE_list("suffixes", [".md", ".rst", ".txt", ".tex", ".org", ""], "Files to read.")
flags.DEFINE_integer("words", 120, "The most words of a passage.", lower_bound=1)
flags.DEFINE_enum("precision", "float32", ["float32", "binary"], "Of the vectors.")
flags.DEFINE_integer("truncate_dim", None, "Numbers of a vector, for presets trained for it.")
flags.DEFINE_string("cache_dir", "runs/search", "Where vectors are kept.")

_MOST_BYTES = 10_000_000


def main(arguments):
    if not 2 <= len(arguments) <= 3:
        raise app.UsageError("give a folder and optionally a query")
    try:
        embedder = XLNetTextEmbedder.from_preset(FLAGS.preset, sequence_length=256)
        passages = [
            (file, *place)
            for file in find_files(pathlib.Path(arguments[1]))
            for place in passages_of(read(file))
        ]
        if not passages:
            raise ValueError(f"no text in files with the suffixes {FLAGS.suffixes}")
        vectors = embed([text for *_, text in passages], embedder, arguments[1])
        for query in arguments[2:] or iter(lambda: input("\nquery: ").strip(), ""):
            options = {"truncate_dim": FLAGS.truncate_dim}
            for found in embedder.search(query, vectors, FLAGS.top_k, **options)[0]:
                file, line, text = passages[found.index]
                print(f"\n{found.score:.3f}  {file}:{line}\n    {text[:400]}")
    except EOFError:
        pass  # The input has ended.
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


def find_files(folder):
    """Returns the text files below a folder, except those in hidden folders."""
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = [pathlib.Path(root, name) for name in sorted(names) if not name.startswith(".")]
        found += [path for path in paths if path.suffix.lower() in FLAGS.suffixes]
    return [path for path in found if path.is_file() and path.stat().st_size <= _MOST_BYTES]


def read(file):
    """Returns the text of a file, or `""`."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        print(f"{file} is left out: it is not text, or cannot be read", file=sys.stderr)
        return ""


def passages_of(text):
    """Returns passages, pairs of the number of the first line and the words.

    A passage ends at an empty line, unless it is short, as headings are.
    """
    passages, words, first = [], [], 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        first = first if words else number
        words += line.split()
        is_end = not line.strip() and len(words) > FLAGS.words // 4
        while words and (is_end or len(words) >= FLAGS.words):
            passages.append((first, " ".join(words[: FLAGS.words])))
            words, first = words[FLAGS.words :], number
    passages.append((first, " ".join(words)))
    return [(line, words) for line, words in passages if re.search(r"\w", words)]


def embed(texts, embedder, folder):
    """Returns the vectors of texts, and computes those that are not in the cache."""
    options = {"precision": FLAGS.precision, "truncate_dim": FLAGS.truncate_dim}
    name = hashlib.sha256(f"{folder} {FLAGS.preset} {options}".encode()).hexdigest()[:16]
    cache = pathlib.Path(FLAGS.cache_dir) / f"{name}.npz"
    saved = np.load(cache) if cache.exists() else {"keys": np.array([]), "vectors": []}
    known = dict(zip(saved["keys"].tolist(), saved["vectors"], strict=True))
    keys = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    print(f"{len(texts):,} passages, {len(new):,} to embed", flush=True)
    if new:
        known |= dict(zip(new, embedder.encode_document([*new.values()], **options), strict=True))
    vectors = np.array([known[key] for key in keys])
    cache.parent.mkdir(parents=True, exist_ok=True)
    np.savez(cache.with_suffix(".new.npz"), keys=keys, vectors=vectors)
    cache.with_suffix(".new.npz").replace(cache)
    return vectors


if __name__ == "__main__":
    app.run(main)

"""Tests whether an embedder reads long texts: it searches for the other half of documents.

    python research/conversion/long_texts.py --preset xlnet_mini_en --data ../shared/data

It embeds two consecutive parts of equal length from each held-out document of `--data`/corpus that
is long enough. It prints how often the second part is the nearest of all second parts to its
first part, if the embedder reads the whole parts and if it reads only their first 128 tokens.
"""

import argparse
import pathlib

import numpy as np
from heal_bert import documents

from keras_xlnet.models import XLNetTextEmbedder

_LENGTHS = (128, 256, 512, 1024, 2048)
_FIRST = 128
_MOST_DOCUMENTS = 200


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_mini_en")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    texts = documents(arguments.data / "corpus" / "redistributable.valid.txt.xz")
    words = [" ".join(lines).split() for lines in texts]
    print("tokens  documents  whole  first 128")
    for length in _LENGTHS:
        # A word has 1.3 tokens.
        number = int(length / 1.3)
        parts = [(w[:number], w[number : 2 * number]) for w in words if len(w) >= 2 * number]
        parts = parts[:_MOST_DOCUMENTS]
        found = (accuracy(arguments.preset, parts, read) for read in (length, _FIRST))
        print(
            f"{length:6}{len(parts):11}  {'  '.join(f'{value:.3f}' for value in found)}", flush=True
        )


def accuracy(preset, parts, length):
    embedder = XLNetTextEmbedder.from_preset(preset, sequence_length=length)
    first, second = (
        embedder.embed([" ".join(half) for half in halves], batch_size=8, verbose=0)
        for halves in zip(*parts, strict=True)
    )
    return float(np.mean((first @ second.T).argmax(axis=1) == np.arange(len(parts))))


if __name__ == "__main__":
    main()

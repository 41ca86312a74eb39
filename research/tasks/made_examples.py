"""Prints training examples that are made by rule (`made/`).

python research/tasks/made_examples.py duplicates --number 20
"""

import argparse
import itertools

from made import duplicates, names, sentiment, spam

MAKERS = {
    "duplicates": duplicates.pairs,
    "names": names.sentences,
    "sentiment": sentiment.sentences,
    "spam": spam.messages,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("adapter", choices=MAKERS)
    parser.add_argument("--number", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    columns = MAKERS[arguments.adapter](arguments.number, seed=arguments.seed)
    for row in zip(*columns.values(), strict=True):
        if arguments.adapter == "names":
            row = [" ".join(marked(*row))]
        print(*row, sep="\t")


def marked(words, tags):
    """Yields words, and names with their types."""
    for tag, pairs in itertools.groupby(zip(words, tags, strict=True), key=lambda pair: pair[1]):
        text = " ".join(word for word, _ in pairs)
        yield text if tag == "O" else f"[{text}: {tag.partition('-')[2]}]"


if __name__ == "__main__":
    main()

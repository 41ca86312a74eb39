"""What search loses if the vectors of texts have fewer numbers or fewer bits.

    python -m benchmarks.small_vectors --data ../shared/data

embeds Cranfield's documents, and the candidates of WikiQA's test questions as one collection, with
a preset, and prints the bytes of a vector, NDCG@10, and the share of NDCG@10 that is left, for each
precision of `XLNetTextEmbedder.embed` and for vectors cut to fewer numbers.
"""

import argparse
import pathlib

import numpy as np

from keras_xlnet.evaluation import retrieval_scores
from keras_xlnet.models import XLNetTextEmbedder
from keras_xlnet.ops import quantize_embeddings
from keras_xlnet.ops.vector_search import unit_length
from keras_xlnet.task_files import read_cranfield, read_wikiqa


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_mini_en")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    embedder = XLNetTextEmbedder.from_preset(arguments.preset, sequence_length=256)
    tasks = arguments.data / "tasks"
    collections = [cranfield(tasks / "cranfield"), wikiqa(tasks / "wikiqa" / "test")]
    embedded = [
        (embedder.encode_query(queries, verbose=0), embedder.encode_document(texts, verbose=0))
        for queries, texts, _ in collections
    ]
    dim = embedder.backbone.hidden_dim
    print(
        "| numbers | precision | bytes | Cranfield | WikiQA |\n| ---: | --- | ---: | ---: | ---: |"
    )
    first = None
    for truncate_dim in (dim, dim // 2, dim // 4, dim // 8):
        for precision in ("float32", "int8", "binary"):
            scores = []
            for (queries, vectors), (*_, relevance) in zip(embedded, collections, strict=True):
                cut = unit_length(vectors[:, :truncate_dim])
                ranges = np.stack([cut.min(axis=0), cut.max(axis=0)])
                codes = quantize_embeddings(cut, precision, ranges)
                options = {"truncate_dim": truncate_dim, "ranges": ranges}
                search = Search(embedder, options)
                scores.append(retrieval_scores(search, queries, codes, relevance, k=[10]).ndcg[10])
            first = first or scores
            cells = [f"{100 * x:.1f} ({x / y:.0%})" for x, y in zip(scores, first, strict=True)]
            print(f"| {truncate_dim} | {precision} | {codes[0].nbytes} | {' | '.join(cells)} |")


class Search:
    """An embedder that searches with options."""

    def __init__(self, embedder, options):
        self.embedder, self.options = embedder, options

    def search(self, queries, corpus, **kwargs):
        return self.embedder.search(queries, corpus, **kwargs, **self.options)


def cranfield(folder):
    """Returns queries, texts, and the relevance of texts by query."""
    collection = read_cranfield(folder)
    parts = (collection.queries, collection.documents)
    queries, texts = ([" ".join(text.split()) for text in part["text"]] for part in parts)
    places = {document: i for i, document in enumerate(collection.documents["id"])}
    relevance = {query: {} for query in collection.queries["id"]}
    for query, document, gain in zip(*collection.relevance.values(), strict=True):
        if gain > 0 and document in places:
            found = relevance[query]
            found[places[document]] = max(gain, found.get(places[document], 0))
    return queries, texts, [*relevance.values()]


def wikiqa(folder):
    """Returns the same."""
    columns = read_wikiqa(folder)
    places = {text: i for i, text in enumerate(dict.fromkeys(columns["document"]))}
    relevance = {query: {} for query in columns["query"]}
    for query, text, gain in zip(
        columns["query"], columns["document"], columns["relevance"], strict=True
    ):
        if gain > 0:
            relevance[query][places[text]] = gain
    return [*relevance], [*places], [*relevance.values()]


if __name__ == "__main__":
    main()

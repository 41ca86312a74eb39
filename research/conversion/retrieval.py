"""Retrieval without training: by embeddings, by BM25 and by both, and of the halves of documents.

    python research/conversion/retrieval.py --preset xlnet_mini_en --data ../shared/data

`--data` has `tasks/cranfield`, `tasks/wikiqa` and `corpus`. "Both" adds the scores of each query,
standardized over its documents, with one weight for the embeddings, which is chosen on WikiQA's
training questions. It needs bm25s.

Then it embeds two consecutive parts of equal length from each held-out document of the corpus that
is long enough. It prints how often the second part is the nearest of all second parts to its
first part, if the embedder reads the whole parts and if it reads only their first 128 tokens.
"""

import argparse
import pathlib
import sys

import numpy as np
from heal_bert import documents
from scipy.stats import zscore

from keras_xlnet.evaluation import ranking_scores
from keras_xlnet.models import XLNetTextEmbedder
from keras_xlnet.task_files import read_cranfield, read_wikiqa

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tasks"))
from bm25 import BM25

_WEIGHTS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
# Tokens of parts of documents.
_LENGTHS = (128, 256, 512, 1024, 2048)
_FIRST = 128
_MOST_DOCUMENTS = 200


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_mini_en")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    embedder = XLNetTextEmbedder.from_preset(arguments.preset, sequence_length=256)
    tasks = arguments.data / "tasks"
    train, test = (scored_pairs(embedder, tasks / "wikiqa" / part) for part in ("train", "test"))
    weight = max(_WEIGHTS, key=lambda w: evaluate(both(train, w), train).map)
    print(f"weight of the embeddings, chosen on WikiQA's questions to train on: {weight}")
    for name, data in (
        ("WikiQA, test", test),
        ("Cranfield", scored_collection(embedder, tasks / "cranfield")),
    ):
        print(f"{name}\n{'':12}   MAP    MRR  NDCG@10")
        rows = {"BM25": data["bm25"], "embeddings": data["cosine"], "both": both(data, weight)}
        for method, scores in rows.items():
            found = evaluate(scores, data)
            print(f"{method:12} {found.map:.4f} {found.mrr:.4f}   {found.ndcg[10]:.4f}", flush=True)
    print_halves(arguments.preset, arguments.data)


def scored_pairs(embedder, folder):
    """Returns the scores of the candidates of each question of WikiQA."""
    columns = read_wikiqa(folder)
    texts, queries = columns["document"], columns["query"]
    unique = [*dict.fromkeys(queries)]
    of_queries = dict(zip(unique, embedder.embed(unique, verbose=0), strict=True))
    of_documents = embedder.embed(texts, verbose=0)
    index = BM25(texts)
    by_query = {query: index.scores(query) for query in unique}
    return {
        "query": columns["query_id"],
        "document": [str(i) for i in range(len(texts))],
        "relevance": columns["relevance"],
        "cosine": np.array([v @ of_queries[q] for v, q in zip(of_documents, queries, strict=True)]),
        "bm25": np.array([by_query[query][i] for i, query in enumerate(queries)]),
        "judged": None,
    }


def scored_collection(embedder, folder):
    """Returns the scores of all documents of Cranfield for each query."""
    collection = read_cranfield(folder)
    parts = (collection.documents, collection.queries)
    texts, queries = ([" ".join(text.split()) for text in part["text"]] for part in parts)
    ids = collection.documents["id"]
    judged = {}
    for query, document, relevance in zip(*collection.relevance.values(), strict=True):
        judged[query, document] = max(relevance, 0)
    query_ids = [query for query in collection.queries["id"] for _ in ids]
    document_ids = [*ids] * len(queries)
    index = BM25(texts)
    pairs = zip(query_ids, document_ids, strict=True)
    return {
        "query": query_ids,
        "document": document_ids,
        "relevance": [judged.get(pair, 0) for pair in pairs],
        "cosine": embedder.similarity(queries, texts, verbose=0).ravel(),
        "bm25": np.concatenate([index.scores(query) for query in queries]),
        "judged": ([query for query, _ in judged], [*judged.values()]),
    }


def both(data, weight):
    """Returns the sums of standardized scores."""
    scores, queries = np.zeros(len(data["query"])), np.array(data["query"])
    for query in np.unique(queries):
        rows = queries == query
        bm25, cosine = (zscore(data[name][rows]) for name in ("bm25", "cosine"))
        # Equal scores have no deviation.
        scores[rows] = np.nan_to_num(bm25) + weight * np.nan_to_num(cosine)
    return scores


def evaluate(scores, data):
    ids = {"document_ids": data["document"], "all_relevance": data["judged"]}
    return ranking_scores(data["query"], data["relevance"], scores, k=[10], **ids)


def print_halves(preset, data):
    texts = documents(data / "corpus" / "redistributable.valid.txt.xz")
    words = [" ".join(lines).split() for lines in texts]
    print("tokens  documents  whole  first 128")
    for length in _LENGTHS:
        number = int(length / 1.3)  # A word has 1.3 tokens.
        parts = [(w[:number], w[number : 2 * number]) for w in words if len(w) >= 2 * number]
        parts = parts[:_MOST_DOCUMENTS]
        found = (f"{accuracy(preset, parts, read):.3f}" for read in (length, _FIRST))
        print(f"{length:6}{len(parts):11}  {'  '.join(found)}", flush=True)


def accuracy(preset, parts, length):
    embedder = XLNetTextEmbedder.from_preset(preset, sequence_length=length)
    first, second = (
        embedder.embed([" ".join(half) for half in halves], batch_size=8, verbose=0)
        for halves in zip(*parts, strict=True)
    )
    return float(np.mean((first @ second.T).argmax(axis=1) == np.arange(len(parts))))


if __name__ == "__main__":
    main()

"""Retrieval by embeddings, by BM25 and by both, on Cranfield and WikiQA, without training.

    python research/conversion/retrieval.py --preset xlnet_mini_en --data ../shared/data

`--data` has `tasks/cranfield` and `tasks/wikiqa`. "Both" adds the scores of each query,
standardized over its documents, with one weight for the embeddings, which is chosen on WikiQA's
training questions. It needs bm25s.
"""

import argparse
import pathlib
import sys

import numpy as np
from scipy.stats import zscore

from keras_xlnet.evaluation import ranking_scores
from keras_xlnet.models import XLNetTextEmbedder
from keras_xlnet.task_files import read_cranfield, read_wikiqa

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tasks"))
from bm25 import BM25

_WEIGHTS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)


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


def scored_pairs(embedder, folder):
    """Returns the scores of the candidates of each question of WikiQA."""
    columns = read_wikiqa(folder)
    documents, queries = columns["document"], columns["query"]
    unique = [*dict.fromkeys(queries)]
    of_queries = dict(zip(unique, embedder.embed(unique, verbose=0), strict=True))
    of_documents = embedder.embed(documents, verbose=0)
    index = BM25(documents)
    by_query = {query: index.scores(query) for query in unique}
    return {
        "query": columns["query_id"],
        "document": [str(i) for i in range(len(documents))],
        "relevance": columns["relevance"],
        "cosine": np.array([v @ of_queries[q] for v, q in zip(of_documents, queries, strict=True)]),
        "bm25": np.array([by_query[query][i] for i, query in enumerate(queries)]),
        "judged": None,
    }


def scored_collection(embedder, folder):
    """Returns the scores of all documents of Cranfield for each query."""
    collection = read_cranfield(folder)
    parts = (collection.documents, collection.queries)
    documents, queries = ([" ".join(text.split()) for text in part["text"]] for part in parts)
    ids = collection.documents["id"]
    judged = {}
    for query, document, relevance in zip(*collection.relevance.values(), strict=True):
        judged[query, document] = max(relevance, 0)
    query_ids = [query for query in collection.queries["id"] for _ in ids]
    document_ids = [*ids] * len(queries)
    index = BM25(documents)
    pairs = zip(query_ids, document_ids, strict=True)
    return {
        "query": query_ids,
        "document": document_ids,
        "relevance": [judged.get(pair, 0) for pair in pairs],
        "cosine": embedder.similarity(queries, documents, verbose=0).ravel(),
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
    return ranking_scores(
        data["query"],
        data["relevance"],
        scores,
        k=[10],
        document_ids=data["document"],
        all_relevance=data["judged"],
    )


if __name__ == "__main__":
    main()

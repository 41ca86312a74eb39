"""Retrieval by embeddings, by BM25, and by both: Cranfield and WikiQA, nothing trained on them.

    python research/conversion/retrieval.py --preset xlnet_mini_en --data ../shared/data

`--data` has `tasks/cranfield` and `tasks/wikiqa`. The sum of both adds the scores of each query,
standardized over its documents, with one weight of the embeddings, which is chosen on WikiQA's
questions to train on, and used on all others. It needs bm25s.
"""

import argparse
import logging
import pathlib

import numpy as np

from keras_xlnet.evaluation import ranking_scores
from keras_xlnet.models import XLNetTextEmbedder
from keras_xlnet.task_files import read_cranfield, read_wikiqa

_WEIGHTS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_mini_en")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    logging.getLogger("bm25s").setLevel(logging.WARNING)
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
    documents, queries = (
        [" ".join(text.split()) for text in part["text"]]
        for part in (collection.documents, collection.queries)
    )
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
    scores = np.zeros(len(data["query"]))
    rows = {}
    for row, query in enumerate(data["query"]):
        rows.setdefault(query, []).append(row)
    for found in rows.values():
        scores[found] = standardized(data["bm25"][found]) + weight * standardized(
            data["cosine"][found]
        )
    return scores


def standardized(scores):
    return (scores - scores.mean()) / (scores.std() or 1.0)


def evaluate(scores, data):
    return ranking_scores(
        data["query"],
        data["relevance"],
        scores,
        k=[10],
        document_ids=data["document"],
        all_relevance=data["judged"],
    )


class BM25:
    """Scores of all documents for a query, with the settings of Lucene."""

    def __init__(self, documents):
        import bm25s

        self._tokenize = bm25s.tokenize
        self.num_documents = len(documents)
        self.index = bm25s.BM25(method="lucene")
        self.index.index(self.words(documents), show_progress=False)

    def words(self, texts):
        return self._tokenize(texts, return_ids=False, show_progress=False)

    def scores(self, query):
        known = [word for word in self.words([query])[0] if word in self.index.vocab_dict]
        if not known:
            return np.zeros(self.num_documents, "float32")
        return self.index.get_scores(known)


if __name__ == "__main__":
    main()

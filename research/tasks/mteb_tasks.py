"""Scores of an embedder in mteb next to those of `keras_xlnet.evaluation`, without training.

    python research/tasks/mteb_tasks.py --preset xlnet_mini_en --data ../shared/data

`--data` has `tasks/stsb`, `tasks/cranfield` and `tasks/wikiqa`. The tasks of mteb are made of these
files, so nothing is downloaded. It needs the extra `integrations`.
"""

import argparse
import pathlib

import mteb
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTaskRetrieval, AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

from keras_xlnet.evaluation import ranking_scores, retrieval_scores, similarity_scores
from keras_xlnet.integrations import MTEBEncoder
from keras_xlnet.models import XLNetTextEmbedder
from keras_xlnet.task_files import read_cranfield, read_table, read_wikiqa

# The most documents that mteb ranks for a query.
_TOP_K = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_mini_en")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    embedder = XLNetTextEmbedder.from_preset(arguments.preset, sequence_length=256)
    tasks = arguments.data / "tasks"
    print(f"{'task':22}{'score':18}{'mteb':>8}{'keras_xlnet':>13}")
    for task, ours in (stsb(embedder, tasks), cranfield(embedder, tasks), wikiqa(embedder, tasks)):
        results = mteb.evaluate(
            MTEBEncoder(embedder), [task], cache=None, show_progress_bar=False, co2_tracker=False
        )
        (theirs,) = results.task_results[0].scores["test"]
        for name, score in ours.items():
            print(f"{task.metadata.name:22}{name:18}{theirs[name]:8.4f}{score:13.4f}", flush=True)


class Similarity(AbsTaskSTS):
    """A task of mteb: similarity of pairs of texts.

    Args:
        name: String, its name.
        pairs: List of pairs of texts.
        scores: Numbers from 0 to 5, one per pair.
    """

    def __init__(self, name, pairs, scores):
        self.metadata = _metadata(name, "STS", "cosine_spearman")
        super().__init__()
        first, second = map(list, zip(*pairs, strict=True))
        columns = {"sentence1": first, "sentence2": second, "score": scores}
        self.dataset = DatasetDict({"test": Dataset.from_dict(columns)})
        self.data_loaded = True


class Retrieval(AbsTaskRetrieval):
    """A task of mteb: documents for queries.

    Args:
        name: String, its name.
        queries, documents: Dicts from ids to texts.
        relevance: Dict from ids of queries to dicts from ids of documents to ints above 0.
        candidates: Dict from ids of queries to lists of ids of documents, which are ranked. `None`
            for all documents.
    """

    def __init__(self, name, queries, documents, relevance, candidates=None):
        task_type = "Retrieval" if candidates is None else "Reranking"
        self.metadata = _metadata(name, task_type, "ndcg_at_10")
        super().__init__()
        corpus, asked = (
            Dataset.from_dict({"id": [*texts], "text": [*texts.values()]})
            for texts in (documents, queries)
        )
        data = {"corpus": corpus, "queries": asked, "relevant_docs": relevance}
        self.dataset = {"default": {"test": {**data, "top_ranked": candidates}}}
        self.data_loaded = True


def _metadata(name, task_type, main_score):
    unknown = ("reference", "date", "domains", "task_subtypes", "license", "annotations_creators")
    return TaskMetadata(
        name=name,
        type=task_type,
        main_score=main_score,
        description="Files on this machine",
        dataset={"path": "local", "revision": "local"},
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        bibtex_citation="",
        **dict.fromkeys((*unknown, "dialect", "sample_creation")),
    )


def stsb(embedder, folder):
    """Returns a task and the scores of the package."""
    columns = {"score": 4, "first": 5, "second": 6}
    file, reading = folder / "stsb" / "sts-test.csv", {"has_header": False, "numeric": ["score"]}
    rows = read_table(file, columns, delimiter="\t", **reading)
    pairs, scores = [*zip(rows["first"], rows["second"], strict=True)], rows["score"]
    found = similarity_scores(embedder, pairs, scores, verbose=0)
    ours = {"cosine_spearman": found.spearman, "cosine_pearson": found.pearson}
    return Similarity("STS-B-test", pairs, scores), ours


def cranfield(embedder, folder):
    """Returns a task and the scores of the package."""
    collection = read_cranfield(folder / "cranfield")
    documents, queries = (
        dict(zip(part["id"], part["text"], strict=True))
        for part in (collection.documents, collection.queries)
    )
    relevance = {query: {} for query in queries}
    for query, document, grade in zip(*collection.relevance.values(), strict=True):
        relevance[query][document] = max(grade, relevance[query].get(document, 0))
    index = {document: i for i, document in enumerate(documents)}
    judged = [{index[d]: r for d, r in relevance[query].items()} for query in queries]
    texts = [*queries.values()], [*documents.values()]
    found = retrieval_scores(embedder, *texts, judged, k=[10], top_k=_TOP_K, verbose=0)
    return Retrieval("Cranfield", queries, documents, relevance), _names(found)


def wikiqa(embedder, folder):
    """Returns a task and the scores of the package."""
    columns = read_wikiqa(folder / "wikiqa" / "test")
    documents = {str(i): text for i, text in enumerate(columns["document"])}
    queries = dict(zip(columns["query_id"], columns["query"], strict=True))
    relevance, candidates = ({query: value() for query in queries} for value in (dict, list))
    for query, document, grade in zip(
        columns["query_id"], documents, columns["relevance"], strict=True
    ):
        candidates[query].append(document)
        if grade:
            relevance[query][document] = grade
    vectors = dict(zip(queries, embedder.embed([*queries.values()], verbose=0), strict=True))
    of_documents = embedder.embed(columns["document"], verbose=0)
    cosines = [
        v @ vectors[query] for query, v in zip(columns["query_id"], of_documents, strict=True)
    ]
    found = ranking_scores(
        columns["query_id"], columns["relevance"], cosines, k=[10], document_ids=[*documents]
    )
    return Retrieval("WikiQA-test", queries, documents, relevance, candidates), _names(found)


def _names(scores):
    """The scores by their names in mteb, which ranks at most 1,000 documents."""
    return {
        "ndcg_at_10": scores.ndcg[10],
        f"map_at_{_TOP_K}": scores.map,
        f"mrr_at_{_TOP_K}": scores.mrr,
    }


if __name__ == "__main__":
    main()

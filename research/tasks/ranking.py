"""Ranking (WikiQA, Cranfield) by a fine-tuned preset, in several runs, beside BM25.

    python research/tasks/ranking.py --data WikiQA               # with the folders train and test
    python research/tasks/ranking.py --data cranfield --sequence_length 256 --batch_size 4
    python research/tasks/ranking.py --data WikiQA --loss hinge --runs 3

WikiQA gives the candidates of each question. Those of Cranfield are the first documents of BM25, so
the model orders again what BM25 found; relevant documents that are not among them count as not
found. Questions without a relevant document are left out. It writes the model, `metrics.json` and
`run.trec` (for trec_eval). It needs `pip install bm25s`.
"""

import dataclasses
import logging
import pathlib

import fine_tuning
import keras
import numpy as np
from absl import app, flags

from keras_xlnet.evaluation import ranking_scores
from keras_xlnet.models import ListSoftmaxLoss, PairwiseHingeLoss, XLNetRanker
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_cranfield, read_wikiqa

LOSSES = {"softmax": ListSoftmaxLoss, "hinge": PairwiseHingeLoss}
# Relevant documents in a training list. All lists of a batch are padded to the longest one, and few
# queries have more: these give several lists.
RELEVANT = 3
# Random order is the mean of so many.
SHUFFLES = 100

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "Folder of WikiQA or of Cranfield.", required=True)
fine_tuning.define_flags("runs/ranking", batch_size=8, rows="Lists")
flags.DEFINE_enum("loss", "softmax", list(LOSSES), "Loss over the lists of documents.")
flags.DEFINE_integer("list_size", 5, "Documents of no relevance in a training list.", lower_bound=1)
flags.DEFINE_integer("candidates", 50, "Documents of Cranfield to rank, of BM25.", lower_bound=1)
flags.DEFINE_integer("sequence_length", 64, "Tokens of query and document.", lower_bound=5)


@dataclasses.dataclass(frozen=True)
class Query:
    """A query and the documents to rank.

    Args:
        id: String.
        text: String.
        document_ids, documents: Lists of strings.
        relevance: List of numbers, one per document, above 0 for relevant ones.
        bm25: List of floats, the scores of BM25, one per document.
        judged: List of numbers, the relevance of all documents that were judged.
    """

    id: str
    text: str
    document_ids: list
    documents: list
    relevance: list
    bm25: list
    judged: list


def run(arguments):
    """Trains and tests a model, writes everything, and shows the first documents of queries."""
    fine_tuning.no_arguments(arguments)
    train, test = read_data()
    print(f"{len(train)} queries to train on, {len(test)} to test")
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(FLAGS.output_dir) as folder:
        model, scores, all_runs = fine_tuning.repeat(lambda seed: train_and_test(seed, train, test))
        write_report(folder, train, test, scores, all_runs)
        write_run(folder / "run.trec", test, scores)
        model = save_and_load(model, folder / "model.keras", test, scores)
    print_first(model, test[:3])
    fine_tuning.print_written()


# === The data ===


def read_data():
    """Returns the queries to train on and those to test."""
    if (folder := pathlib.Path(FLAGS.data)) and (folder / "train").is_dir():
        parts = queries_of_pairs([read_wikiqa(folder / name) for name in ("train", "test")])
    elif (folder / "cran.all.1400").is_file():
        parts = split(queries_of_collection(read_cranfield(folder)))
    else:
        raise ValueError(
            "--data must be a folder of WikiQA, with the folders train and test, or of Cranfield, "
            f"with the file cran.all.1400. Received: {FLAGS.data!r}"
        )
    parts = [[query for query in part if max(query.judged) > 0] for part in parts]
    if not all(parts):
        raise ValueError("there are no queries with a relevant document to train on, or to test")
    return [part[: FLAGS.num_examples] for part in parts]


def split(queries):
    """Returns three quarters of the queries and the others."""
    order = np.random.default_rng(FLAGS.seed).permutation(len(queries))
    count = len(queries) * 3 // 4
    return [queries[i] for i in order[:count]], [queries[i] for i in order[count:]]


def queries_of_pairs(parts):
    """Returns a list of `Query` for each part, a dict of columns with one entry a pair."""
    # BM25 knows how rare words are from the documents of all parts, which are no labels.
    search = BM25([document for part in parts for document in part["document"]])
    queries, offset = [], 0
    for part in parts:
        rows = {}
        for row, identity in enumerate(part["query_id"]):
            rows.setdefault(identity, []).append(row)
        queries.append([query_of_pairs(part, found, search, offset) for found in rows.values()])
        offset += len(part["document"])
    return queries


def query_of_pairs(part, rows, search, offset):
    identity, text = part["query_id"][rows[0]], part["query"][rows[0]]
    relevance = [part["relevance"][row] for row in rows]
    bm25 = search.scores(text)[[offset + row for row in rows]].tolist()
    ids = [f"{identity}-{number}" for number in range(len(rows))]
    documents = [part["document"][row] for row in rows]
    return Query(identity, text, ids, documents, relevance, bm25, relevance)


def queries_of_collection(collection):
    """Returns a list of `Query` with the documents that BM25 puts first."""
    ids = collection.documents["id"]
    documents = [" ".join(text.split()) for text in collection.documents["text"]]
    judged = {identity: {} for identity in collection.queries["id"]}
    for query, document, relevance in zip(*collection.relevance.values(), strict=True):
        judged[query][document] = relevance
    search = BM25(documents)
    queries = []
    for identity, text in zip(*collection.queries.values(), strict=True):
        scores = search.scores(text)
        first = [i for i in np.argsort(-scores, kind="stable") if documents[i]]
        first = first[: FLAGS.candidates]
        relevance = [judged[identity].get(ids[i], 0) for i in first]
        queries.append(
            Query(
                identity,
                " ".join(text.split()),
                [ids[i] for i in first],
                [documents[i] for i in first],
                relevance,
                scores[first].tolist(),
                [*judged[identity].values()] or [0],
            )
        )
    return queries


class BM25:
    """Scores of all documents for a query, with the settings of Lucene."""

    def __init__(self, documents):
        try:
            import bm25s
        except ImportError:
            raise ImportError("the baseline needs BM25: pip install bm25s") from None
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self.bm25s = bm25s
        self.num_documents = len(documents)
        self.index = bm25s.BM25(method="lucene")
        self.index.index(self.words(documents), show_progress=False)

    def words(self, texts):
        return self.bm25s.tokenize(texts, return_ids=False, show_progress=False)

    def scores(self, query):
        """Returns an array of floats, one per document."""
        known = [word for word in self.words([query])[0] if word in self.index.vocab_dict]
        if not known:  # bm25s refuses a query without words.
            return np.zeros(self.num_documents, "float32")
        return self.index.get_scores(known)


def training_lists(queries, seed):
    """Returns queries with lists of documents, and the relevance of these.

    A list has relevant documents, all of which are in some list, and up to --list_size others.
    """
    rng = np.random.default_rng(seed)
    texts, lists, labels = [], [], []
    for query in queries:
        relevance = np.array(query.relevance)
        relevant, others = np.flatnonzero(relevance > 0), np.flatnonzero(relevance <= 0)
        if not len(others):
            continue  # Any order of them is right.
        for start in range(0, len(relevant), RELEVANT):
            drawn = rng.choice(others, min(len(others), FLAGS.list_size), replace=False)
            rows = [*relevant[start : start + RELEVANT], *drawn]
            texts.append(query.text)
            lists.append([query.documents[row] for row in rows])
            labels.append(relevance[rows].tolist())
    if not texts:
        raise ValueError("no query to train on has both relevant documents and others")
    return {"query": texts, "documents": lists}, labels


# === The model ===


def train_and_test(seed, train, test):
    """Returns a trained model, its scores for the documents of the test, and MAP, MRR and NDCG."""
    model = fine_tuning.load_model(
        XLNetRanker,
        seed,
        # Compares query and document word by word: with few examples better than <cls>.
        pooling="pair",
        sequence_length=FLAGS.sequence_length,
    )
    lists, labels = training_lists(train, seed)
    model = fine_tuning.fit(
        model,
        lists,
        labels,
        len(labels),
        epochs=2,
        learning_rate=3e-4,
        loss=LOSSES[FLAGS.loss](),
    )
    scores = predict(model, test)
    return model, scores, evaluate(test, scores)


def predict(model, queries):
    """Returns the scores of the documents of each query, a list of arrays."""
    # The score of a document does not depend on the others: lists of one have no padding.
    texts = [query.text for query in queries for _ in query.documents]
    documents = [[document] for query in queries for document in query.documents]
    scores = model.predict({"query": texts, "documents": documents}, batch_size=64, verbose=0)
    ends = np.cumsum([len(query.documents) for query in queries])
    return np.split(scores[:, 0], ends[:-1])


def save_and_load(model, path, queries, scores):
    """Saves a model and returns the loaded one, if it gives the same scores."""
    model.save(path)
    model = keras.saving.load_model(path)
    again = predict(model, queries)
    if not np.allclose(np.concatenate(again), np.concatenate(scores), atol=1e-5):
        raise RuntimeError(f"{path.name}: the model gives other scores after loading")
    print(f"\n{path.name}, loaded again, gives the same scores")
    return model


# === What is printed and written ===


def write_report(folder, train, test, scores, all_runs):
    """Prints the scores of the model, of BM25 and of random order, and writes metrics.json."""
    name = fine_tuning.model_name()
    metrics = {
        name: evaluate(test, scores),
        "bm25": evaluate(test, [query.bm25 for query in test]),
        "random": random_order(test),
    }
    print(f"\n{'':20}     MAP     MRR  NDCG@10")
    for key, row in metrics.items():
        print(f"{key:20}  {row['map']:.4f}  {row['mrr']:.4f}   {row['ndcg@10']:.4f}")
    report = {"queries": {"train": len(train), "test": len(test)}, "model": metrics.pop(name)}
    report["baselines"] = metrics
    report["all_runs"] = all_runs
    fine_tuning.write_json(folder / "metrics.json", report)


def evaluate(queries, scores):
    """Returns a dict of MAP, MRR and NDCG@10 of the scores of the documents of each query."""
    found = ranking_scores(
        [query.id for query in queries for _ in query.documents],
        [relevance for query in queries for relevance in query.relevance],
        np.concatenate(scores),
        k=[10],
        document_ids=[identity for query in queries for identity in query.document_ids],
        all_relevance=(
            [query.id for query in queries for _ in query.judged],
            [relevance for query in queries for relevance in query.judged],
        ),
    )
    return {"map": found.map, "mrr": found.mrr, "ndcg@10": found.ndcg[10]}


def random_order(queries):
    """Returns the means of what `evaluate` gives for random orders of the same documents."""
    rng = np.random.default_rng(FLAGS.seed)
    rows = [
        evaluate(queries, [rng.random(len(query.documents)) for query in queries])
        for _ in range(SHUFFLES)
    ]
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def write_run(path, queries, scores):
    """Writes the ranking in the format of TREC: query, Q0, document, rank, score, name."""
    with open(path, "w", encoding="utf-8") as file:
        for query, row in zip(queries, scores, strict=True):
            for rank, i in enumerate(np.argsort(-row, kind="stable"), 1):
                file.write(f"{query.id} Q0 {query.document_ids[i]} {rank} {row[i]:.6f} xlnet\n")


def print_first(model, queries):
    columns = {"query": [q.text for q in queries], "documents": [q.documents for q in queries]}
    for query, ranked in zip(queries, model.rank(columns, verbose=0), strict=True):
        print(f"\n{query.text}    (* is relevant)")
        for document in ranked[:3]:
            mark = "*" if query.relevance[document.index] > 0 else " "
            print(f"  {document.score:8.4f} {mark} {document.text[:100]}")


if __name__ == "__main__":
    app.run(fine_tuning.main(run))

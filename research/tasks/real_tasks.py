"""The tasks of task_table.py: their files, their models, their metrics and simple baselines."""

import collections
import math
import re

import keras
import numpy as np
import tfidf
from bm25 import BM25
from sklearn.metrics import accuracy_score

from keras_xlnet import evaluation, models, task_files
from keras_xlnet.evaluation import normalize_answer
from keras_xlnet.models import XLNetBackbone

# The share that is held out from data without a test part.
TEST_SHARE = 0.25


class Task:
    """A task: a kind of model on some files.

    Args:
        title: String, its name in the table.
        train, test: Names of files in the folder of the data; without `test` the rows with the last
            quarter of the different values of the first input are held out.
        **settings: Attributes whose value differs from the class.

    Attributes:
        model_class: The class of the model.
        inputs, label: Names of columns.
        metric: Name of the metric of the table; `baseline`: name of the baseline.
        epochs, batch_size, rate: Training settings.
        num_examples: Int, the largest number of rows to train on and to test. `None`: all.
    """

    label, metric, num_examples, test = "label", "accuracy", None, None
    epochs, batch_size, rate = 2, 8, 5e-4
    sequence_length = 256

    def __init__(self, title, train, test=None, **settings):
        vars(self).update(title=title, train=train, test=test, **settings)

    def read(self, folder):
        """Returns the columns to train on and to test, dicts of lists."""
        rows = self.read_files(folder, self.train)
        if self.test:
            return rows, self.read_files(folder, self.test)
        # Questions about a text are either all in training or all in the test.
        values = rows[self.inputs[-1]]
        different = list(dict.fromkeys(values))
        last = set(different[-max(1, round(TEST_SHARE * len(different))) :])
        is_test = np.array([value in last for value in values])
        return [rows_of(rows, np.flatnonzero(mask)) for mask in (~is_test, is_test)]

    def read_files(self, folder, files):
        """Returns the columns of one or several files, whose names are separated by commas."""
        parts = [self.read_file(folder / file) for file in files.split(",")]
        return {name: sum((part[name] for part in parts), []) for name in parts[0]}

    def arguments(self, train):
        """Returns the arguments of the model."""
        return {"sequence_length": self.sequence_length}

    def examples(self, columns, seed=0):
        """Returns the inputs and the labels of the model."""
        x = {name: columns[name] for name in self.inputs}
        return (x if len(x) > 1 else x[self.inputs[0]]), columns[self.label]

    def new_model(self, preset, train, seed, is_pretrained=True, **arguments):
        """Returns a model with a new head and pretrained or random weights."""
        keras.utils.set_random_seed(seed)
        # Presets that come from pretraining have no dropout.
        arguments |= {"backbone_dropout": 0.1, "attention_dropout": 0.1, "seed": seed}
        model = self.model_class.from_preset(preset, **arguments, **self.arguments(train))
        if is_pretrained:
            return model
        # Larger initial weights than XLNet's, which are meant for long pretraining.
        config = {**model.backbone.get_config(), "kernel_initializer": "glorot_normal"}
        others = model.get_config() | {"preprocessor": model.preprocessor}
        return self.model_class(**others | {"backbone": XLNetBackbone.from_config(config)})

    def fit(self, model, train, seed):
        """Trains with AdamW, a warmup in a tenth of the steps, and a cosine to zero."""
        x, y = self.examples(train, seed)
        num_rows = len(y)
        if isinstance(model, models.XLNetQuestionAnswering):
            x = model.preprocessor.encode(x)
            num_rows = len(x)  # Its windows.
        steps = self.epochs * math.ceil(num_rows / self.batch_size)
        warmup = max(1, steps // 10)
        rate = keras.optimizers.schedules.CosineDecay(
            0.0, max(1, steps - warmup), warmup_target=self.rate, warmup_steps=warmup
        )
        optimizer = keras.optimizers.AdamW(rate, weight_decay=0.01, global_clipnorm=1.0)
        model.compile(optimizer, jit_compile="auto" if steps >= 1000 else False)
        model.fit(x, y, batch_size=self.batch_size, epochs=self.epochs, verbose=2)


def rows_of(columns, rows):
    return {key: [column[row] for row in rows] for key, column in columns.items()}


def shared_words(text, other):
    return len(set(normalize_answer(text).split()) & set(normalize_answer(other).split()))


class Names(Task):
    """Named entities, next to a dictionary of the entities in the training sentences."""

    model_class = models.XLNetTokenClassifier
    inputs, label, metric, baseline = ("words",), "tags", "F1", "dictionary"
    epochs, batch_size, sequence_length = 3, 16, 128

    def read_file(self, path):
        return task_files.read_conll(path)

    def arguments(self, train):
        names = sorted({"O"}.union(*train["tags"]))
        return {"num_classes": len(names), "class_names": names, **super().arguments(train)}

    def predict(self, model, test):
        return model.tag(test["words"], verbose=0)

    def score(self, test, tags):
        return {"F1": evaluation.entity_scores(test["tags"], tags).f1}

    def baseline_predictions(self, train, test):
        """Tags the word sequences that are entities in `train`, the longest ones first."""
        types = collections.defaultdict(collections.Counter)
        for words, tags in zip(train["words"], train["tags"], strict=True):
            for span in evaluation.entity_spans(tags):
                types[tuple(words[span.start : span.end])][span.type] += 1
        longest, rows = max(map(len, types)), []
        for words in test["words"]:
            tags = []
            while (start := len(tags)) < len(words):
                ends = range(min(len(words), start + longest), start, -1)
                end = next((end for end in ends if tuple(words[start:end]) in types), None)
                if end is None:
                    tags.append("O")
                    continue
                ((name, _),) = types[tuple(words[start:end])].most_common(1)
                tags += [f"B-{name}"] + [f"I-{name}"] * (end - start - 1)
            rows.append(tags)
        return rows


class Choices(Task):
    """Multiple choice, next to the choice that shares the most words with the text."""

    model_class = models.XLNetMultipleChoice
    inputs, baseline = ("question", "choices", "text"), "shared words"

    def read_file(self, path):
        is_mctest = path.suffix == ".tsv"
        return (task_files.read_mctest if is_mctest else task_files.read_race)(path)

    def arguments(self, train):
        # With little pretraining, shared words of choice and text matter most.
        lengths = {"max_choice_length": min(128, self.sequence_length // 3)}
        return {"pooling": "pair", **lengths, **super().arguments(train)}

    def predict(self, model, test):
        x, _ = self.examples(test)
        return [found.index for found in model.choose(x, batch_size=self.batch_size, verbose=0)]

    def score(self, test, chosen):
        return {"accuracy": float(np.mean(np.array(chosen) == test["label"]))}

    def baseline_predictions(self, train, test):
        pairs = zip(test["text"], test["choices"], strict=True)
        return [np.argmax([shared_words(text, c) for c in choices]) for text, choices in pairs]


class Answers(Task):
    """Answers of SQuAD, next to the sentence that shares the most words with the question."""

    model_class = models.XLNetQuestionAnswering
    inputs, label, metric, baseline = ("question", "context"), "answers", "F1", "closest sentence"
    rate, sequence_length = 1e-3, 384

    def read_file(self, path):
        return task_files.read_squad(path)

    def arguments(self, train):
        third = self.sequence_length // 3
        lengths = {"doc_stride": third, "max_question_length": min(64, third)}
        return {**lengths, **super().arguments(train)}

    def predict(self, model, test):
        x, _ = self.examples(test)
        return model.answer(x, batch_size=self.batch_size, verbose=0)

    def score(self, test, found):
        # A question gets no answer if none is more probable than any answer. The texts of the
        # baseline have no scores.
        has_scores = not isinstance(found[0], str)
        threshold = 0.0 if has_scores and not all(test["answers"]) else None
        scores = evaluation.answer_scores(found, test["answers"], threshold)
        return {"exact match": scores.exact / 100, "F1": scores.f1 / 100}

    def baseline_predictions(self, train, test):
        if not all(train["answers"]):
            return [""] * len(test["answers"])
        return [
            max(re.split(r"(?<=[.!?])\s+", context), key=lambda s, q=question: shared_words(q, s))
            for question, context in zip(test["question"], test["context"], strict=True)
        ]


class Ranking(Task):
    """Documents ordered by relevance, next to BM25.

    A row of the columns is a query with its documents. Queries without a relevant document are left
    out.
    """

    model_class = models.XLNetRanker
    inputs, label, metric, baseline = ("query", "documents"), "relevance", "MAP", "BM25"
    rate, sequence_length = 3e-4, 64
    # Relevant and other documents in a training list. All lists of a batch are padded to the
    # longest, and few queries have more relevant documents.
    relevant, others = 3, 5

    def read(self, folder):
        parts = [task_files.read_wikiqa(folder / name) for name in (self.train, self.test)]
        # BM25 counts words in the documents of all parts, which are no labels.
        search = BM25([document for part in parts for document in part["document"]])
        found, offset = [], 0
        for part in parts:
            queries, columns = {}, collections.defaultdict(list)
            for row, identity in enumerate(part["query_id"]):
                queries.setdefault(identity, []).append(row)
            for rows in queries.values():
                relevance, documents = (
                    [part[name][row] for row in rows] for name in ("relevance", "document")
                )
                query, places = part["query"][rows[0]], [offset + row for row in rows]
                row = {"query": query, "documents": documents, "relevance": relevance}
                row["bm25"] = search.scores(query)[places]
                for name, value in row.items() if max(relevance) > 0 else ():
                    columns[name].append(value)
            found.append(dict(columns))
            offset += len(part["document"])
        return found

    def arguments(self, train):
        # Compares query and document word by word, which beats <cls> with few examples.
        return {"pooling": "pair", **super().arguments(train)}

    def examples(self, columns, seed=0):
        """Returns lists of documents: every relevant document is in a list with others."""
        rng = np.random.default_rng(seed)
        x, labels = {"query": [], "documents": []}, []
        queries = zip(*(columns[name] for name in (*self.inputs, self.label)), strict=True)
        for query, documents, relevance in queries:
            relevance = np.array(relevance)
            relevant, others = np.flatnonzero(relevance > 0), np.flatnonzero(relevance <= 0)
            # Without others, any order is right.
            for start in range(0, len(relevant) if len(others) else 0, self.relevant):
                drawn = rng.choice(others, min(len(others), self.others), replace=False)
                rows = [*relevant[start : start + self.relevant], *drawn]
                x["query"].append(query)
                x["documents"].append([documents[row] for row in rows])
                labels.append(relevance[rows].tolist())
        return x, labels

    def predict(self, model, test):
        # The score of a document does not depend on the others: lists of one have no padding.
        queries = zip(test["query"], test["documents"], strict=True)
        pairs = [(query, [each]) for query, documents in queries for each in documents]
        ends = np.cumsum([len(documents) for documents in test["documents"]])
        return np.split(model.predict(pairs, batch_size=64, verbose=0)[:, 0], ends[:-1])

    def score(self, test, scores):
        lengths = [*map(len, test["documents"])]
        relevance = np.concatenate(test["relevance"])
        ids = np.repeat(np.arange(len(lengths)), lengths)
        found = evaluation.ranking_scores(ids, relevance, np.concatenate(scores), k=[10])
        return {"MAP": found.map, "MRR": found.mrr, "NDCG@10": found.ndcg[10]}

    def baseline_predictions(self, train, test):
        return test["bm25"]


class Documents(Task):
    """Long documents, read in one of the ways of `long_document`, next to tuned TF-IDF."""

    model_class = models.XLNetTextClassifier
    inputs, baseline, batch_size, max_length = ("text",), "TF-IDF", 16, 1024

    def read_file(self, path):
        rows = task_files.read_json_lines(path, {"text": "text", "label": "label"})
        return {**rows, "label": [*map(str, rows["label"])]}

    def arguments(self, train):
        names, is_whole = sorted(set(train["label"])), self.way in ("windows", "memory")
        return {
            "num_classes": len(names), "class_names": names, "pooling": "mean",
            "long_document": self.way, "segment_length": 128, "gradient_segments": 2,
            "memory_length": 128 if self.way == "memory" else None,
            "sequence_length": self.max_length if is_whole else self.sequence_length,
        }  # fmt: skip

    def predict(self, model, test):
        return [found.label for found in model.classify(test["text"], verbose=0)]

    def score(self, test, found):
        """Returns the accuracy, and the accuracies of three parts, from short to long."""
        lengths = np.array([*map(len, test["text"])])
        is_right = np.array(found) == test["label"]
        parts = np.array_split(np.argsort(lengths, kind="stable"), 3)
        by_length = {
            f"{lengths[part].min():,} to {lengths[part].max():,} characters": is_right[part]
            for part in parts
        }
        return {
            name: float(right.mean()) for name, right in {"accuracy": is_right, **by_length}.items()
        }

    def baseline_predictions(self, train, test):
        texts, test_texts = (np.array(part["text"], object) for part in (train, test))
        names, labels = np.unique(train["label"], return_inverse=True)
        found = tfidf.fit_tuned(texts, labels, accuracy_score, 1).predict(test_texts)
        return names[found].tolist()


_IMDB = ("tasks/imdb/train.jsonl", "tasks/imdb/test.jsonl")
TASKS = {
    "wnut17": Names(
        "WNUT-17", "tasks/wnut17/wnut17train.conll", "tasks/wnut17/emerging.test.annotated"
    ),
    "race": Choices(
        "RACE-middle", "tasks/race/train.middle.jsonl", "tasks/race/test.middle.jsonl",
        num_examples=2000,
    ),
    "wikiqa": Ranking("WikiQA", "tasks/wikiqa/train", "tasks/wikiqa/test"),
    **{
        f"imdb_{way}": Documents(f"IMDb, {way}", *_IMDB, way=way, num_examples=2000)
        for way in ("windows", "truncate", "head_tail", "memory")
    },
    **{
        f"mc{n}": Choices(
            f"MCTest {n}", f"tasks/mctest/mc{n}.train.tsv,tasks/mctest/mc{n}.dev.tsv",
            f"tasks/mctest/mc{n}.test.tsv",
        )
        for n in (160, 500)
    },
    "squad1": Answers("SQuAD 1.1", "squad/dev-v1.1-articles.json"),
    "squad2": Answers("SQuAD 2.0", "squad/dev-v2.0-half.json", sequence_length=128),
}  # fmt: skip

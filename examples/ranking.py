"""Documents in the order of their relevance for a query.

    python examples/ranking.py
    python examples/ranking.py --data WikiQA/train --test WikiQA/test --epochs 2

fine-tunes a preset on questions with sentences, some of which answer them, compares MAP, MRR and
NDCG@10 on other questions with those of random order, prints the first sentences of some questions,
and writes the model and `metrics.json` to runs/ranking. It takes one to two minutes and needs no
network.

The default questions were made up for this example: twelve to test are too few to compare methods.
research/tasks/task_table.py trains on the files of WikiQA, and has BM25 to compare with.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from absl import app, flags

from keras_xlnet.evaluation import ranking_scores
from keras_xlnet.models import XLNetRanker
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_table, read_wikiqa
from keras_xlnet.training import FineTuningAdamW, fastest_dtype

DATA = pathlib.Path(__file__).parent / "data"
FLAGS = flags.FLAGS
flags.DEFINE_string("data", str(DATA / "ranking_sample.tsv"), "Table, or folder of WikiQA.")
flags.DEFINE_string("test", str(DATA / "ranking_sample_test.tsv"), "The same to test on.")
flags.DEFINE_string("preset", "xlnet_small_en", "Name or path of the preset to fine-tune.")
flags.DEFINE_integer("sequence_length", 64, "Tokens of query and document.", lower_bound=5)
flags.DEFINE_integer("epochs", 8, "Passes over the training queries.", lower_bound=1)
flags.DEFINE_float("learning_rate", 3e-4, "Highest learning rate; 3e-5 for models of width 768.")
flags.DEFINE_string("output_dir", "runs/ranking", "Where everything is written.")


def main(arguments):
    try:
        train, test = read(FLAGS.data), read(FLAGS.test)
        print(f"{len(train)} queries to train on, {len(test)} to test")
        with replace_files(FLAGS.output_dir) as folder:  # Nothing is left there if the run fails.
            run(train, test, folder)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {' '.join(str(error).split())}")


def read(path):
    """Returns triples of a query, its documents and their relevance."""
    names = ("query_id", "query", "document", "relevance")
    is_table = pathlib.Path(path).is_file()
    columns = {name: name for name in names}
    table = read_table(path, columns, integer=["relevance"]) if is_table else read_wikiqa(path)
    queries = {}
    for key, query, document, relevance in zip(*(table[name] for name in names), strict=True):
        _, documents, labels = queries.setdefault(key, (query, [], []))
        documents.append(document)
        labels.append(relevance)
    # A query without relevant documents says nothing about their order.
    return [found for found in queries.values() if max(found[2]) > 0]


def run(train, test, folder):
    """Trains, tests and saves a model."""
    keras.utils.set_random_seed(1)
    model = XLNetRanker.from_preset(
        FLAGS.preset, sequence_length=FLAGS.sequence_length, dtype=fastest_dtype(), pooling="pair",
        backbone_dropout=0.1, attention_dropout=0.1,
    )  # fmt: skip
    model.compile(FineTuningAdamW(FLAGS.learning_rate))
    pairs = [(query, documents) for query, documents, _ in train]
    model.fit(pairs, [labels for *_, labels in train], batch_size=8, epochs=FLAGS.epochs)
    model.save(folder / "model.keras")

    ranked = model.rank([(query, documents) for query, documents, _ in test], verbose=0)
    for (query, _, relevance), documents in list(zip(test, ranked, strict=True))[:3]:
        print(f"\n{query}    (* is relevant)")
        for found in documents[:3]:
            mark = "*" if relevance[found.index] else " "
            print(f"  {found.score:8.4f} {mark} {found.text[:90]}")
    pairs = [(number, found) for number, documents in enumerate(ranked) for found in documents]
    keys, labels = zip(*((i, test[i][2][found.index]) for i, found in pairs), strict=True)
    scores = [found.score for _, found in pairs]
    rows = {"model": scores, "random order": np.random.default_rng(0).random(len(scores))}
    rows = {name: ranking_scores(keys, labels, values, k=[10]) for name, values in rows.items()}
    rows = {
        name: {"map": found.map, "mrr": found.mrr, "ndcg@10": found.ndcg[10]}
        for name, found in rows.items()
    }
    print("", *rows.items(), sep="\n")
    (folder / "metrics.json").write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    app.run(main)

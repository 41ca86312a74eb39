"""Trains adapters on `xlnet_mini_en`, those of the package among them.

    python research/tasks/train_adapters.py --preset xlnet_mini_en --data ../shared/data

writes an adapter with its card to a folder of `--output` for each task: `sentiment` (SST-2), `spam`
(the SMS Spam Collection), `questions` (SQuAD 1.1), `names` (tweets) and `duplicates` (MRPC).
Existing adapters are kept, so an interrupted command continues. The figures of a card are
measured with the adapter loaded from its folder. `--tasks spam --examples 64 --epochs 1` is a quick
trial. `--start runs/adapters` with another `--output` trains finished adapters once more.

`questions` first learns from about 340,000 questions of `cloze_questions.py`, which needs a GPU:
`KERAS_BACKEND=jax` and `--dtype mixed_bfloat16`.
"""

import argparse
import dataclasses
import functools
import json
import os
import pathlib
import re
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import cloze_questions
import keras
import numpy as np
from made import duplicates as made_duplicates
from made import names as made_names
from made import sentiment as made_sentiment
from made import spam as made_spam
from real_tasks import rows_of
from sklearn.metrics import accuracy_score, f1_score

from keras_xlnet.evaluation import answer_scores, entity_scores
from keras_xlnet.models import (
    Task,
    XLNetQuestionAnswering,
    XLNetTextClassifier,
    XLNetTokenClassifier,
)
from keras_xlnet.preset_files import write_preset_info
from keras_xlnet.task_files import read_conll, read_squad, read_table
from keras_xlnet.training import FineTuningAdamW

# On development data after 1,500 sentences of `sentiment`, these are as good as a rank of 2 of the
# queries and values with a rate of 5e-3, 71 % right.
_RANK = 8
_PROJECTIONS = ("query", "key", "value", "output", "feed_forward")
_LEARNING_RATE = 2e-3
_SEED = 0
# Shares for data without parts.
_DEVELOPMENT, _TEST = 0.1, 0.2
# For `questions`: passages, and questions about each.
_PASSAGES, _QUESTIONS = 45_000, 8


@dataclasses.dataclass(frozen=True)
class Job:
    """The data, the model and the training of an adapter.

    Args:
        model_class: The class of the model.
        arguments: Dict of arguments of the model and its preprocessor.
        parts: Dict of columns by part: `train`, `development` and `test`, and optionally `first`,
            on which the model is trained before `train`, for one epoch.
        inputs: Names of the columns of texts.
        labels: Name of the column of labels.
        measure: Function of a model, inputs and labels. It returns a dict of figures.
        epochs: Int, passes over the training examples.
        description: String, what the adapter does.
        data: String, the data and their licence.
        learning_rate, batch_size: Training settings.
    """

    model_class: Any
    arguments: dict[str, Any]
    parts: dict[str, dict[str, list[Any]]]
    inputs: tuple[str, ...]
    labels: str
    measure: Callable[..., dict[str, float]]
    epochs: int
    description: str
    data: str
    learning_rate: float = _LEARNING_RATE
    batch_size: int = 32

    def examples(self, part):
        """Returns the inputs and the labels of a part."""
        columns = self.parts[part]
        x = {name: columns[name] for name in self.inputs}
        return (x if len(x) > 1 else x[self.inputs[0]]), columns[self.labels]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_mini_en")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("runs/adapters"))
    parser.add_argument("--start", type=pathlib.Path, help="folder of adapters to go on from")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument("--examples", type=int, help="rows of each part, for a trial")
    parser.add_argument("--epochs", type=int, help="instead of the number of the task")
    parser.add_argument("--learning_rate", type=float, help="instead of that of the task")
    parser.add_argument("--dtype", default="float32", help="of the training, or mixed_bfloat16")
    arguments = parser.parse_args()
    for name in arguments.tasks:
        directory = arguments.output / name
        if (directory / "preset.json").exists():
            print(f"{directory} exists", flush=True)
        else:
            make(directory, TASKS[name](arguments.data), arguments)


def make(directory, job, arguments):
    """Trains an adapter and writes it with its card and its `preset.json`."""
    if arguments.examples:
        parts = {name: draw(part, arguments.examples) for name, part in job.parts.items()}
        job = dataclasses.replace(job, parts=parts)
    start = time.perf_counter()
    model = train(directory.name, job, arguments)
    minutes = (time.perf_counter() - start) / 60
    with tempfile.TemporaryDirectory() as folder:
        model.save_adapter(folder)
        figures = measured(job, Task.from_preset(arguments.preset, adapter=folder))
    print(f"{directory}: {minutes:.1f} minutes, {figures}", flush=True)
    sizes = ", ".join(f"{len(columns[job.labels]):,} {name}" for name, columns in job.parts.items())
    # The other tasks of `--tasks` do not change the adapter.
    command = (
        "python research/tasks/train_adapters.py --data ../shared/data --tasks "
        f"{directory.name} --preset {arguments.preset} --dtype {arguments.dtype}"
    )
    for option in ("epochs", "learning_rate"):
        if (value := getattr(arguments, option)) is not None:
            command += f" --{option} {value}"
    commands = [f"{command} --output runs/adapters_1"]
    if arguments.start is not None:
        card = (arguments.start / directory.name / "README.md").read_text(encoding="utf-8")
        earlier = re.search("```sh\n(.*?)\n```", card, re.DOTALL)[1].splitlines()
        folders = [f"runs/adapters_{len(earlier) + i}" for i in (0, 1)]
        commands = [*earlier, f"{command} --start {folders[0]} --output {folders[1]}"]
    data = f"{job.data} Examples: {sizes}.\n\nMade by\n\n```sh\n" + "\n".join(commands)
    data += f"\n```\n\nThe last command took {minutes:.0f} minutes."
    card = {"description": job.description, "data": data, "metrics": figures}
    model.save_adapter(directory, card={**card, "license": "apache-2.0"})
    write_preset_info(directory, job.description, figures)


def train(name, job, arguments):
    """Returns a model whose LoRA and head are trained."""
    keras.utils.set_random_seed(_SEED)
    options = {"backbone_dropout": 0.1, "attention_dropout": 0.1, "dtype": arguments.dtype}
    model = job.model_class.from_preset(arguments.preset, **job.arguments, **options)
    x, y = job.examples("train")
    model.enable_lora(_RANK, projections=_PROJECTIONS)
    if arguments.start is not None:
        model.load_adapter(arguments.start / name)
    elif job.model_class is XLNetTextClassifier:
        model.fit_head(x, y, verbose=0)
    rate = arguments.learning_rate or job.learning_rate
    jit_compile = "auto" if keras.backend.backend() == "jax" else False
    epochs = {"first": 1, "train": arguments.epochs or job.epochs}
    for part in [name for name in epochs if name in job.parts]:
        model.compile(FineTuningAdamW(rate), jit_compile=jit_compile)
        examples = job.examples(part)
        model.fit(*examples, batch_size=job.batch_size, epochs=epochs[part], verbose=2)
    if job.model_class is XLNetTextClassifier:
        model.calibrate(*job.examples("development"), verbose=0)
    return model


def measured(job, model):
    """Returns the figures of a model, in percent, on the parts not used for training."""
    return {
        f"{title} ({part})": round(100 * value, 1)
        for part in ("development", "test")
        for title, value in job.measure(model, *job.examples(part)).items()
    }


# === Figures ===


def class_figures(model, x, y, positive=None):
    """Returns the accuracy, and the F1 of a class."""
    found = [prediction.label for prediction in model.classify(x, verbose=0)]
    figures = {"accuracy": accuracy_score(y, found)}
    if positive is not None:
        score = f1_score(y, found, pos_label=positive, zero_division=0)
        figures[f"F1 of {positive}"] = score
    return figures


def answer_figures(model, x, y):
    scores = answer_scores(model.answer(x, verbose=0), y)
    return {"exact match": scores.exact / 100, "F1": scores.f1 / 100}


def entity_figures(model, x, y):
    return {"F1 of entities": entity_scores(y, model.tag(x, verbose=0)).f1}


# === Parts ===


def draw(columns, number):
    """Returns random rows of columns."""
    total = len(next(iter(columns.values())))
    return rows_of(columns, np.random.default_rng(_SEED).permutation(total)[:number])


def split(columns, key, parts=(("test", _TEST), ("development", _DEVELOPMENT))):
    """Returns parts of columns with different values in the column `key`; the rest is `train`."""
    values = [*dict.fromkeys(columns[key])]
    order = np.random.default_rng(_SEED).permutation(len(values))
    owner = dict.fromkeys(values, "train")
    for name, share in parts:
        taken, order = np.split(order, [round(share * len(values))])
        owner |= {values[i]: name for i in taken}
    rows = {name: [] for name in ("train", *dict(parts))}
    for row, value in enumerate(columns[key]):
        rows[owner[value]].append(row)
    return {name: rows_of(columns, found) for name, found in rows.items()}


# === The tasks ===


def classifier(names, length, parts, description, data, epochs, positive=None, **settings):
    """Returns the job of a classifier.

    Args:
        names: List of the names of classes.
        length: Int, the tokens of a text.
        parts, description, data, epochs: As in `Job`.
        positive: Name of a class whose F1 is a figure.
        **settings: Other arguments of the model.
    """
    classes = {"num_classes": len(names), "class_names": names}
    return Job(
        XLNetTextClassifier,
        {**classes, "sequence_length": length, **settings},
        parts,
        ("text", "pair") if "pooling" in settings else ("text",),
        "label",
        functools.partial(class_figures, positive=positive),
        epochs=epochs,
        description=description,
        data=data,
    )


# Examples made by rule, for training. A tenth as many, of other sentences or kinds, are for
# development.
_MADE = {"sentiment": 8_000, "spam": 5_000, "duplicates": 6_000, "names": 8_000}


def sentiment(data):
    read = functools.partial(read_table, columns={"text": 0, "label": 1}, has_header=False)
    files = {"train": "train.tsv", "development": "dev.tsv", "test": "test.tsv"}
    folder = data / "tasks"
    reviews = [
        read(folder / "uci_sentences" / f"{source}_labelled.txt")
        for source in ("amazon_cells", "imdb")
    ]
    parts = joined(
        {part: read(folder / "sst2" / file) for part, file in files.items()},
        split(concatenated(*reviews), "text"),
    )
    names = {"0": "negative", "1": "positive"}
    parts["first"] = ends_of_reviews(folder / "imdb" / "train.jsonl")
    name_labels(parts, names)
    return classifier(
        [*names.values()],
        64,
        with_made("sentiment", parts, made_sentiment.sentences),
        "Sentiment of English sentences and reviews: negative or positive",
        "SST-2, sentences of film reviews (Socher et al. 2013). No licence is stated: the data "
        "were used to train, and are not in the adapter. Sentiment Labelled Sentences (Kotzias et "
        "al. 2015, UCI repository no. 331), CC BY 4.0. Sentences that are made by rule "
        "(made/sentiment.py). Before them, for one epoch, the first and the last words of 5,000 "
        "film reviews (Maas et al. 2011), also without a licence.",
        epochs=3,
    )


def ends_of_reviews(file, words=45):
    """Returns the first and the last words of each review, with the label of the whole."""
    columns: dict[str, list[str]] = {"text": [], "label": []}
    for line in filter(None, file.read_text(encoding="utf-8").split("\n")):
        row = json.loads(line)
        found = re.sub("<br ?/?>", " ", row["text"]).split()
        columns["text"] += [" ".join(found[:words]), " ".join(found[-words:])]
        columns["label"] += 2 * [str(row["label"])]
    return columns


def spam(data):
    file = data / "sms_spam_collection" / "SMSSpamCollection"
    columns = read_table(file, {"label": 0, "text": 1}, has_header=False, delimiter="\t")
    return classifier(
        ["ham", "spam"],
        80,
        # Copies of a message stay in one part.
        with_made("spam", split(columns, "text"), made_spam.messages),
        "Spam among English text messages: ham or spam",
        "The SMS Spam Collection (Almeida and Hidalgo, UCI repository no. 228), CC BY 4.0. "
        "Messages that are made by rule (made/spam.py).",
        epochs=2,
        positive="spam",
    )


def duplicates(data):
    columns = {"text": "#1 String", "pair": "#2 String", "label": "Quality"}
    train, test = (
        read_table(data / "tasks" / "mrpc" / f"msr_paraphrase_{part}.txt", columns, delimiter="\t")
        for part in ("train", "test")
    )
    parts = {**split(train, "text", [("development", _DEVELOPMENT)]), "test": test}
    names = {"0": "different", "1": "duplicate"}
    name_labels(parts, names)
    files = {"train": "sts-train.csv", "development": "sts-dev.csv"}
    similar = {part: _similar(data / "tasks" / "stsb" / file) for part, file in files.items()}
    parts = joined(parts, similar)
    texts = [*dict.fromkeys(parts["train"]["text"])]
    # Of a third of them, so that the classes have about as many pairs.
    changed = made_duplicates.near_misses(texts[::3])
    parts = joined(parts, {"train": changed})
    return classifier(
        [*names.values()],
        96,
        with_made("duplicates", parts, made_duplicates.pairs),
        "Pairs of English sentences that say the same: different or duplicate",
        "The Microsoft Research Paraphrase Corpus (Dolan and Brockett 2005), under terms of "
        "Microsoft: the data were used to train, and are not in the adapter. STS-B (Cer et al. "
        "2017): pairs with at least 4 of 5 are duplicates, with at most 3 different. Pairs that "
        "are made by rule (made/duplicates.py), also from the sentences of both.",
        epochs=1,
        positive="duplicate",
        pooling="pair",
    )


def _similar(file):
    """Pairs of STS-B, without those between 3 and 4."""
    columns = {"text": 5, "pair": 6, "label": 4}
    rows = read_table(file, columns, delimiter="\t", has_header=False, numeric=["label"])
    kept = [i for i, score in enumerate(rows["label"]) if not 3 < score < 4]
    rows = rows_of(rows, kept)
    rows["label"] = ["duplicate" if score >= 4 else "different" for score in rows["label"]]
    return rows


def name_labels(parts, names):
    """Replaces the labels of parts by names of classes, with a dict from one to the other."""
    for columns in parts.values():
        columns["label"] = [names[label] for label in columns["label"]]


def concatenated(*tables):
    """Returns a dict of the columns of several tables, one after the other."""
    return {name: [row for table in tables for row in table[name]] for name in tables[0]}


def joined(parts, more):
    """Returns parts with the rows of both."""
    names = dict.fromkeys([*parts, *more])
    return {
        name: concatenated(*(group[name] for group in (parts, more) if name in group))
        for name in names
    }


def with_made(name, parts, make):
    """Returns parts with examples that a function of a number and a seed makes."""
    number = _MADE[name]
    made = {"train": make(number, 0), "development": make(number // 10, 1)}
    return joined(parts, made)


def questions(data):
    columns = read_squad(data / "squad" / "dev-v1.1-articles.json")
    passages = cloze_questions.read_passages(data / cloze_questions.CORPUS, _PASSAGES)
    made = cloze_questions.cloze_questions(passages, _QUESTIONS)
    return Job(
        XLNetQuestionAnswering,
        {"sequence_length": 256, "doc_stride": 96, "max_question_length": 48},
        {"first": made, **split(columns, "context")},
        ("question", "context"),
        "answers",
        answer_figures,
        epochs=8,
        description="Answers to English questions, as parts of a text that has the answer",
        data="Questions made from passages of a corpus (cloze_questions.py), then those of the "
        "development part of SQuAD 1.1 (Rajpurkar et al. 2016), CC BY-SA 4.0. Each paragraph is "
        "in one part with all of its questions.",
        # F1 on development data is 31; with a rank of 4, or without the made questions, 15.
        learning_rate=1e-3,
        batch_size=64,
    )


# The types of WNUT-17 and of the Broad Twitter Corpus.
TYPES_OF_FILES = {
    "person": "person",
    "location": "place",
    "corporation": "organization",
    "group": "organization",
    "creative-work": "other",
    "product": "other",
    "PER": "person",
    "LOC": "place",
    "ORG": "organization",
}


def names(data):
    folder = data / "tasks" / "wnut17"
    files = {
        "train": "wnut17train.conll",
        "development": "emerging.dev.conll",
        "test": "emerging.test.annotated",
    }
    parts = {part: with_types(read_conll(folder / file)) for part, file in files.items()}
    tweets = [
        with_types(_read_tweets(data / "tasks" / "btc" / f"{section}.conll")) for section in "abef"
    ]
    columns = concatenated(*tweets)
    columns["key"] = [" ".join(words) for words in columns["words"]]
    tweets = {
        part: {name: rows[name] for name in ("words", "tags")}
        for part, rows in split(columns, "key").items()
    }
    parts = with_made("names", joined(parts, tweets), made_names.sentences)
    tags = ["O", *(f"I-{kind}" for kind in made_names.TYPES)]
    return Job(
        XLNetTokenClassifier,
        {"num_classes": len(tags), "class_names": tags, "sequence_length": 64},
        parts,
        ("words",),
        "tags",
        entity_figures,
        epochs=2,
        description="Names in English texts: persons, places, organizations, others",
        data="WNUT-17 (Derczynski et al. 2017) and the Broad Twitter Corpus (Derczynski, Bontcheva "
        "and Roberts 2016), both CC BY 4.0; sentences that are made by rule (made/names.py).",
    )


def with_types(columns):
    """Tags of four types, without the letter B: neighbours of one type are one name."""
    tags = [
        [tag if tag == "O" else f"I-{TYPES_OF_FILES[tag.partition('-')[2]]}" for tag in row]
        for row in columns["tags"]
    ]
    return {"words": columns["words"], "tags": tags}


def _read_tweets(path):
    """Reads tweets, with "@" and the handle of a user in one word.

    Handles are no names, as in WNUT-17. One line of the files has a tag without a word.
    """
    words, tags = [], []
    for tweet in path.read_text(encoding="utf-8").split("\n\n"):
        found: list[tuple[str, str]] = []
        for line in filter(None, tweet.split("\n")):
            word, _, tag = line.partition("\t")
            if found and found[-1][0] == "@":
                found[-1] = (f"@{word}", "O")
            elif word.strip():
                found.append((word, tag))
        if found:
            words.append([word for word, _ in found])
            tags.append([tag for _, tag in found])
    return {"words": words, "tags": tags}


TASKS = {
    function.__name__: function for function in (sentiment, spam, questions, names, duplicates)
}


if __name__ == "__main__":
    main()

"""Compares what ONNX and LiteRT files with int8 find with what their models find in float32.

    python research/tasks/export_quality.py --data ../shared/data

`names` (WNUT-17) has the adapter of the package, and `questions` (SQuAD 1.1) one that
train_adapters.py has made. For `choices` (MCTest 500) and `ranking` (WikiQA) a model is trained on
`--num_train` rows, and for `causal` a small Transformer-XL on tiny Shakespeare; `permutation` is
the preset itself. All are measured on `--num_rows` rows of development data. The table has percent,
and bits per character for language models. Models and exports are kept in runs/export_quality: an
interrupted command continues.
"""

import argparse
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import train_adapters
from real_tasks import Choices, Ranking

from keras_xlnet.models import Task, TransformerXLLanguageModel, XLNetPermutationLM
from keras_xlnet.serving import export
from keras_xlnet.serving.portable.predict import TextModel
from keras_xlnet.task_files import read_conll, read_squad
from keras_xlnet.tokenizers import XLNetTokenizer

PRESET = "xlnet_mini_en"
FORMATS = ("onnx", "litert")
BATCH = 16


class Exported:
    """A `TextModel` with the methods of the models."""

    def __init__(self, directory):
        self.text_model = TextModel(directory)

    def results(self, x):
        """The results for a column, a list of rows or a dict of columns, in batches."""
        size = len(next(iter(x.values())) if isinstance(x, dict) else x)
        found = []
        for i in range(0, size, BATCH):
            rows = slice(i, i + BATCH)
            part = {k: v[rows] for k, v in x.items()} if isinstance(x, dict) else x[rows]
            found += self.text_model.results(part)
        return found

    def tag(self, x, verbose=0):
        return [list(sentence.tags) for sentence in self.results(x)]

    def answer(self, x, verbose=0):
        return self.results(x)

    def choose(self, x, batch_size=None, verbose=0):
        return self.results(x)

    def predict(self, x, batch_size=None, verbose=0):
        return np.array([[ranking[0].score] for ranking in self.results(x)])

    def score(self, texts):
        return self.text_model.results(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument(
        "--output_dir", type=pathlib.Path, default=pathlib.Path("runs/export_quality")
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument(
        "--questions", default="runs/adapters/questions", help="adapter of train_adapters.py"
    )
    parser.add_argument("--num_train", type=int, default=600, help="rows to train on")
    parser.add_argument("--num_rows", type=int, default=200, help="rows to measure on")
    arguments = parser.parse_args()
    print("| task | metric | model | ONNX, int8 | LiteRT, int8 |")
    for name in arguments.tasks:
        folder = arguments.output_dir / name
        metric, model, measure = TASKS[name](arguments, folder / "preset")
        values = [measure(model)]
        for format in FORMATS:
            directory = folder / format
            if not directory.exists():
                export(model, directory, format=format, quantization="int8")
            values.append(measure(Exported(directory)))
        print(f"| {name} | {metric} |", " | ".join(f"{x:.2f}" for x in values), "|", flush=True)


def names(arguments, folder):
    rows = read_conll(arguments.data / "tasks/wnut17/emerging.dev.conll")
    rows = train_adapters.with_types(rows)
    rows = train_adapters.draw(rows, arguments.num_rows)
    figures = train_adapters.entity_figures
    return (
        "F1",
        adapted("names"),
        lambda model: 100 * figures(model, rows["words"], rows["tags"])["F1 of entities"],
    )


def questions(arguments, folder):
    rows = read_squad(arguments.data / "squad/dev-v1.1-articles.json")
    rows = train_adapters.split(rows, "context")["development"]
    rows = train_adapters.draw(rows, arguments.num_rows)
    x = {name: rows[name] for name in ("question", "context")}
    figures = train_adapters.answer_figures
    model = adapted(arguments.questions)
    return "F1", model, lambda model: 100 * figures(model, x, rows["answers"])["F1"]


def adapted(name):
    return Task.from_preset(PRESET, adapter=name)


def choices(arguments, folder):
    files = "tasks/mctest/mc500.train.tsv", "tasks/mctest/mc500.dev.tsv"
    return trained(Choices("MCTest 500", *files, sequence_length=128), arguments, folder)


def ranking(arguments, folder):
    files = "tasks/wikiqa/train", "tasks/wikiqa/dev"
    return trained(Ranking("WikiQA", *files), arguments, folder)


def trained(task, arguments, folder):
    train, development = task.read(arguments.data)
    train = train_adapters.draw(train, arguments.num_train)
    development = train_adapters.draw(development, arguments.num_rows)
    if folder.exists():
        model = Task.from_preset(folder)
    else:
        model = task.new_model(PRESET, train, seed=0)
        task.fit(model, train, seed=0)
        model.save_to_preset(folder)

    def measure(model):
        return 100 * task.score(development, task.predict(model, development))[task.metric]

    return task.metric, model, measure


def permutation(arguments, folder):
    lines = (arguments.data / "wikitext-2/valid.txt").read_text(encoding="utf-8").splitlines()
    lines = [line.strip() for line in lines if 100 < len(line) < 600]
    return "bits per character", XLNetPermutationLM.from_preset(PRESET), bits_of(lines, arguments)


def causal(arguments, folder):
    text = (arguments.data / "tiny_shakespeare/input.txt").read_text(encoding="utf-8")
    parts = text.split("\n\n")
    held_out = parts[-len(parts) // 10 :]
    if folder.exists():
        model = TransformerXLLanguageModel.from_preset(folder)
    else:
        tokenizer = XLNetTokenizer.train(iter(text.splitlines()), vocabulary_size=2000)
        (ids,) = tokenizer.encode(["\n\n".join(parts[: -len(held_out)])])
        keras.utils.set_random_seed(0)
        model = TransformerXLLanguageModel(
            tokenizer.vocabulary_size(), 4, 4, 128, 448, tokenizer=tokenizer,
            dropout=0.0, attention_dropout=0.0, memory_length=64, seed=0,
        )  # fmt: skip
        segments = np.array([ids[i : i + 65] for i in range(0, len(ids) - 65, 64)])
        model.compile(keras.optimizers.AdamW(2e-3, global_clipnorm=1.0))
        model.fit(
            {"token_ids": segments[:, :-1]}, segments[:, 1:], batch_size=32, epochs=3, verbose=2
        )
        model.save_to_preset(folder)
    return "bits per character", model, bits_of(held_out, arguments)


def bits_of(texts, arguments):
    texts = train_adapters.draw({"text": texts}, arguments.num_rows)["text"]
    size = sum(map(len, texts))
    return lambda model: float(-model.score(texts).totals.sum() / np.log(2) / size)


TASKS = {
    function.__name__: function
    for function in (names, questions, choices, ranking, permutation, causal)
}


if __name__ == "__main__":
    main()

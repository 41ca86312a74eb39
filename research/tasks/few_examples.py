"""Learning curves with few examples: `fit_head`, `fit`, both, and tuned TF-IDF.

    python research/tasks/few_examples.py --data ../shared/data --output runs/few_examples

Of each task (SST-2, SMS spam, query well-formedness) it draws 8 to 1,000 examples to train on, with
the shares of the classes, once for each seed, and tests on the development examples (SMS: a fold).
It appends a line a run to `runs.jsonl`, goes on where it was stopped, and draws `few_examples.png`.
"""

import argparse
import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import results_tasks
import tfidf
from sklearn.metrics import accuracy_score, f1_score

from keras_xlnet.models import XLNetTextClassifier

_SIZES = (8, 16, 64, 256, 1000)
_TASKS = {"sst2": accuracy_score, "sms": f1_score, "qwf": accuracy_score}
_EPOCHS = 4
# Fewer steps than this are too few for any number of examples.
_FEWEST_STEPS = 60
_MOST_TESTS = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="xlnet_mini_en")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("runs/few_examples"))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dtype", default="float32", help="or mixed_bfloat16")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    file = arguments.output / "runs.jsonl"
    runs = [json.loads(line) for line in file.open()] if file.exists() else []
    done = {(run["task"], run["size"], run["seed"], run["method"]) for run in runs}
    found, missing = results_tasks.read_tasks(_TASKS, arguments.data)
    if missing:
        parser.error(f"--data {arguments.data}: {missing}")
    for task, size, seed, method in (
        (task, size, seed, method)
        for method in arguments.methods
        for size in _SIZES
        for seed in range(arguments.seeds)
        for task in _TASKS
    ):
        if (task, size, seed, method) in done:
            continue
        start = time.process_time()
        train, test = parts(found[task], size, seed)
        predicted = METHODS[method](train, test.texts, seed, task, arguments)
        run = {"task": task, "size": size, "seed": seed, "method": method}
        run |= {"score": float(_TASKS[task](test.labels, predicted))}
        runs.append(run | {"cpu_seconds": round(time.process_time() - start, 1)})
        with file.open("a") as lines:
            lines.write(json.dumps(runs[-1]) + "\n")
    print_table(runs)
    draw(runs, arguments.output / "few_examples.png")


def parts(data, size, seed):
    """Returns the examples to train on, and those to test on."""
    split = "test" if data.test is None else "validation"
    train, test = data.parts(seed, split)
    rows = np.random.default_rng(0).permutation(len(test))[:_MOST_TESTS]
    return results_tasks.draw_subset(train, size, seed), test[rows]


# === Methods ===


def by_tfidf(train, texts, seed, task, arguments):
    if np.bincount(train.labels).min() < tfidf.FOLDS:
        # Too few for cross-validation: what is chosen most often with more examples.
        settings = {"C": 10.0, "class_weight": None, "dual": True}
        extractor = next(iter(tfidf.text_features().values()))
        x = extractor.fit_transform(train.texts)
        model = tfidf.linear_model(train.labels, settings).fit(x, train.labels)
        return model.predict(extractor.transform(texts))
    return tfidf.fit_tuned(train.texts, train.labels, _TASKS[task], seed).predict(texts)


def by_head(train, texts, seed, task, arguments):
    model = classifier(seed, task, arguments)
    model.fit_head(train.texts.tolist(), train.labels, verbose=0)
    return predict(model, texts)


def by_fit(train, texts, seed, task, arguments, head_first=False):
    model = classifier(seed, task, arguments)
    epochs = max(_EPOCHS, -(-_FEWEST_STEPS // -(-len(train) // 32)))
    model.fit(train.texts.tolist(), train.labels, epochs=epochs, verbose=0, head_first=head_first)
    return predict(model, texts)


def by_both(train, texts, seed, task, arguments):
    return by_fit(train, texts, seed, task, arguments, head_first=True)


METHODS = {"TF-IDF": by_tfidf, "fit_head": by_head, "fit": by_fit, "head first": by_both}


def classifier(seed, task, arguments):
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    return XLNetTextClassifier.from_preset(
        arguments.preset,
        num_classes=2,
        sequence_length=results_tasks.RECIPES[task].sequence_length,
        dtype=arguments.dtype,
    )


def predict(model, texts):
    return model.predict(texts.tolist(), verbose=0).argmax(axis=1)


# === Reports ===


def scores_of(runs, task, method, size):
    names = ("task", "method", "size")
    return [run["score"] for run in runs if tuple(run[n] for n in names) == (task, method, size)]


def print_table(runs):
    for task, metric in _TASKS.items():
        print(f"\n{task}, {metric.__name__.removesuffix('_score')}, percent")
        print("".join(f"{title:>16}" for title in ("examples", *METHODS)))
        for size in _SIZES:
            cells = []
            for method in METHODS:
                scores = 100 * np.array(scores_of(runs, task, method, size))
                cells.append(f"{scores.mean():.1f} ± {scores.std():.1f}" if len(scores) else "")
            print("".join(f"{cell:>16}" for cell in (size, *cells)))


def draw(runs, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(_TASKS), figsize=(12, 3.4), layout="constrained")
    for axis, (task, metric) in zip(axes, _TASKS.items(), strict=True):
        for method in METHODS:
            rows = [(size, scores_of(runs, task, method, size)) for size in _SIZES]
            rows = [(size, np.mean(scores), np.std(scores)) for size, scores in rows if scores]
            if rows:
                sizes, means, deviations = np.array(rows).T
                axis.errorbar(sizes, means, deviations, marker=".", capsize=2, label=method)
        name = metric.__name__.removesuffix("_score")
        axis.set(title=f"{results_tasks.TASKS[task].title}, {name}", xscale="log")
        axis.set(xlabel="training examples")
        axis.set_xticks(_SIZES, labels=map(str, _SIZES), minor=False)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(file, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()

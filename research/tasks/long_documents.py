"""Long documents by a fine-tuned preset that reads them in four ways, in several runs.

    python research/tasks/long_documents.py --data train.jsonl --test test.jsonl     # text, label
    python research/tasks/long_documents.py --data train.jsonl --long_document memory --runs 3

"truncate" and "head_tail" keep 256 tokens of a document, "windows" and "memory" read all of it. It
prints the accuracy by the length of the documents beside that of tuned TF-IDF, and writes the
models, `metrics.json`, `predictions.tsv` and a plot. Without --test it holds out a quarter.
"""

import pathlib
import time

import fine_tuning
import keras
import matplotlib
import numpy as np
import tfidf
from absl import app, flags
from sklearn.metrics import accuracy_score

from keras_xlnet.models import XLNetTextClassifier
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_json_lines, read_table

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

WAYS = ("truncate", "head_tail", "windows", "memory")
# Parts of the test documents, from short to long, of equal size.
NUM_PARTS = 3

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "JSON lines, TSV or CSV to train on.", required=True)
flags.DEFINE_string("test", None, "The same to test on. [the last quarter of --data]")
flags.DEFINE_string("text_column", "text", "Column or key of the documents.")
flags.DEFINE_string("label_column", "label", "Column or key of the classes.")
fine_tuning.define_flags("runs/long_documents", batch_size=8, rows="Documents")
flags.DEFINE_list("long_document", list(WAYS), f"Some of {', '.join(WAYS)}.")
flags.DEFINE_integer(
    "sequence_length", 256, "Tokens that truncate and head_tail keep.", lower_bound=3
)
flags.DEFINE_integer(
    "segment_length", 128, "Tokens of a segment of memory, and of a window.", lower_bound=1
)
flags.DEFINE_integer(
    "memory_length", 128, "Tokens before a segment that each layer remembers.", lower_bound=1
)
flags.DEFINE_integer(
    "gradient_segments", 2, "Last segments of memory that are trained on.", lower_bound=1
)
flags.DEFINE_integer(
    "max_length", 10_240, "Tokens of windows and memory, at most: 20 pages.", lower_bound=1
)


def run(arguments):
    """Trains and tests a model for each way to read, and writes everything."""
    fine_tuning.no_arguments(arguments)
    unknown = set(FLAGS.long_document) - set(WAYS)
    if unknown or not FLAGS.long_document:
        given = ",".join(FLAGS.long_document)
        raise ValueError(f"--long_document must be some of {', '.join(WAYS)}. Received: {given}")
    train, test = read_documents()
    lengths = [len(text) for text in test["text"]]
    print(
        f"{len(train['text'])} documents to train on, {len(lengths)} to test, of {min(lengths):,}"
    )
    print(f"to {max(lengths):,} characters, half of them under {int(np.median(lengths)):,}")
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(FLAGS.output_dir) as folder:
        found, metrics = {"tfidf": baseline(train, test)}, {}
        for way in FLAGS.long_document:
            print(f"\n{way}", flush=True)
            model, found[way], metrics[way] = fine_tuning.repeat(
                lambda seed, way=way: train_and_test(seed, way, train, test)
            )
            save_and_load(model, folder / f"{way}.keras", test["text"], found[way])
        report(folder, test, found, metrics)
    fine_tuning.print_written()


# === Documents ===


def read_documents():
    """Returns the documents to train on and those to test, dicts of `text` and `label`."""
    rows = read(FLAGS.data)
    parts = (rows, read(FLAGS.test)) if FLAGS.test else fine_tuning.split_by(rows, "text")
    return fine_tuning.draw(*parts)


def read(path):
    columns = {"text": FLAGS.text_column, "label": FLAGS.label_column}
    is_table = pathlib.Path(path).suffix.lower() in (".tsv", ".csv")
    rows = (read_table if is_table else read_json_lines)(path, columns)
    return {"text": rows["text"], "label": list(map(str, rows["label"]))}


# === The models ===


def train_and_test(seed, way, train, test):
    """Returns a trained model, its classes of the test documents, and how good and fast it is."""
    names = sorted(set(train["label"]))
    whole = way in ("windows", "memory")
    model = fine_tuning.load_model(
        XLNetTextClassifier,
        seed,
        narrow={"pooling": "mean"},
        num_classes=len(names),
        class_names=names,
        long_document=way,
        segment_length=FLAGS.segment_length,
        gradient_segments=FLAGS.gradient_segments,
        memory_length=FLAGS.memory_length if way == "memory" else None,
        sequence_length=FLAGS.max_length if whole else FLAGS.sequence_length,
    )
    labels = np.array([names.index(label) for label in train["label"]])
    start = time.perf_counter()
    model = fine_tuning.fit(model, train["text"], labels, len(labels), epochs=2, learning_rate=5e-4)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    found = classes(model, test["text"])
    metrics = {
        "accuracy": accuracy_score(test["label"], found),
        "training_seconds": seconds,
        "test_seconds": time.perf_counter() - start,
    }
    return model, found, metrics


def classes(model, texts):
    """Returns the names of the classes of documents."""
    outputs = model.predict(list(texts), verbose=0)
    return [model.class_names[i] for i in outputs.argmax(axis=1)]


def save_and_load(model, path, texts, found):
    """Saves a model, and raises `RuntimeError` unless the loaded one finds the same."""
    model.save(path)
    if classes(keras.saving.load_model(path), texts) != found:
        raise RuntimeError(f"{path.name}: the model finds other classes after loading")
    print(f"{path.name}, loaded again, finds the same classes")


def baseline(train, test):
    """Returns the classes that tuned TF-IDF with a linear model finds."""
    texts, test_texts = (np.array(part["text"], object) for part in (train, test))
    return tfidf.predict_names(texts, train["label"], test_texts, accuracy_score, FLAGS.seed)


# === Results ===


def report(folder, test, found, metrics):
    """Prints the table, and writes `metrics.json`, `predictions.tsv` and `accuracy.png`."""
    lengths = np.array([len(text) for text in test["text"]])
    parts = np.array_split(np.argsort(lengths, kind="stable"), NUM_PARTS)
    labels = np.array(test["label"])
    rows = {
        name: [float(np.mean((np.array(classes) == labels)[part])) for part in parts]
        for name, classes in found.items()
    }
    ranges = [f"{lengths[part].min():,} to {lengths[part].max():,}" for part in parts]
    print(f"\nAccuracy in percent, by characters{'':>5}all" + "".join(f"{r:>18}" for r in ranges))
    totals = {name: accuracy_score(labels, classes) for name, classes in found.items()}
    for name, values in rows.items():
        cells = "".join(f"{100 * value:18.1f}" for value in values)
        print(f"{name:<37}{100 * totals[name]:5.1f}{cells}")
    for name, runs in metrics.items():
        first = runs["runs"][0]
        seconds = f"{first['training_seconds']:.0f} s to train, {first['test_seconds']:.0f} s"
        print(f"{name:<12} {seconds} to test")
    values = {"accuracy": totals, "by_length": rows, "characters": ranges, "all_runs": metrics}
    fine_tuning.write_json(folder / "metrics.json", values)
    lines = ["\t".join(["label", *found])]
    lines += map("\t".join, zip(test["label"], *found.values(), strict=True))
    (folder / "predictions.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    draw(folder / "accuracy.png", rows, ranges)


def draw(path, rows, ranges):
    """Draws the accuracies by length."""
    figure, axes = plt.subplots(figsize=(8, 4))
    width = 0.8 / len(rows)
    for i, (name, values) in enumerate(rows.items()):
        places = np.arange(NUM_PARTS) + (i - (len(rows) - 1) / 2) * width
        axes.bar(places, [100 * value for value in values], width, label=name)
    axes.set_xticks(np.arange(NUM_PARTS), ranges)
    axes.set(xlabel="characters of the document", ylabel="accuracy in percent", ylim=(0, 100))
    axes.legend(ncols=len(rows), loc="upper center", bbox_to_anchor=(0.5, 1.12), frameon=False)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    app.run(fine_tuning.main(run))

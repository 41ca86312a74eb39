"""Fine-tunes a pretrained XLNet on a table: classes or numbers of texts, or of pairs of texts.

    python research/tasks/glue.py

fine-tunes the preset xlnet_small_en on 1,000 questions that people asked a search engine, tells
which of 400 others are well-formed English, and compares it with tuned TF-IDF and a linear model.
It prints the metrics and the examples where model and labels differ most, and writes the model,
`metrics.json`, `predictions.tsv` and a plot to runs/glue. Preset and questions are in this
repository: it needs no network. Any table with a header will do, and the files of GLUE by the names
or the numbers (from 0, for files without a header) of their columns:

    python research/tasks/glue.py --data train.tsv --test dev.tsv --text sentence            # SST-2
    python research/tasks/glue.py --data sst2/train.tsv --test sst2/test.tsv --text 0 --label 1
    python research/tasks/glue.py --data raw_in_domain_train.tsv --test raw_in_domain_dev.tsv \\
        --text 3 --label 1 --metric mcc                                                # CoLA
    python research/tasks/glue.py --data msr_paraphrase_train.txt --test msr_paraphrase_test.txt \\
        --text "#1 String" --pair "#2 String" --label Quality --metric f1              # MRPC
    python research/tasks/glue.py --data rte/train.tsv --test rte/dev.tsv --text 0 --pair 1 --label 2
    python research/tasks/glue.py --data sts-train.csv --test sts-test.csv --delimiter tab \\
        --text 5 --pair 6 --label 4 --metric pearson                                   # STS-B
    python research/tasks/glue.py --label rating --metric spearman      # numbers of the same questions
    python research/tasks/glue.py --from_scratch       # what the pretraining is good for
    python research/tasks/glue.py --lora_rank 8        # or --freeze_backbone
    python research/tasks/glue.py --runs 3 --unfreeze_gradually --layer_decay 0.8

Source of the questions: Faruqui and Das 2018, "Identifying well-formed natural language questions",
https://github.com/google-research-datasets/query-wellformedness, licence CC BY-SA 4.0
(https://creativecommons.org/licenses/by-sa/4.0/). Changed: the first 1,000 rows of train.tsv and
400 of test.tsv, with a header and a column that is "yes" where four of five raters agreed.
"""

import collections
import functools
import pathlib

import fine_tuning
import keras
import matplotlib
import numpy as np
import tfidf
from absl import app, flags
from scipy import stats
from sklearn import metrics

from keras_xlnet.models import XLNetTextClassifier, XLNetTextRegressor
from keras_xlnet.preset_files import replace_files
from keras_xlnet.task_files import read_table

matplotlib.use("Agg")  # Draws without a display.
import matplotlib.pyplot as plt

DATA = pathlib.Path(__file__).parents[2] / "examples" / "data"
SAMPLE = DATA / "questions_sample.tsv", DATA / "questions_sample_test.tsv"
DELIMITERS = {"tab": "\t", "comma": ",", "auto": None}
CLASS_METRICS = {
    "accuracy": metrics.accuracy_score,
    "mcc": metrics.matthews_corrcoef,
    # Of the last class: of 0 and 1, or no and yes.
    "f1": functools.partial(metrics.f1_score, zero_division=0.0),
}
NUMBER_METRICS = {
    "pearson": lambda labels, found: stats.pearsonr(labels, found).statistic,
    "spearman": lambda labels, found: stats.spearmanr(labels, found).statistic,
}
NUM_SHOWN = 3

FLAGS = flags.FLAGS
flags.DEFINE_string("data", None, "TSV or CSV file to train on. [the sample]")
flags.DEFINE_string("test", None, "The same to test on. [the last quarter of --data]")
flags.DEFINE_string("text", "question", "Column of the texts: its name, or its number.")
flags.DEFINE_string("pair", None, "Column of the second texts of pairs.")
flags.DEFINE_string("label", "is_well_formed", "Column of the classes or numbers.")
flags.DEFINE_enum("delimiter", "auto", list(DELIMITERS), "What is between columns.")
flags.DEFINE_enum(
    "metric",
    "accuracy",
    [*CLASS_METRICS, *NUMBER_METRICS],
    "What counts. With pearson or spearman the labels are numbers.",
)
fine_tuning.define_flags("runs/glue", batch_size=32, rows="Examples")
flags.DEFINE_integer("sequence_length", 96, "Tokens that an example is cut to.", lower_bound=5)


def run(arguments):
    """Trains and tests a model, and writes everything."""
    fine_tuning.no_arguments(arguments)
    train, test = read_examples()
    print(f"{len(train['label'])} examples to train on, {len(test['label'])} to test")
    # Entered before the training: if the folder cannot be written, the run fails at once.
    with replace_files(FLAGS.output_dir) as folder:
        model, outputs, all_runs = fine_tuning.repeat(
            lambda seed: train_and_test(seed, train, test)
        )
        found = decide(model, outputs)
        report(folder, train, test, found, all_runs)
        show(test, model, outputs)
        write_predictions(folder / "predictions.tsv", test, found)
        draw(folder / "predictions.png", model, test, found)
        save_and_load(model, folder / "model.keras", test, outputs)
    fine_tuning.print_written()


# === Examples ===


def read_examples():
    """Returns the examples to train on and those to test, dicts of `text`, `pair` and `label`."""
    train = read(FLAGS.data or SAMPLE[0])
    if FLAGS.data and not FLAGS.test:
        train, test = fine_tuning.split_by(train, "text")
    else:
        # A class that no example shows cannot be learned.
        known = None if is_regression() else sorted(set(train["label"]))
        test = read(FLAGS.test or SAMPLE[1], known)
    if not is_regression() and len(set(train["label"])) < 2:
        raise ValueError(f"--label: all examples to train on are {train['label'][0]!r}")
    return fine_tuning.draw(train, test)


def read(path, class_names=None):
    columns = {"text": FLAGS.text, "pair": FLAGS.pair, "label": FLAGS.label}
    columns = {name: source for name, source in columns.items() if source is not None}
    has_header = not all(source.isdecimal() for source in columns.values())
    return read_table(
        path,
        columns if has_header else {name: int(source) for name, source in columns.items()},
        delimiter=DELIMITERS[FLAGS.delimiter],
        has_header=has_header,
        class_names=class_names,
        numeric=["label"] if is_regression() else [],
    )


def is_regression():
    return FLAGS.metric in NUMBER_METRICS


def inputs(examples):
    """The inputs of the model."""
    return {name: examples[name] for name in ("text", "pair") if name in examples}


# === The model ===


def train_and_test(seed, train, test):
    """Returns a trained model, its outputs for the test examples, and their metrics."""
    if is_regression():
        model_class, arguments = XLNetTextRegressor, {}
    else:
        names = sorted(set(train["label"]))
        model_class = XLNetTextClassifier
        arguments = {"num_classes": len(names), "class_names": names}
    model = fine_tuning.load_model(
        model_class,
        seed,
        # Of the released models, <cls> sums up a text or a pair. With less pretraining the mean of
        # the tokens learns faster, and pairs are better compared token by token.
        narrow={"pooling": "pair" if FLAGS.pair else "mean"},
        sequence_length=FLAGS.sequence_length,
        **arguments,
    )
    labels, mean, scale = train["label"], 0.0, 1.0
    if is_regression():
        mean, scale = float(np.mean(labels)), float(np.std(labels)) or 1.0
        labels = (np.array(labels) - mean) / scale
    model = fine_tuning.fit(
        model,
        inputs(train),
        labels,
        len(labels),
        epochs=4,
        learning_rate=1e-3 if FLAGS.pair else 5e-4,
    )
    if is_regression():
        rescale(model.logits_dense, mean, scale)
    outputs = model.predict(inputs(test), verbose=0)
    return model, outputs, evaluate(test["label"], decide(model, outputs))


def rescale(dense, mean, scale):
    """Lets a dense layer give `mean + scale * output`: it learned numbers of mean 0."""
    dense.kernel.assign(dense.kernel * scale)
    dense.bias.assign(dense.bias * scale + mean)


def decide(model, outputs):
    """Returns the names of the classes for the outputs of a model, or its numbers."""
    if is_regression():
        return outputs[:, 0].tolist()
    return [model.class_names[i] for i in outputs.argmax(axis=1)]


def save_and_load(model, path, test, outputs):
    """Saves a model, and raises `RuntimeError` unless the loaded one gives the same outputs."""
    model.save(path)
    again = keras.saving.load_model(path).predict(inputs(test), verbose=0)
    if not np.allclose(again, outputs, atol=1e-4):
        raise RuntimeError(f"{path.name}: the model gives other outputs after loading")
    print(f"\n{path.name}, loaded again, gives the same outputs")


# === Results ===


def evaluate(labels, found):
    """Returns all metrics by name."""
    if is_regression():
        # Undefined for numbers that are all equal.
        varies = len(set(found)) > 1
        return {n: float(f(labels, found)) if varies else 0.0 for n, f in NUMBER_METRICS.items()}
    # A metric of two classes is that of the last one.
    names = sorted({*labels, *found})
    as_ints = [[names.index(name) for name in column] for column in (labels, found)]
    is_binary = len(names) == 2
    return {
        name: float(function(*as_ints))
        for name, function in CLASS_METRICS.items()
        if is_binary or name != "f1"
    }


def baselines(train, test):
    """Returns what tuned TF-IDF with a linear model, and what no model at all finds."""
    texts = [
        np.stack([np.array(c, object) for c in inputs(rows).values()], 1) for rows in (train, test)
    ]
    if FLAGS.pair is None:
        texts = [column[:, 0] for column in texts]
    if is_regression():
        labels = np.array(train["label"], "float32")
        fitted = tfidf.fit_tuned(texts[0], labels, NUMBER_METRICS[FLAGS.metric], FLAGS.seed)
        return {"tfidf": fitted.predict(texts[1]).tolist()}
    score = CLASS_METRICS[FLAGS.metric]
    (most_frequent, _), *_ = collections.Counter(train["label"]).most_common()
    return {
        "tfidf": tfidf.predict_names(texts[0], train["label"], texts[1], score, FLAGS.seed),
        "most_frequent": [most_frequent] * len(test["label"]),
    }


def report(folder, train, test, found, all_runs):
    """Prints the metrics of the model and of the baselines, and writes metrics.json."""
    name = fine_tuning.model_name()
    rows = {name: found, **baselines(train, test)}
    rows = {key: evaluate(test["label"], row) for key, row in rows.items()}
    print(f"\n{'':20}" + "".join(f"{key:>10}" for key in rows[name]))
    for key, row in rows.items():
        print(f"{key:20}" + "".join(f"{value:10.4f}" for value in row.values()))
    values = {
        "examples": {"train": len(train["label"]), "test": len(test["label"])},
        "model": rows.pop(name),
        "baselines": rows,
        "all_runs": all_runs,
    }
    fine_tuning.write_json(folder / "metrics.json", values)


def show(test, model, outputs):
    """Prints the examples where the model is most sure of what their labels do not say."""
    labels = test["label"]
    if is_regression():
        errors = np.abs(outputs[:, 0] - labels)
    else:
        columns = [model.class_names.index(label) for label in labels]
        errors = 1 - outputs[np.arange(len(labels)), columns]
    print("\nWhere model and labels differ most:")
    for row in np.argsort(-errors, kind="stable")[:NUM_SHOWN]:
        found = decide(model, outputs[row : row + 1])[0]
        found = found if isinstance(found, str) else f"{found:.2f}"
        print(f"  label {labels[row]}, model {found}: {test['text'][row]}")
        if "pair" in test:
            print(f"      {test['pair'][row]}")


def write_predictions(path, test, found):
    lines = ["label\tprediction"]
    lines += [f"{label}\t{value}" for label, value in zip(test["label"], found, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw(path, model, test, found):
    """Draws predictions against labels: a confusion matrix, or points."""
    figure, axes = plt.subplots(figsize=(5, 4))
    if is_regression():
        axes.scatter(test["label"], found, s=8, alpha=0.5)
        axes.set(xlabel="label", ylabel="prediction")
    else:
        metrics.ConfusionMatrixDisplay.from_predictions(
            test["label"], found, labels=model.class_names, ax=axes, colorbar=False
        )
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    app.run(fine_tuning.main(run))

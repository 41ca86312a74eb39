"""The tasks of results.py: their recipes, their files, and what is trained and tested on."""

import dataclasses
import functools
import pathlib

import numpy as np
from scipy import stats
from sklearn import metrics
from sklearn.model_selection import StratifiedKFold, train_test_split

from keras_xlnet.task_files import read_table

_MESSAGES = pathlib.Path(__file__).parents[2] / "examples" / "data" / "SMSSpamCollection"
FOLDS = 5
FEW_SHOT = (50, 100, 250, 500, 1000, "all")
ONE_THOUSAND = (1000, "all")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a model is fine-tuned on a task. All else is the default of the library.

    Args:
        sequence_length: Int, tokens that an example is cut to.
        epochs: Int, passes over the training examples.
        fewest_steps: Int, more epochs are trained if there are fewer steps than this.
        few: Int, the number of examples below which the head is fitted first.
    """

    sequence_length: int
    epochs: int = 4
    fewest_steps: int = 60
    few: int = 500

    def epochs_of(self, examples):
        """Returns the number of epochs for a number of examples, in batches of 32."""
        return max(self.epochs, -(-self.fewest_steps // -(-examples // 32)))

    def head_first(self, examples):
        """Returns whether the head is fitted before all weights are trained."""
        return examples < self.few


# Of the examples, lengths cut three in a hundred at most: spam often ends with the number to call.
RECIPES = {
    "sms": Recipe(sequence_length=80),
    "sst2": Recipe(sequence_length=64),
    "cola": Recipe(sequence_length=32),
    "mrpc": Recipe(sequence_length=96),
    "rte": Recipe(sequence_length=208),
    "stsb": Recipe(sequence_length=96),
    "qwf": Recipe(sequence_length=32, epochs=3),
}


@dataclasses.dataclass(frozen=True)
class Examples:
    """Texts and labels.

    Args:
        texts: Object array of str, `(examples,)`, or `(examples, 2)` for pairs.
        labels: Array `(examples,)`: int32 for classes, float32 for numbers.
    """

    texts: np.ndarray
    labels: np.ndarray

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, rows):
        return Examples(self.texts[rows], self.labels[rows])

    @property
    def is_classes(self):
        return np.issubdtype(self.labels.dtype, np.integer)

    @property
    def is_pairs(self):
        return self.texts.ndim == 2


@dataclasses.dataclass(frozen=True)
class Data:
    """The examples of a task.

    Args:
        train: `Examples` to train on.
        validation: `Examples` to choose recipes with. `None`: a fifth of `train` is held out.
        test: `Examples` to test on. `None`: `train` is divided into folds.
    """

    train: Examples
    validation: Examples | None
    test: Examples | None

    def parts(self, seed, split):
        """Returns the examples to train on and those to test on.

        Args:
            seed: Int. If there is no test part, the seeds 0 to 4 are the folds of a
                cross-validation, 5 to 9 those of another one.
            split: `"test"`, or `"validation"` to choose recipes without the test examples.

        Raises:
            ValueError: If every example is a test example of some fold, and `split` is not
                `"test"`.
        """
        if self.test is None:
            if split != "test":
                raise ValueError("every example is tested in some fold")
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed // FOLDS)
            train, test = list(folds.split(self.train.texts, self.train.labels))[seed % FOLDS]
            return self.train[train], self.train[test]
        if split == "test":
            return self.train, self.test
        if self.validation is not None:
            return self.train, self.validation
        train, held_out = _divide(self.train, 0.2, seed=0)
        return self.train[train], self.train[held_out]


def draw_subset(examples, size, seed):
    """Returns some of the examples: the same for the same seed, with the shares of the classes.

    Args:
        examples: `Examples`.
        size: Int, or `"all"`.
        seed: Int.

    Returns:
        `Examples`, or `None` if there are not more than `size`.
    """
    if size == "all":
        return examples
    if size >= len(examples):
        return None
    return examples[_divide(examples, size, seed)[1]]


def _divide(examples, size, seed):
    """Two arrays of rows, the second with `size` rows, or with this share of the rows."""
    return train_test_split(
        np.arange(len(examples)),
        test_size=size,
        random_state=seed,
        stratify=examples.labels if examples.is_classes else None,
    )


# === Metrics, in percent ===


def _percent(function, **arguments):
    return lambda labels, predictions: 100 * float(function(labels, predictions, **arguments))


def _correlation(function):
    def correlate(labels, predictions):
        # Undefined for predictions that are all equal.
        return 100 * float(function(labels, predictions)[0]) if np.ptp(predictions) else 0.0

    return correlate


METRICS = {
    "accuracy": _percent(metrics.accuracy_score),
    "F1": _percent(metrics.f1_score, zero_division=0),
    "MCC": _percent(metrics.matthews_corrcoef),
    "Pearson": _correlation(stats.pearsonr),
    "Spearman": _correlation(stats.spearmanr),
}


# === Files ===


def _read_sms(folder):
    path = folder / "sms_spam_collection" / "SMSSpamCollection" if folder else _MESSAGES
    table = read_table(
        path if path.exists() else _MESSAGES, {"text": 1, "label": 0}, has_header=False
    )
    labels = np.array([label == "spam" for label in table["label"]], "int32")
    return Data(Examples(np.array(table["text"], object), labels), None, None)


def _read_sst2(folder):
    read = functools.partial(_read_rows, texts=(0,), label=1)
    return _of_files(folder, "sst2", read, "train.tsv", "dev.tsv", "test.tsv")


def _read_cola(folder):
    # Its test labels are not public: the in-domain part that is called dev is what is tested on.
    read = functools.partial(_read_rows, texts=(3,), label=1)
    return _of_files(folder, "cola", read, "raw_in_domain_train.tsv", None, "raw_in_domain_dev.tsv")


def _read_mrpc(folder):
    texts = "#1 String", "#2 String"
    read = functools.partial(_read_rows, texts=texts, label="Quality", header=True)
    names = "msr_paraphrase_train.txt", None, "msr_paraphrase_test.txt"
    return _of_files(folder, "mrpc", read, *names)


def _read_rte(folder):
    # As CoLA. 1 is "not entailment".
    texts = "sentence1", "sentence2"
    read = functools.partial(_read_rows, texts=texts, label="label", header=True)
    return _of_files(folder, "rte", read, "train.tsv", None, "dev.tsv")


def _read_stsb(folder):
    read = functools.partial(_read_rows, texts=(5, 6), label=4, dtype="float32")
    return _of_files(folder, "stsb", read, "sts-train.csv", "sts-dev.csv", "sts-test.csv")


def _read_qwf(folder):
    # Well-formed is what four of five raters call so, as in the paper.
    def read(path):
        ratings = _read_rows(path, texts=(0,), label=1, dtype="float32")
        return Examples(ratings.texts, (ratings.labels > 0.79).astype("int32"))

    names = "train.tsv", "dev.tsv", "test.tsv"
    return _of_files(folder, "query_wellformedness", read, *names)


def _of_files(folder, task, read, *names):
    if folder is None:
        raise FileNotFoundError("no --data")
    paths = [name and folder / "tasks" / task / name for name in names]
    return Data(*(path and read(path) for path in paths))


def _read_rows(path, texts, label, header=False, dtype="int32"):
    """Reads columns of a file, by names in its header or by indices, divided by tabs."""
    columns = {"label": label, **{f"text {i}": column for i, column in enumerate(texts)}}
    table = read_table(path, columns, delimiter="\t", has_header=header, numeric=["label"])
    labels = np.array(table.pop("label"), dtype)
    columns = [np.array(column, dtype=object) for column in table.values()]
    return Examples(columns[0] if len(columns) == 1 else np.stack(columns, axis=1), labels)


# === The tasks ===


@dataclasses.dataclass(frozen=True)
class Task:
    """A task.

    Args:
        title: String, what the table calls it.
        read: Function from the folder of the data to `Data`.
        metrics: Names in `METRICS`. The baseline is tuned for the first.
        sizes: Numbers of training examples.
        published: Figures of BERT-Mini and BERT-Small by name of a metric (Turc et al. 2019).
    """

    title: str
    read: callable
    metrics: tuple
    sizes: tuple
    published: dict = dataclasses.field(default_factory=dict)


TASKS = {
    "sms": Task("SMS spam", _read_sms, ("F1", "MCC"), FEW_SHOT),
    "sst2": Task("SST-2", _read_sst2, ("accuracy",), FEW_SHOT, {"accuracy": (85.9, 89.7)}),
    "cola": Task("CoLA", _read_cola, ("MCC",), ONE_THOUSAND, {"MCC": (0.0, 27.8)}),
    "mrpc": Task(
        "MRPC",
        _read_mrpc,
        ("F1", "accuracy"),
        ONE_THOUSAND,
        {"F1": (81.1, 83.4), "accuracy": (71.8, 76.2)},
    ),
    "rte": Task("RTE", _read_rte, ("accuracy",), ONE_THOUSAND, {"accuracy": (57.9, 61.8)}),
    "stsb": Task(
        "STS-B",
        _read_stsb,
        ("Pearson", "Spearman"),
        ONE_THOUSAND,
        {"Pearson": (75.4, 78.8), "Spearman": (73.3, 77.0)},
    ),
    "qwf": Task("query well-formedness", _read_qwf, ("accuracy",), ONE_THOUSAND),
}


def read_tasks(names, folder):
    """Reads the data of tasks, and says which have no files.

    Args:
        names: Names in `TASKS`.
        folder: Path of the folder with `tasks/` and `sms_spam_collection/`, or `None`.

    Returns:
        A dict of `Data` by name, and a dict of what is missing by name.
    """
    found, missing = {}, {}
    for name in names:
        try:
            found[name] = TASKS[name].read(pathlib.Path(folder) if folder else None)
        except FileNotFoundError as error:
            missing[name] = str(error)
    return found, missing

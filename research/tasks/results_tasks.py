"""The tasks of results.py: their recipes, their files, and their training and test examples."""

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
    """How a model is fine-tuned on a task. Everything else is the default of the library.

    Args:
        sequence_length: Int, tokens that an example is cut to.
        epochs: Int, passes over the training examples.
        fewest_steps: Int, the minimum number of steps, reached by more epochs.
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
        """Returns whether `fit` begins with the head."""
        return examples < self.few


# The lengths cut at most 3 % of the examples: spam often ends with the number to call.
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
    """Returns a stratified subset of the examples, the same for the same seed.

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
    """Returns two arrays of rows; the second has `size` rows, or this share of the rows."""
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
        # Undefined if all predictions are equal.
        return 100 * float(function(labels, predictions)[0]) if np.ptp(predictions) else 0.0

    return correlate


METRICS = {
    "accuracy": _percent(metrics.accuracy_score),
    "F1": _percent(metrics.f1_score, zero_division=0),
    "MCC": _percent(metrics.matthews_corrcoef),
    "Pearson": _correlation(stats.pearsonr),
    "Spearman": _correlation(stats.spearmanr),
}


# === The tasks ===


@dataclasses.dataclass(frozen=True)
class Task:
    """A task.

    Args:
        title: String, its name in the table.
        metrics: Names in `METRICS`. The baseline is tuned for the first.
        sizes: Numbers of training examples.
        files: Paths of the files to train on, to choose recipes with, and to test on, in the folder
            of the data. Without the second, a part of the first is held out; without the third, the
            first is divided into folds.
        texts, label: Columns, by names in the header of the files or by indices.
        labels: Function from the column of labels to an array of int32 for classes, or of float32.
        published: Figures of BERT-Mini and BERT-Small by metric (Turc et al. 2019).
    """

    title: str
    metrics: tuple
    sizes: tuple
    files: tuple
    texts: tuple
    label: int | str
    labels: callable = functools.partial(np.array, dtype="int32")
    published: dict = dataclasses.field(default_factory=dict)

    def read(self, folder):
        """Returns the `Data` in a folder."""
        return Data(*(file and self.read_file(folder / file) for file in self.files))

    def read_file(self, path):
        columns = {"label": self.label, **{f"text {column}": column for column in self.texts}}
        has_header, numeric = isinstance(self.label, str), ["label"] if self.files[2] else []
        arguments = {"delimiter": "\t", "has_header": has_header, "numeric": numeric}
        table = read_table(path, columns, **arguments)
        labels = self.labels(table.pop("label"))
        columns = [np.array(column, dtype=object) for column in table.values()]
        return Examples(columns[0] if len(columns) == 1 else np.stack(columns, axis=1), labels)


def _files(task, *names):
    return tuple(name and f"tasks/{task}/{name}" for name in names)


TASKS = {
    "sms": Task(
        "SMS spam", ("F1", "MCC"), FEW_SHOT, ("sms_spam_collection/SMSSpamCollection", None, None),
        (1,), 0, lambda labels: np.array(np.array(labels) == "spam", "int32"),
    ),
    "sst2": Task(
        "SST-2", ("accuracy",), FEW_SHOT, _files("sst2", "train.tsv", "dev.tsv", "test.tsv"),
        (0,), 1, published={"accuracy": (85.9, 89.7)},
    ),
    # The test labels of CoLA and RTE are not public: the tests use the development part.
    "cola": Task(
        "CoLA", ("MCC",), ONE_THOUSAND,
        _files("cola", "raw_in_domain_train.tsv", None, "raw_in_domain_dev.tsv"),
        (3,), 1, published={"MCC": (0.0, 27.8)},
    ),
    "mrpc": Task(
        "MRPC", ("F1", "accuracy"), ONE_THOUSAND,
        _files("mrpc", "msr_paraphrase_train.txt", None, "msr_paraphrase_test.txt"),
        ("#1 String", "#2 String"), "Quality",
        published={"F1": (81.1, 83.4), "accuracy": (71.8, 76.2)},
    ),
    # 1 is "not entailment".
    "rte": Task(
        "RTE", ("accuracy",), ONE_THOUSAND, _files("rte", "train.tsv", None, "dev.tsv"),
        ("sentence1", "sentence2"), "label", published={"accuracy": (57.9, 61.8)},
    ),
    "stsb": Task(
        "STS-B", ("Pearson", "Spearman"), ONE_THOUSAND,
        _files("stsb", "sts-train.csv", "sts-dev.csv", "sts-test.csv"), (5, 6), 4,
        functools.partial(np.array, dtype="float32"),
        {"Pearson": (75.4, 78.8), "Spearman": (73.3, 77.0)},
    ),
    # A query is well-formed if four of five raters say so, as in the paper.
    "qwf": Task(
        "query well-formedness", ("accuracy",), ONE_THOUSAND,
        _files("query_wellformedness", "train.tsv", "dev.tsv", "test.tsv"), (0,), 1,
        lambda ratings: (np.array(ratings) > 0.79).astype("int32"),
    ),
}  # fmt: skip


def read_tasks(names, folder):
    """Reads the data of tasks, and finds the tasks without files.

    Args:
        names: Names in `TASKS`.
        folder: Path of the folder with `tasks/` and `sms_spam_collection/`, or `None`.

    Returns:
        A dict of `Data` by name, and a dict of reasons why others are missing by name.
    """
    found, missing = {}, {}
    for name in names:
        try:
            task, is_here = TASKS[name], folder and pathlib.Path(folder) / TASKS[name].files[0]
            if name == "sms" and not (is_here and is_here.exists()):
                found[name] = Data(task.read_file(_MESSAGES), None, None)
            elif folder is None:
                missing[name] = "no --data"
            else:
                found[name] = TASKS[name].read(pathlib.Path(folder))
        except FileNotFoundError as error:
            missing[name] = str(error)
    return found, missing

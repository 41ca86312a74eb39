"""Every example is read once, no test example is trained on, and subsets are the same for all."""

import sys

import numpy as np
import pytest

from tests.examples import RESEARCH

sys.path.append(str(RESEARCH / "tasks"))
import results_tasks
from results_tasks import Data, Examples, Recipe, draw_subset, read_tasks


def examples(count, positive=4, prefix="text"):
    labels = (np.arange(count) % positive == 0).astype("int32")
    return Examples(np.array([f"{prefix} {i}" for i in range(count)], dtype=object), labels)


def write(folder, name, lines):
    path = folder / "tasks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("\n".join(lines).encode() + b"\n")


@pytest.fixture
def folder(tmp_path):
    """Files of each task in the format of its authors, with the traps of the real ones."""
    for number, part in enumerate(("train", "dev", "test")):
        write(tmp_path, f"sst2/{part}.tsv", [f'a "quote {part}\t1', "dull\t0"])
        lines = [f"How is {part} ?\t0.8", "how\t0.6", "Who ?\t1.0"]
        write(tmp_path, f"query_wellformedness/{part}.tsv", lines)
        # Some lines of the original have the sources of the texts in two more columns.
        lines = [f'g\tf\t2012\t{number}\t3.8\tA "flute.\tA flute.', "g\tf\ty\t1\t0\ta\tb\tx\ty"]
        write(tmp_path, f"stsb/sts-{part}.csv", lines)
        write(tmp_path, f"cola/raw_in_domain_{part}.tsv", ["gj\t1\t\tIt is.", "gj\t0\t*\tIs it is"])
        write(tmp_path, f"rte/{part}.tsv", ["sentence1\tsentence2\tlabel\tidx", "T.\tH.\t1\t0"])
        header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
        write(tmp_path, f"mrpc/msr_paraphrase_{part}.txt", [header, "1\t7\t8\tHe.\tHe did."])
    return tmp_path


def test_formats(folder):
    data, missing = read_tasks(results_tasks.TASKS, folder)
    assert not missing and list(data) == list(results_tasks.TASKS)
    for name, texts, labels in (
        ("sst2", ['a "quote test', "dull"], [1, 0]),
        ("cola", ["It is.", "Is it is"], [1, 0]),
        ("mrpc", [["He.", "He did."]], [1]),
        ("rte", [["T.", "H."]], [1]),
        ("stsb", [['A "flute.', "A flute."], ["a", "b"]], [3.8, 0]),
        ("qwf", ["How is test ?", "how", "Who ?"], [1, 0, 1]),
    ):
        assert data[name].test.texts.tolist() == texts
        np.testing.assert_allclose(data[name].test.labels, labels)
        assert data[name].test.is_classes == (name != "stsb")
    assert data["sst2"].validation.texts[0] == 'a "quote dev'
    assert data["cola"].validation is None and data["rte"].validation is None
    assert len(data["sms"].train) == 5574 and data["sms"].train.labels.sum() == 747


def test_tasks_without_files_are_named(tmp_path):
    data, missing = read_tasks(["sst2", "sms"], tmp_path)
    assert list(data) == ["sms"] and list(missing) == ["sst2"]
    assert str(tmp_path) in missing["sst2"]
    assert read_tasks(["rte"], None)[1] == {"rte": "no --data"}


def test_five_seeds_are_a_cross_validation():
    data = Data(examples(40), None, None)
    tested = []
    for seed in range(5):
        train, test = data.parts(seed, "test")
        assert set(train.texts) | set(test.texts) == set(data.train.texts)
        assert not set(train.texts) & set(test.texts) and test.labels.sum() == 2
        tested += list(test.texts)
    assert sorted(tested) == sorted(data.train.texts)
    again = {seed: set(data.parts(seed, "test")[1].texts) for seed in (0, 5)}
    assert again[0] != again[5]
    with pytest.raises(ValueError, match="every example is tested in some fold"):
        data.parts(0, "validation")


def test_recipes_are_chosen_without_the_test_examples():
    train, validation, test = examples(40), examples(8, prefix="dev"), examples(8, prefix="test")
    with_validation = Data(train, validation, test)
    assert with_validation.parts(3, "test") == (train, test)
    assert with_validation.parts(3, "validation") == (train, validation)
    rest, held_out = Data(train, None, test).parts(3, "validation")
    assert sorted([*rest.texts, *held_out.texts]) == sorted(train.texts)
    assert len(held_out) == 8 and held_out.labels.sum() == 2


def test_subsets():
    train = examples(100)
    subset = draw_subset(train, 20, seed=1)
    assert len(set(subset.texts)) == 20 and subset.labels.sum() == 5
    assert [int(t.split()[1]) % 4 == 0 for t in subset.texts] == subset.labels.tolist()
    np.testing.assert_array_equal(subset.texts, draw_subset(train, 20, seed=1).texts)
    assert set(subset.texts) != set(draw_subset(train, 20, seed=2).texts)
    assert draw_subset(train, "all", seed=1) is train
    assert draw_subset(train, 100, seed=1) is None
    numbers = Examples(train.texts, np.linspace(0, 5, 100, dtype="float32"))
    assert len(draw_subset(numbers, 20, seed=1)) == 20


def test_few_examples_have_more_epochs_and_the_head_first():
    recipe = Recipe(32, epochs=4, fewest_steps=60, few=500)
    assert [recipe.epochs_of(examples) for examples in (50, 250, 481, 1000)] == [30, 8, 4, 4]
    assert recipe.head_first(499) and not recipe.head_first(500)
    assert set(results_tasks.RECIPES) == set(results_tasks.TASKS)


def test_metrics_are_percentages():
    labels, predictions = np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0])
    found = {name: metric(labels, predictions) for name, metric in results_tasks.METRICS.items()}
    mcc = 100 * 2 / np.sqrt(1 * 2 * 2 * 3)
    expected = {"accuracy": 75, "F1": 100 * 2 / 3, "MCC": mcc, "Pearson": mcc, "Spearman": mcc}
    assert found == pytest.approx(expected)
    monotonic = results_tasks.METRICS["Spearman"](np.array([1.0, 2, 9]), np.array([1.0, 5, 6]))
    assert monotonic == pytest.approx(100)
    assert results_tasks.METRICS["Pearson"](labels, np.ones(4)) == 0

"""The table of tasks: what it says is found in the models and in the files."""

import keras
import pytest

from keras_xlnet.checkpoints.huggingface_config import SIMPLE_QUESTION_ANSWERING
from keras_xlnet.checkpoints.tasks import (
    TASKS,
    get_task,
    task_of_config,
    task_of_model,
    task_of_variables,
)
from tests.checkpoints.new_models import new_model

NUM_LABELS = {"text_regressor": 1}


def test_models_that_take_text_are_found_by_their_arguments():
    takes_text = sorted(name for name, task in TASKS.items() if task.takes_text)
    assert takes_text == [
        "multi_task",
        "multiple_choice",
        "question_answering",
        "ranker",
        "text_classifier",
        "text_embedder",
        "text_regressor",
        "token_classifier",
    ]


@pytest.mark.parametrize("task", TASKS)
def test_sizes_and_configs_are_arguments(task):
    entry = TASKS[task]
    assert set(entry.sizes) <= entry.arguments
    rows = entry.rows(new_model(task))
    assert set(entry.sizes.values()) <= {row.path for row in rows}
    for group in entry.groups:
        read = group.read({"start_n_top": 3, "end_n_top": 2}, "config.json")
        assert set(read) <= entry.arguments


@pytest.mark.parametrize("task", [name for name, task in TASKS.items() if task.sign])
def test_signs_are_names_of_own_weights(task):
    assert TASKS[task].sign in [row.original for row in TASKS[task].rows(new_model(task))]
    variables = ["model/lm_loss/bias", TASKS[task].sign.replace("{task_name}", "imdb")]
    assert task_of_variables(["global_step", *variables]) == task


def test_an_encoder_has_no_sign():
    assert task_of_variables(["model/transformer/word_embedding/lookup_table"]) is None


# An encoder may be that of an embedder: its directory has a `modules.json`.
@pytest.mark.parametrize("task", sorted({*TASKS} - {"text_embedder"}))
def test_architectures_are_found(task):
    for architecture in TASKS[task].architectures:
        config = {"architectures": [architecture], "num_labels": NUM_LABELS.get(task, 2)}
        assert task_of_config(config) == task


def test_other_architectures():
    assert task_of_config({"architectures": [SIMPLE_QUESTION_ANSWERING]}) == "token_classifier"
    for architectures in (["XLNetModel"], ["BertForMaskedLM"], [], [3]):
        assert task_of_config({"architectures": architectures}) is None
    assert task_of_config({}) is None


def test_a_subclass_is_of_the_nearest_task_that_is_declared(monkeypatch):
    class Same(TASKS["text_classifier"].model):
        pass

    class Other(Same):
        task = "other"

    objects = keras.saving.get_custom_objects()
    for cls in (Same, Other):
        monkeypatch.setitem(objects, cls.__name__, cls)
    backbone = new_model(None)
    assert [task_of_model(cls(backbone, 2)) for cls in (Same, Other)] == [
        "text_classifier",
        "other",
    ]
    assert TASKS["text_classifier"].model is Same.__mro__[1] and TASKS["other"].model is Other


def test_a_model_that_is_not_in_the_table():
    with pytest.raises(ValueError, match="must be an XLNetBackbone or a task model.*Sequential"):
        task_of_model(keras.Sequential())
    with pytest.raises(ValueError, match="`task` must be one of"):
        get_task("translation")

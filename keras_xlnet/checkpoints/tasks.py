"""Which model a task means, and what of it may be chosen when a checkpoint is loaded."""

import inspect
import math

from keras_xlnet import models
from keras_xlnet.layers.arguments import check_choice, check_positive_int
from keras_xlnet.models.vocabulary import check_vocabulary

TASKS = {
    "permutation_lm": models.XLNetPermutationLM,
    "text_classifier": models.XLNetTextClassifier,
    "text_regressor": models.XLNetTextRegressor,
    "token_classifier": models.XLNetTokenClassifier,
    "multiple_choice": models.XLNetMultipleChoice,
    "question_answering": models.XLNetQuestionAnswering,
}

_SMALL = 10**6  # parameters


def task_of(model):
    """The name of the task that `model` is for, `None` for a backbone.

    Raises:
        ValueError: If it is no model of this package.
    """
    if isinstance(model, models.XLNetBackbone):
        return None
    for task, task_class in TASKS.items():
        if isinstance(model, task_class):
            return task
    raise ValueError(
        "`model` must be an XLNetBackbone or a task model made of one. Received: "
        f"{type(model).__name__}"
    )


def backbone_of(model):
    """The backbone of a task model; a backbone is its own."""
    return getattr(model, "backbone", model)


def tokenizer_to_save(model, tokenizer):
    """The tokenizer that goes with a model: the given one, or that of its preprocessor, or `None`.

    Raises:
        ValueError: If it has more ids than the model.
    """
    tokenizer = tokenizer or getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    if tokenizer is not None:
        check_vocabulary(tokenizer, model)
    return tokenizer


def check_task(task):
    """Raises `ValueError` if there is no such task."""
    check_choice("task", task, (None, *TASKS))


def build(task, fixed, overrides, head, defaults=None, *, config_file, files):
    """Builds a backbone, or the model of a task around one, with initial weights.

    Args:
        task: One of `TASKS`, or `None`.
        fixed: The arguments of the backbone that the checkpoint fixes.
        overrides: What the caller chooses: other arguments of the backbone, and of the task.
        head: The arguments of the task that the checkpoint suggests.
        defaults: The arguments of the backbone that the checkpoint suggests.
        config_file: Where these arguments come from.
        files: The checkpoint, as of `OpenCheckpoint`.

    Raises:
        ValueError: If an override is fixed by the checkpoint, no such argument exists, or the
            arguments make no model, or one that is far larger than the checkpoint.
    """
    of_backbone = _arguments(models.XLNetBackbone)
    of_task = _arguments(TASKS[task]) - {"backbone"} if task else set()
    allowed = (of_backbone - set(fixed)) | of_task
    refused = sorted(set(overrides) - allowed)
    if refused:
        raise ValueError(
            f"A checkpoint fixes, or a model does not know, {refused}. What can be chosen: "
            f"{sorted(allowed)}"
        )
    free = of_backbone - set(fixed)
    for_backbone = {key: value for key, value in overrides.items() if key in free}
    # Where both have the argument, it is the backbone's (`activation`), but for these two: the
    # original has one rate for the encoder and the head.
    both = {"dropout", "name"} if task else set()
    for_task = {key: value for key, value in overrides.items() if key not in free or key in both}
    if task:
        for_backbone.pop("name", None)
    try:
        _check_size(fixed, files)
        backbone = models.XLNetBackbone(**{**fixed, **(defaults or {}), **for_backbone})
        return TASKS[task](backbone, **{**head, **for_task}) if task else backbone
    except ValueError as error:
        given = f" with {sorted(overrides)}" if overrides else ""
        raise ValueError(f"{config_file}{given}: {error}") from error


def _check_size(fixed, files):
    """Refuses what would take memory and time without end before it can be compared in detail."""
    sizes = "vocabulary_size", "hidden_dim", "num_layers", "num_heads", "intermediate_dim"
    for name in sizes:
        check_positive_int(name, fixed[name])
    vocabulary_size, hidden_dim, num_layers, num_heads, intermediate_dim = map(fixed.get, sizes)
    head_dim = fixed["head_dim"]
    heads_dim = (
        hidden_dim if head_dim is None else num_heads * check_positive_int("head_dim", head_dim)
    )
    of_layer = hidden_dim * (5 * heads_dim + 2 * intermediate_dim)
    described = vocabulary_size * hidden_dim + num_layers * of_layer
    held = sum(map(math.prod, files.shapes.values()))
    if described > 2 * held + _SMALL:
        raise ValueError(
            f"it describes a model of {described:,} parameters, but {files} has only {held:,}"
        )


def _arguments(model_class):
    parameters = inspect.signature(model_class.__init__).parameters
    return set(parameters) - {"self", "kwargs"}

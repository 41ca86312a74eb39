"""Which model a task means, and what of it may be chosen when a checkpoint is loaded."""

import inspect

from keras_xlnet import models
from keras_xlnet.layers.arguments import check_choice

TASKS = {
    "permutation_lm": models.XLNetPermutationLM,
    "text_classifier": models.XLNetTextClassifier,
    "text_regressor": models.XLNetTextRegressor,
    "token_classifier": models.XLNetTokenClassifier,
    "multiple_choice": models.XLNetMultipleChoice,
    "question_answering": models.XLNetQuestionAnswering,
}


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


def check_task(task):
    """Raises `ValueError` if there is no such task."""
    check_choice("task", task, (None, *TASKS))


def build(task, fixed, overrides, head, defaults=None):
    """Builds a backbone, or the model of a task around one, with initial weights.

    Args:
        task: One of `TASKS`, or `None`.
        fixed: The arguments of the backbone that the checkpoint fixes.
        overrides: What the caller chooses: other arguments of the backbone, and of the task.
        head: The arguments of the task that the checkpoint suggests.
        defaults: The arguments of the backbone that the checkpoint suggests.

    Raises:
        ValueError: If an override is fixed by the checkpoint, or no such argument exists.
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
    backbone = models.XLNetBackbone(**{**fixed, **(defaults or {}), **for_backbone})
    return TASKS[task](backbone, **{**head, **for_task}) if task else backbone


def _arguments(model_class):
    parameters = inspect.signature(model_class.__init__).parameters
    return set(parameters) - {"self", "kwargs"}

"""A small model of every task."""

from keras_xlnet.checkpoints import TASKS
from keras_xlnet.models import (
    MultiTask,
    TransformerXLLanguageModel,
    XLNetBackbone,
    XLNetTextRegressor,
)


def new_model(task, vocabulary_size=20, **arguments):
    """A model of a task, or a backbone for `None`. Arguments are those of the backbone."""
    sizes = (vocabulary_size, 2, 2, 8, 12)
    if task == "language_model":
        return TransformerXLLanguageModel(*sizes, cutoffs=(5, 9), div_val=2, **arguments)
    backbone = XLNetBackbone(*sizes, **arguments)
    if task is None:
        return backbone
    if task == "multi_task":
        return MultiTask({"number": XLNetTextRegressor(backbone)})
    classes = {"num_classes": 3} if "num_classes" in TASKS[task].arguments else {}
    return TASKS[task].model(backbone, **classes)

"""The table of tasks: the models that can be loaded and saved, and their counterparts."""

import dataclasses
import inspect
import re
from collections.abc import Collection, Iterable
from typing import Any

import keras

from keras_xlnet import models
from keras_xlnet.arguments import check_choice
from keras_xlnet.checkpoints.huggingface_config import (
    CLASSES,
    ONE_LABEL,
    PROBLEM_TYPE,
    SIMPLE_QUESTION_ANSWERING,
    SUMMARY,
    TIED_LOGITS,
    TOKEN_CLASSES,
    Group,
    num_labels,
    same_names,
)
from keras_xlnet.checkpoints.transformer_xl_weights import transformer_xl_rows
from keras_xlnet.checkpoints.weight_mapping import OWNERS, Row, dense, kernel, match_weights, norm
from keras_xlnet.checkpoints.xlnet_weights import ENCODER, MASK_EMBEDDING
from keras_xlnet.checkpoints.xlnet_weights import SUMMARY as SUMMARY_WEIGHTS
from keras_xlnet.preset_files.weights import WeightMatch, model_weights
from keras_xlnet.tokenizers import XLNetTokenizer


@dataclasses.dataclass(frozen=True)
class Task:
    """A task, its model, and its counterparts in the other implementations.

    Args:
        model: Class of the task's model.
        weights: `Row`s of the weights that the model has besides its backbone. For a
            model without a backbone, a function of the model that returns the `Row`s of all.
        sign: Name of a variable of the original. A checkpoint that has it is of this task. `None`
            if the original has no such model.
        sizes: Dict of arguments of the model that an original checkpoint does not state, and the
            paths of the weights whose last axis has this size.
        architectures: Names of the classes of transformers. The first one is written.
        num_labels: The number of labels that distinguishes the task from others with the same
            architecture. `None` for any.
        config: `Group`s of the model's arguments that are in Hugging Face's `config.json`.
        has_memory: Whether the model has the memory that `config.json` describes. Fine-tuned
            models do not.
    """

    model: type[keras.Model]
    weights: Any = ()
    sign: str | None = None
    sizes: dict[str, str] = dataclasses.field(default_factory=dict)
    architectures: tuple[str, ...] = ()
    num_labels: int | None = None
    config: tuple[Group, ...] = ()
    has_memory: bool = False

    @property
    def has_backbone(self) -> bool:
        """Whether the model is a head on an `XLNetBackbone`."""
        return not callable(self.weights)

    def rows(self, model: keras.Model) -> list[Row]:
        """Returns the weight mapping of a whole model."""
        return [*ENCODER, *self.weights] if self.has_backbone else self.weights(model)

    @property
    def arguments(self) -> set[str]:
        """The set of the names of the model's constructor arguments, without the backbone."""
        parameters = inspect.signature(self.model.__init__).parameters
        return set(parameters) - {"self", "backbone", "kwargs"}

    @property
    def takes_text(self) -> bool:
        """Whether the model can have a preprocessor."""
        return "preprocessor" in self.arguments

    def preprocessor(self, tokenizer: XLNetTokenizer | None) -> keras.layers.Layer | None:
        """Returns the preprocessor of the task, `None` without a tokenizer."""
        if tokenizer is None:
            return None
        return self.model.preprocessor_cls(tokenizer)


BACKBONE = Task(models.XLNetBackbone, architectures=("XLNetModel",), has_memory=True)

#: The tasks of checkpoints by name, such as `"text_classifier"`: the model, the names of its
#: weights in each format, and its arguments in `config.json`. Files that fit several entries belong
#: to the last one.
TASKS = {
    "permutation_lm": Task(
        models.XLNetPermutationLM,
        weights=[MASK_EMBEDDING, Row("logits/bias", "model/lm_loss/bias", "lm_loss.bias")],
        sign="model/lm_loss/bias",
        architectures=("XLNetLMHeadModel",),
        config=(TIED_LOGITS,),
        has_memory=True,
    ),
    "text_classifier": Task(
        models.XLNetTextClassifier,
        weights=[
            *SUMMARY_WEIGHTS,
            *dense("logits", "model/classification_{task_name}/logit", "logits_proj"),
        ],
        sign="model/classification_{task_name}/logit/kernel",
        sizes={"num_classes": "logits/kernel"},
        architectures=("XLNetForSequenceClassification",),
        config=(SUMMARY, CLASSES, PROBLEM_TYPE),
    ),
    "text_regressor": Task(
        models.XLNetTextRegressor,
        weights=[
            *SUMMARY_WEIGHTS,
            *dense("logits", "model/regression_{task_name}/logit", "logits_proj"),
        ],
        sign="model/regression_{task_name}/logit/kernel",
        architectures=("XLNetForSequenceClassification",),
        num_labels=1,
        config=(SUMMARY, ONE_LABEL),
    ),
    "token_classifier": Task(
        models.XLNetTokenClassifier,
        weights=dense("logits", None, ("classifier", "qa_outputs")),
        architectures=("XLNetForTokenClassification", SIMPLE_QUESTION_ANSWERING),
        config=(TOKEN_CLASSES,),
    ),
    "multiple_choice": Task(
        models.XLNetMultipleChoice,
        weights=[*SUMMARY_WEIGHTS, *dense("logits", "logits/dense", "logits_proj")],
        sign="logits/dense/kernel",
        architectures=("XLNetForMultipleChoice",),
        config=(SUMMARY,),
    ),
    # Only in presets: a cross-encoder of transformers looks like a regressor.
    "ranker": Task(models.XLNetRanker),
    # It has no weights of its own, so any checkpoint would match.
    "text_embedder": Task(models.XLNetTextEmbedder),
    "question_answering": Task(
        models.XLNetQuestionAnswering,
        weights=[
            *dense("start_logits/dense", "start_logits/dense", "start_logits.dense"),
            *dense("end_logits/dense_0", "end_logits/dense_0", "end_logits.dense_0"),
            *norm("end_logits/norm", "end_logits/LayerNorm", "end_logits.LayerNorm"),
            *dense("end_logits/dense_1", "end_logits/dense_1", "end_logits.dense_1"),
            *dense("answer_class/dense_0", "answer_class/dense_0", "answer_class.dense_0"),
            kernel("answer_class/dense_1", "answer_class/dense_1", "answer_class.dense_1"),
        ],
        sign="start_logits/dense/kernel",
        architectures=("XLNetForQuestionAnswering",),
        config=(same_names("start_n_top", "end_n_top"),),
    ),
    "language_model": Task(
        models.TransformerXLLanguageModel,
        weights=transformer_xl_rows,
        sign="transformer/r_w_bias",
        architectures=("TransfoXLLMHeadModel",),
        has_memory=True,
    ),
}


def get_task(name: str | None, format: str | None = None) -> Task:
    """Returns the `Task` of a name; `BACKBONE` for `None`.

    Raises:
        ValueError: If there is no such task, or the format (a key of `OWNERS`) has no such model.
    """
    check_choice("task", name, (None, *TASKS))
    if name is None:
        return BACKBONE
    task = TASKS[name]
    is_known: dict[str | None, Any] = {
        "original": task.sign,
        "huggingface": task.architectures,
        "keras_hub": False,
        "bert": False,
        "keras_xlnet_h5": name == "permutation_lm",
        None: True,
    }
    if not is_known[format]:
        owner = OWNERS[format]  # type: ignore[index]  # No longer None.
        raise ValueError(
            f"{owner} has no model for the task {name!r} ({task.model.__name__}). The `backbone` "
            "can be loaded (`task=None`) and saved; presets have all models"
        )
    return task


def task_of_model(model: keras.Model) -> str | None:
    """Returns the name of a model's task, `None` for a backbone.

    Raises:
        ValueError: If it is not a model of the table.
    """
    for name, task in ((None, BACKBONE), *TASKS.items()):
        if isinstance(model, task.model):
            return name
    raise ValueError(
        "`model` must be an XLNetBackbone or a task model of keras_xlnet. Received: "
        f"{type(model).__name__}"
    )


def task_of_variables(names: Iterable[str]) -> str | None:
    """Returns the task of an original checkpoint with variables of these names, or `None`."""
    for task_name, task in reversed(TASKS.items()):
        if task.sign and any(name_pattern(task.sign).fullmatch(name) for name in names):
            return task_name
    return None


def task_of_config(config: dict[str, Any]) -> str | None:
    """Returns the task of Hugging Face's `config.json`, `None` for an encoder."""
    architecture = next(iter(config.get("architectures", ())), None)
    for name, task in reversed(TASKS.items()):
        is_size = task.num_labels in (None, num_labels(config))
        if architecture in task.architectures and is_size:
            return name
    return None


def name_pattern(name: str) -> re.Pattern[str]:
    """Returns a regular expression for an original name; its group is `{task_name}`."""
    return re.compile(re.escape(name).replace(r"\{task_name\}", "(.+)"))


def match_model(
    model: keras.Model, format: str, task_name: str = "task", found: Collection[str] = ()
) -> list[WeightMatch]:
    """Returns the `WeightMatch`es of all weights of a model. Arguments as in `match_weights`."""
    rows = get_task(task_of_model(model)).rows(model)
    return match_weights(model_weights(model), rows, format, task_name, found)

"""The table of tasks: the models that can be loaded and saved, and their counterparts."""

import dataclasses
import functools
import inspect
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras

from keras_xlnet import models
from keras_xlnet.arguments import check_choice
from keras_xlnet.checkpoints.family import Family
from keras_xlnet.checkpoints.huggingface_config import Group, group_of, has_numbers
from keras_xlnet.checkpoints.transformer_xl_weights import transformer_xl_rows
from keras_xlnet.checkpoints.weight_mapping import match_weights
from keras_xlnet.checkpoints.xlnet_weights import ENCODER, MASK_EMBEDDING
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.models.weight_rows import Row
from keras_xlnet.preset_files.weights import WeightMatch, model_weights
from keras_xlnet.tokenizers import XLNetTokenizer


@dataclasses.dataclass(frozen=True)
class CheckpointTask:
    """The model of a task, and its counterparts in the other implementations.

    A task model declares all but the first of these arguments, in its `checkpoint`.

    Args:
        model: Class of the task's model.
        weights: `Row`s of the weights that the model has besides its backbone. For a
            model without a backbone, a function of the model that returns the `Row`s of all.
        sign: Name of a variable of the original. A checkpoint that has it is of this task. `None`
            if the original has no such model.
        sizes: Dict of arguments of the model that an original checkpoint does not state, and the
            paths of the weights whose last axis has this size.
        architectures: Names of the classes of transformers. The first one is written.
        num_labels: 1 if labels that are numbers distinguish the task from others with the same
            architecture: see `has_numbers`. `None` for any labels.
        config: Names of the model's arguments that are in Hugging Face's `config.json`, or of
            their groups: see `group_of`.
        has_memory: Whether the model has the memory that `config.json` describes. Fine-tuned
            models do not.
    """

    model: type[keras.Model]
    weights: Any = ()
    sign: str | None = None
    sizes: dict[str, str] = dataclasses.field(default_factory=dict)
    architectures: tuple[str, ...] = ()
    num_labels: int | None = None
    config: tuple[str, ...] = ()
    has_memory: bool = False

    @property
    def has_backbone(self) -> bool:
        """Whether the model is a head on an `XLNetBackbone`."""
        return not callable(self.weights)

    def rows(self, model: keras.Model) -> list[Row]:
        """Returns the weight mapping of a whole model."""
        return [*ENCODER, *self.weights] if self.has_backbone else self.weights(model)

    @property
    def groups(self) -> list[Group]:
        """The `Group`s of `config`."""
        return [*map(group_of, self.config)]

    @property
    def arguments(self) -> set[str]:
        """The set of the names of the model's constructor arguments, without the backbone."""
        parameters = inspect.signature(self.model.__init__).parameters
        return set(parameters) - {"self", "backbone", "kwargs"}

    @property
    def takes_text(self) -> bool:
        """Whether the model can have a preprocessor."""
        return "preprocessor" in self.arguments

    def preprocessor(
        self, tokenizer: XLNetTokenizer | None, **arguments: Any
    ) -> keras.layers.Layer | None:
        """Returns the preprocessor of the task, `None` without a tokenizer."""
        if tokenizer is None:
            return None
        return self.model.preprocessor_cls(tokenizer, **arguments)


BACKBONE = CheckpointTask(models.XLNetBackbone, architectures=("XLNetModel",), has_memory=True)

_LANGUAGE_MODELS = {
    "permutation_lm": CheckpointTask(
        models.XLNetPermutationLM,
        weights=[MASK_EMBEDDING, Row("logits/bias", "model/lm_loss/bias", "lm_loss.bias")],
        sign="model/lm_loss/bias",
        architectures=("XLNetLMHeadModel",),
        config=("tied_logits",),
        has_memory=True,
    ),
    "language_model": CheckpointTask(
        models.TransformerXLLanguageModel,
        weights=transformer_xl_rows,
        sign="transformer/r_w_bias",
        architectures=("TransfoXLLMHeadModel",),
        has_memory=True,
    ),
}


class _Tasks(Mapping[str, CheckpointTask]):
    """The language models, and the registered task models that declare a `task`, by name."""

    @property
    def _entries(self):
        registered = keras.saving.get_custom_objects().values()
        declared = (x for x in registered if isinstance(x, type) and issubclass(x, models.Task))
        # A subclass that does not say otherwise is of the same task.
        return _entries_of(tuple(cls for cls in declared if "task" in vars(cls)))

    def __getitem__(self, name: str) -> CheckpointTask:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@functools.lru_cache(maxsize=1)
def _entries_of(classes):
    return _LANGUAGE_MODELS | {cls.task: CheckpointTask(cls, **cls.checkpoint) for cls in classes}


#: The tasks of checkpoints by name, such as `"text_classifier"`: the model, the names of its
#: weights in each format, and its arguments in `config.json`. Files that fit several entries are of
#: the last of them.
TASKS = _Tasks()


def get_task(name: str | None, family: Family | None = None) -> CheckpointTask:
    """Returns the `CheckpointTask` of a name; `BACKBONE` for `None`.

    Raises:
        ValueError: If there is no such task, or the family has no such model.
    """
    check_choice("task", name, (None, *TASKS))
    if name is None:
        return BACKBONE
    task = TASKS[name]
    if family and not family.has_task(task):
        raise ValueError(
            f"{family.owner} has no model for the task {name!r} ({task.model.__name__}). The "
            "`backbone` can be loaded (`task=None`) and saved; presets have all models"
        )
    return task


def task_of_model(model: keras.Model) -> str | None:
    """Returns the name of a model's task, `None` for a backbone.

    Raises:
        ValueError: If it is not a model of the table.
    """
    names = {task.model: name for name, task in ((None, BACKBONE), *TASKS.items())}
    for cls in type(model).__mro__:
        if cls in names:
            return names[cls]
    raise ValueError(
        "`model` must be an XLNetBackbone or a task model of keras_xlnet. Received: "
        f"{type(model).__name__}"
    )


def task_of_variables(names: Iterable[str]) -> str | None:
    """Returns the task of an original checkpoint with variables of these names, or `None`."""
    for task_name, task in reversed([*TASKS.items()]):
        if task.sign and any(name_pattern(task.sign).fullmatch(name) for name in names):
            return task_name
    return None


def task_of_config(config: dict[str, Any]) -> str | None:
    """Returns the task of Hugging Face's `config.json`, `None` for an encoder."""
    architecture = next(iter(config.get("architectures", ())), None)
    if architecture in BACKBONE.architectures:
        return None
    for name, task in reversed([*TASKS.items()]):
        fits = task.num_labels is None or has_numbers(config)
        if architecture in task.architectures and fits:
            return name
    return None


def name_pattern(name: str) -> re.Pattern[str]:
    """Returns a regular expression for an original name; its group is `{task_name}`."""
    return re.compile(re.escape(name).replace(r"\{task_name\}", "(.+)"))


def match_model(
    model: keras.Model, family: Family, task_name: str = "task", found: Collection[str] = ()
) -> list[WeightMatch]:
    """Returns the `WeightMatch`es of all weights of a model. Arguments as in `match_weights`."""
    rows = get_task(task_of_model(model)).rows(model)
    return match_weights(model_weights(model), rows, family, task_name, found)


def not_stated(
    model: keras.Model,
    of_backbone: Iterable[str],
    of_task: Collection[str],
    notes: Sequence[str] = (),
) -> list[str]:
    """Returns what a format cannot say about a model, for `Family.left_out`.

    Args:
        model: An `XLNetBackbone` or a task model.
        of_backbone: Names of arguments of the backbone that the format does not state.
        of_task: Names of arguments of the task's model that the format states.
        notes: What else the format cannot say about a task's model.
    """
    task = task_of_model(model)
    entry = get_task(task)
    lost = _unlike_defaults(backbone_of(model), of_backbone)
    if task and entry.has_backbone:
        lost += notes
        others = entry.arguments - {*of_task, "name", "preprocessor"}
        lost += _unlike_defaults(model, sorted(others))
        if getattr(model, "preprocessor", None) is not None:
            lost.append("preprocessor (its tokenizer is kept)")
    if not model.trainable or "trainability" in model.get_config():
        lost.append("trainability")
    return lost


def _unlike_defaults(model, names):
    parameters, config = inspect.signature(type(model)).parameters, model.get_config()
    defaults = {name: parameters[name].default for name in names if name in parameters}
    if isinstance(model, models.TransformerXLLanguageModel):
        defaults |= {name: 1e-12 for name in names if name == "layer_norm_epsilon"}
    return [f"{k}={config[k]!r}" for k, default in defaults.items() if config[k] != default]

import contextlib
import types
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from keras_xlnet.compat.loss_of_all_rows import with_mask
from keras_xlnet.models.task import Task
from keras_xlnet.models.task_graph import read_texts, summary_of, token_inputs
from keras_xlnet.models.xlnet_backbone import XLNetBackbone
from keras_xlnet.models.xlnet_text_classifier import XLNetTextClassifier
from keras_xlnet.models.xlnet_text_regressor import XLNetTextRegressor
from keras_xlnet.preprocessing import MultiTaskPreprocessor, Preprocessor
from keras_xlnet.preprocessing.multi_task_preprocessor import has_label, present_labels
from keras_xlnet.preprocessing.texts import one_row
from keras_xlnet.preprocessing.weights import weights_of_labels
from keras_xlnet.preset_files.adapter import OF_LAYERS, without
from keras_xlnet.registration import register
from keras_xlnet.types import Tensor


@register
class MultiTask(Task):
    """Several tasks on one backbone, which reads each text once for all of them.

    The tasks are models that have the same backbone. They keep their heads: each of them can be
    used, exported and saved alone, with the weights that all were trained to.

    Labels, weights, losses and metrics are dicts by task. A row may lack labels: `None`, NaN, or -1
    for the index of a class. It then counts neither in the loss nor in the metrics of that task.
    The loss of a task is the mean over the rows of the batch that have its label, and the loss of
    the model the sum of these, with the `loss_weights` of `compile`. `sample_weight` weighs rows in
    the loss and in all metrics, `metrics` as well as `weighted_metrics`. Keras has no
    `class_weight` for several outputs; use `sample_weight={task: weights}`.

    It is compiled with `FineTuningAdamW`, and the losses and metrics that the classes of the tasks
    have by default. Call `compile` to change that; arguments and losses you leave out keep these
    defaults.

    Args:
        tasks: Dict of `XLNetTextClassifier`s and `XLNetTextRegressor`s by name. They have the same
            backbone object, tokenizer, lengths and `long_document`; and all or none of them
            `pooling="pair"`. A preprocessor of one of them is enough.
        backbone, preprocessor: Those of the tasks, by default. In a config they are outside of the
            tasks.
        name: Name of the model.

    Inputs, a dict: `token_ids`, `segment_ids`, `padding_mask`, as in `XLNetBackbone`.

    Outputs: Dict of the outputs of the tasks.

    Raises:
        ValueError: If an argument is not as above. The message names the task.

    Example:

    >>> from keras_xlnet.models import MultiTask, XLNetTextClassifier, XLNetTextRegressor
    >>> topic = XLNetTextClassifier.from_preset("xlnet_mini_en", num_classes=2)
    >>> stars = XLNetTextRegressor(topic.backbone, topic.preprocessor)
    >>> model = MultiTask({"topic": topic, "stars": stars})
    >>> texts = ["A dull film.", "The soup was good.", "Great acting!"]
    >>> labels = {"topic": ["film", "food", "film"], "stars": [1.0, None, 5.0]}
    >>> history = model.fit(texts, labels, verbose=0)
    >>> {name: output.shape for name, output in model.predict(texts, verbose=0).items()}
    {'topic': (3, 2), 'stars': (3, 1)}
    >>> sorted(model.annotate("A film.", verbose=0))
    ['stars', 'topic']

    Source: Caruana 1997, "Multitask Learning"; Liu et al. 2019, "Multi-Task Deep Neural Networks
    for Natural Language Understanding".
    """

    task = "multi_task"
    signatures = "tasks"
    preprocessor_cls = MultiTaskPreprocessor
    _arguments = ("preprocessor",)

    def __init__(
        self,
        tasks: Mapping[str, Any],
        backbone: XLNetBackbone | None = None,
        preprocessor: Preprocessor | None = None,
        name: str = "multi_task",
        **kwargs: Any,
    ) -> None:
        if not isinstance(tasks, Mapping) or not tasks:
            raise ValueError(f"`tasks` must be a dict of models. Received: tasks={tasks!r}")
        tasks = {key: _made(task, backbone) for key, task in tasks.items()}
        for key, task in tasks.items():
            _check_task(key, task)
        first = next(iter(tasks.values()))
        backbone = first.backbone if backbone is None else backbone
        for key, task in tasks.items():
            _check_same(key, task, backbone, _reading_arguments(first), next(iter(tasks)))
        given = [task.preprocessor for task in tasks.values()]
        preprocessor = preprocessor or next(filter(None, given), None)
        for key, other in zip(tasks, given, strict=True):
            _check_preprocessors(key, other, preprocessor)
        inputs = token_inputs(backbone)
        reading = read_texts(backbone, inputs, **_reading_arguments(first))
        heads = {key: _head(task, reading, key) for key, task in tasks.items()}
        outputs = {key: head(reading) for key, head in heads.items()}
        super().__init__(backbone, inputs=inputs, outputs=outputs, name=name, **kwargs)

        # Not tracked: their layers are in the heads, their backbone and vocabulary in this model.
        self._untracked = types.SimpleNamespace(**vars(self._untracked), tasks=tasks)
        for argument, value in _reading_arguments(first).items():
            setattr(self, argument, value)
        self._hold(preprocessor)
        self.compile()

    @property
    def tasks(self) -> Mapping[str, Any]:
        """The models of the tasks by name, read-only."""
        return types.MappingProxyType(self._untracked.tasks)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "tasks": {k: _entry(v) for k, v in self.tasks.items()}}

    def weight_path(self, weight: Any) -> str:
        for name in self.tasks:
            if any(weight is own for own in self.get_layer(name).weights):
                return f"{name}/{weight.path}"
        return weight.path

    def _hold(self, text_layer):
        super()._hold(text_layer)
        for task in self.tasks.values():
            task.preprocessor = self.preprocessor

    def save_adapter(self, *args: Any, **kwargs: Any) -> None:
        """Raises `ValueError`: an adapter is of one task."""
        raise ValueError("An adapter is of one task. Save a MultiTask with `save_to_preset`")

    # === Training ===

    def _compile_defaults(self):
        defaults = {name: task._compile_defaults() for name, task in self.tasks.items()}
        return {
            "loss": {name: of_task["loss"] for name, of_task in defaults.items()},
            "weighted_metrics": {name: of_task["metrics"] for name, of_task in defaults.items()},
        }

    def compile(
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        metrics: Any = "auto",
        weighted_metrics: Any = "auto",
        loss_weights: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Compiles as `keras.Model.compile` does, with dicts by task.

        Args:
            optimizer: As in `keras.Model.compile`.
            loss: Dict of losses. A task that is left out keeps its loss.
            metrics, weighted_metrics: Dicts of a metric, or a list of metrics. They are the same:
                all are weighted by `sample_weight`, and count only rows that have a label.
            loss_weights: Dict of floats, one for each task.
            **kwargs: As in `keras.Model.compile`.

        Raises:
            ValueError: If an argument is not a dict of tasks.
        """
        given = {
            "loss": loss,
            "metrics": metrics,
            "weighted_metrics": weighted_metrics,
            "loss_weights": loss_weights,
        }
        has_default_metrics = metrics == weighted_metrics == "auto"
        given = {key: x for key, x in given.items() if x is not None and x != "auto"}
        for argument, value in given.items():
            if not isinstance(value, dict) or not value.keys() <= self.tasks.keys():
                raise ValueError(
                    f"`{argument}` must be a dict with some of the tasks {[*self.tasks]}. "
                    f"Received: {argument}={value!r}"
                )
        if "loss" in given:
            loss = {**self._compile_defaults()["loss"], **loss}
        if "loss_weights" in given:
            loss_weights = {name: loss_weights.get(name, 1.0) for name in self.tasks}
        if not has_default_metrics:
            both = [given.get(key, {}) for key in ("metrics", "weighted_metrics")]
            weighted_metrics = {
                name: [x for part in both for x in keras.tree.flatten(part.get(name, []))]
                for name in self.tasks
            }
        super().compile(optimizer, loss, None, weighted_metrics, loss_weights, **kwargs)

    @contextlib.contextmanager
    def _learning_from_labels(self, y):
        labels = y if hasattr(y, "keys") else {}
        with contextlib.ExitStack() as stack:
            for name, task in self.tasks.items():
                if name in labels:
                    stack.enter_context(task._learning_from_labels(present_labels(labels[name])))
            yield

    def _labels_for(self, loss):
        return {
            name: (
                task.preprocessor_cls,
                task._labels_for(loss.get(name) if isinstance(loss, dict) else loss),
            )
            for name, task in self.tasks.items()
        }

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Computes the loss as `keras.Model` does, of the rows that have a label."""
        if y is not None:
            y, counts = self._present(y, y_pred)
            y_pred = {name: with_mask(y_pred[name], counts[name]) for name in counts}
            sample_weight = self._weights_by_task(sample_weight)
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Computes the metrics as `keras.Model` does, of the rows that have a label."""
        if y is not None:
            y, counts = self._present(y, y_pred)
            given = self._weights_by_task(sample_weight)
            sample_weight = {name: ops.cast(counts[name], "float32") for name in counts}
            for name, weights in sample_weight.items():
                if given[name] is not None:
                    sample_weight[name] = weights * weights_of_labels(given[name], weights)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _present(self, y, y_pred):
        """The labels of all tasks, 0 where they are missing, and which rows have one."""
        labels, counts = {}, {}
        for name in self.tasks:
            if y.get(name) is None:
                counts[name] = ops.zeros_like(y_pred[name][:, 0], dtype="bool")
                takes_vectors = self._labels_for(self.loss)[name][1].takes_vectors
                labels[name] = ops.zeros_like(y_pred[name] if takes_vectors else y_pred[name][:, 0])
                continue
            given = ops.convert_to_tensor(y[name])
            counts[name] = has_label(given)
            shape = (-1, *[1] * (len(given.shape) - 1))
            labels[name] = ops.where(ops.reshape(counts[name], shape), given, 0)
        return labels, counts

    def _weights_by_task(self, sample_weight):
        given = sample_weight if isinstance(sample_weight, dict) else {}
        default = None if isinstance(sample_weight, dict) else sample_weight
        return {name: given.get(name, default) for name in self.tasks}

    # === Results ===

    def annotate(
        self, texts: Any, batch_size: int | None = None, verbose: str | int = "auto"
    ) -> dict[str, Any]:
        """Returns the results of all tasks for texts.

        Args:
            texts: Raw text, as in `predict`, a string, or features of a preprocessor.
            batch_size, verbose: As in `predict`.

        Returns:
            A dict by task: a list of `Classification`s, as `classify` of the task returns them, or
            a list of floats, or of arrays for a regressor with several numbers. For a string, each
            value is one result instead of a list.
        """
        texts, is_one = one_row(texts)
        outputs = self.predict(texts, batch_size=batch_size, verbose=verbose)
        found = {name: task._results_of(outputs[name]) for name, task in self.tasks.items()}
        return {name: rows[0] for name, rows in found.items()} if is_one else found

    @property
    def csv_columns(self) -> list[str]:
        """The columns of `csv_rows`."""
        return [f"{name}_{x}" for name, task in self.tasks.items() for x in task.csv_columns]

    def csv_rows(self, texts: Any) -> list[Any]:
        """Returns a row of values for each text: see `Task`."""
        found = self.annotate(texts, verbose=0)
        rows = [task._csv_rows_of(found[name]) for name, task in self.tasks.items()]
        return [[x for part in parts for x in part] for parts in zip(*rows, strict=True)]


def _made(task, backbone):
    """A task, made of its entry in a config if it is one."""
    if not isinstance(task, dict):
        return task
    return keras.saving.deserialize_keras_object(
        {**task, "config": {**task["config"], "backbone": backbone}}
    )


def _entry(task):
    """The config of a task, without what it shares with others."""
    entry = keras.saving.serialize_keras_object(task)
    entry["config"] = without(entry["config"], {"backbone", "preprocessor", *OF_LAYERS} - {"name"})
    return without(entry, {"build_config", "compile_config"})


def _head(task, reading, name):
    """A model of the layers that a task does not share."""
    inputs = {
        key: keras.Input(batch_shape=x.shape, dtype=x.dtype, name=key) for key, x in reading.items()
    }
    summary = summary_of(inputs, task.sequence_summary)
    outputs = task.activation_layer(task.logits_dense(summary))
    return keras.Model(inputs, outputs, name=name)


def _reading_arguments(task):
    """The arguments of `read_texts` that decide how a task reads texts."""
    arguments = {"pooling": "pair" if task.pooling == "pair" else "last"}
    arguments["long_document"] = task.long_document
    if task.long_document in ("windows", "memory"):
        arguments["segment_length"] = task.segment_length
    if task.long_document == "memory":
        arguments["gradient_segments"] = task.gradient_segments
    return arguments


def _check_task(name, task):
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"Names of `tasks` must be like names of variables. Received: {name!r}")
    if not isinstance(task, (XLNetTextClassifier, XLNetTextRegressor)):
        raise ValueError(
            f"`tasks[{name!r}]` must be an XLNetTextClassifier or XLNetTextRegressor. Received: "
            f"{type(task).__name__}"
        )
    if getattr(task, "activation", None) == "linear":
        raise ValueError(
            f"`tasks[{name!r}]` must be an XLNetTextRegressor(num_outputs=...) for numbers. "
            "Received: a classifier with activation='linear'"
        )


def _check_same(name, task, backbone, reading, first):
    if task.backbone is not backbone:
        raise ValueError(
            f"`tasks[{name!r}]` must have the backbone of {first!r}: make it with "
            f"`tasks[{first!r}].backbone`. Received: another backbone"
        )
    found = _reading_arguments(task)
    if found != reading:
        raise ValueError(
            f"`tasks[{name!r}]` must read texts as {first!r} does. Received: {found}, expected: "
            f"{reading}"
        )


def _check_preprocessors(name, found, expected):
    if found is None:
        return
    for key, value in _settings(expected).items():
        if _settings(found)[key] != value:
            raise ValueError(
                f"`tasks[{name!r}]` must have a preprocessor with the settings of the others. "
                f"Received: {key}={_settings(found)[key]!r}, expected: {value!r}"
            )


def _settings(preprocessor):
    tokenizer = preprocessor.tokenizer
    return {
        **without(preprocessor.get_config(), {"name", "tokenizer"}),
        "tokenizer": without(tokenizer.get_config(), {"name"}),
        "vocabulary_sha256": tokenizer.vocabulary_sha256,
    }

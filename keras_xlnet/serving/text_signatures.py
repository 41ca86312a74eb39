"""Signatures of models that read texts or pairs of texts, with one output per text."""

import functools

import tensorflow as tf

from keras_xlnet.models import MultiTask, Task, XLNetTextClassifier
from keras_xlnet.preprocessing.labels import check_threshold
from keras_xlnet.serving.signature import Signature, strings
from keras_xlnet.serving.token_reader import TokenReader

# The preprocessor needs one token of each text, two <sep> and <cls> for a pair.
_MIN_LENGTH_PAIR = 5


def classifier_signatures(
    model: XLNetTextClassifier, batch_size: int | None, threshold: float | None = None
) -> dict[str, Signature]:
    """Returns the signatures of a classifier.

    Args:
        model: An `XLNetTextClassifier`.
        batch_size: As in `export`.
        threshold: As in `XLNetTextClassifier.classify`.

    Raises:
        ValueError: If `threshold` is invalid or has no effect.
    """
    threshold = model.threshold if threshold is None else threshold
    check_threshold(threshold, model.num_classes, model.activation)
    return _of_texts(model, batch_size, lambda outputs: _with_labels(model, outputs, threshold))


def _with_labels(model, outputs, threshold):
    """Outputs of a classifier with the classes of the texts."""
    if model.activation == "linear":
        return outputs
    found = model.classes.indices(outputs[model.output_name], threshold)
    if model.activation != "sigmoid":
        found = tf.gather(tf.constant(model.label_names), found)
    return {**outputs, "label": found}


def multi_task_signatures(model: MultiTask, batch_size: int | None) -> dict[str, Signature]:
    """Returns the signatures of several tasks: the outputs of each, with its name before theirs.

    `batch_size` is as in `export`. Classifiers decide by their `threshold`.
    """

    def convert(outputs):
        found: dict[str, tf.Tensor] = {}
        for name, task in model.tasks.items():
            of_task = {task.output_name: outputs[name]}
            if task.classes is not None:
                of_task = _with_labels(task, of_task, task.threshold)
            found |= {f"{name}_{key}": value for key, value in of_task.items()}
        return found

    return _of_texts(model, batch_size, convert)


def text_signatures(model: Task, batch_size: int | None) -> dict[str, Signature]:
    """Returns the signatures of a model with one output per text, its `output_name`.

    `batch_size` is as in `export`. Features may have an axis for several texts of a row: a row has
    one text here, and there are no pairs.
    """
    return _of_texts(model, batch_size)


def _of_texts(model, batch_size, convert=dict):
    """The signatures; `convert` makes their outputs of a dict with the output of the model."""
    has_axis = len(model.input["token_ids"].shape) == 3

    def finish(outputs, _):
        if isinstance(outputs, dict):
            return outputs
        return {model.output_name: outputs[:, 0] if has_axis else outputs}

    reader = TokenReader(model, batch_size, finish)

    def read(text, pair=None):
        return read_tokens(**model.preprocessor(text if pair is None else (text, pair)))

    def read_tokens(**features):
        return convert(reader(**features))

    text, pair = strings("text", "pair", batch_size=batch_size)
    found = {"serving_default": Signature(read, [text])}
    if not has_axis and model.preprocessor.sequence_length >= _MIN_LENGTH_PAIR:
        found["serving_pair"] = Signature(read, [text, pair])
    if has_axis:
        # Servers tell the clients of embedders.
        found["serving_num_tokens"] = Signature(functools.partial(_num_tokens, model), [text])
    return {**found, "serving_tokens": Signature(read_tokens, reader.inputs)}


def _num_tokens(model, text):
    """How many tokens of each text the model reads, `<sep>` and `<cls>` among them."""
    mask = model.preprocessor(text)["padding_mask"]
    return {"num_tokens": tf.reduce_sum(tf.cast(mask, tf.int32), axis=(1, 2))}

"""The last layer of classifiers and regressors of texts: fitted to texts, and scaled."""

import dataclasses
import warnings
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_xlnet.models.base_model import BaseModel
from keras_xlnet.models.xlnet_backbone import packed_rows
from keras_xlnet.ops.linear_probe import check_l2, fit_linear
from keras_xlnet.preprocessing.examples import Examples
from keras_xlnet.preprocessing.weights import weights_by_class

L2 = 0.3

# What a model without an activation learns from losses of logits.
_KINDS_OF_LOGITS = {
    keras.losses.CategoricalCrossentropy: "softmax",
    keras.losses.BinaryCrossentropy: "sigmoid",
}


def fit_last_layer(
    model: Any,
    examples: Examples,
    class_weight: dict[Any, float] | None = None,
    l2: float = L2,
    batch_size: int | None = None,
    verbose: str | int = 0,
) -> None:
    """Does what `Task.fit_head` describes, on arrays.

    Args:
        model: An `XLNetTextClassifier` or `XLNetTextRegressor`.
        examples: Its inputs, labels and weights.
        class_weight, l2, batch_size, verbose: As in `Task.fit_head`.
    """
    y = examples.y
    check_l2(l2)
    if model._kind_of_head is None:
        raise ValueError(
            "`fit_head` is for XLNetTextClassifier and XLNetTextRegressor. Received: "
            f"{type(model).__name__}"
        )
    check_has_float_head(model, "fit_head")
    check_has_arrays(examples, "fit_head")
    weights = _weights(model, y, examples.sample_weight, class_weight)
    dense = model.logits_dense
    features = read(model, dense.input, examples, batch_size, verbose)
    kind = _kind(model)
    kernel, bias = fit_linear(features, _targets(model, y, kind), kind, weights, l2)
    # A layer that computes in half precision rounds the kernel. The bias corrects the mean of that.
    rounded = ops.convert_to_numpy(ops.cast(ops.cast(kernel, dense.compute_dtype), "float32"))
    bias += np.average(features, axis=0, weights=weights) @ (kernel - rounded)
    own = _weights_of(dense)
    own["kernel"].assign(rounded)
    own["bias"].assign(bias)
    if "lora_kernel_b" in own:
        own["lora_kernel_b"].assign(np.zeros(own["lora_kernel_b"].shape))


def scale_last_layer(model: Any, factor: float) -> None:
    """Multiplies the logits of a model by a factor, in the weights of its last layer."""
    own = _weights_of(model.logits_dense)
    for name in ("kernel", "bias", "lora_kernel_b"):
        if name in own:
            own[name].assign(own[name] * factor)


def check_has_float_head(model: Any, method: str) -> None:
    """Raises `ValueError` if the last layer of a model is quantized."""
    mode = getattr(model.logits_dense, "quantization_mode", None)
    if mode is not None:
        raise ValueError(
            f"Call `{method}` before `quantize`: it changes the last layer, which must have floats "
            f"for that. Received: a last layer in {mode}. `model.backbone.quantize` leaves it as "
            "it is"
        )


def check_has_arrays(examples: Examples, method: str) -> None:
    """Raises `ValueError` if inputs and labels are not arrays, but such as a dataset."""
    if examples.y is None or not isinstance(examples.x, dict):
        raise ValueError(
            f"`{method}` needs arrays or lists, with labels `y`. Received: x of type "
            f"{type(examples.x).__name__}" + (", y=None" if examples.y is None else "")
        )


def read(
    model: Any,
    tensors: Any,
    examples: Examples,
    batch_size: int | None,
    verbose: str | int,
) -> Any:
    """Returns values of tensors inside a task model, as float64 arrays `(rows, ...)`.

    Args:
        model: A `Task`.
        tensors: Nested structure of symbolic tensors of its graph.
        examples: The inputs. Those with defaults may be omitted, and labels are not used.
        batch_size, verbose: As in `Task.predict`.

    Raises:
        ValueError: If an id is out of range, or a value is not finite.
    """
    # Not kept: layers may be quantized or get LoRA before the next call.
    reader = _Reader(model.input, tensors, name="reader")
    x = {key: ops.convert_to_numpy(ops.convert_to_tensor(v)) for key, v in examples.x.items()}
    examples = dataclasses.replace(examples, x=x, y=None, sample_weight=None, strategy=None)
    if examples.layout == "padded":
        values = reader.predict(examples.x, batch_size=batch_size, verbose=verbose)
    else:
        batches = examples.batches(batch_size)
        values = batches.in_order(reader.predict(batches.as_keras_input(), verbose=verbose))
    values = keras.tree.map_structure(lambda array: np.asarray(array, "float64"), values)
    for array in keras.tree.flatten(values):
        if not np.isfinite(array).all():
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            raise ValueError(f"The outputs of the model must be finite. NaN or infinite in: {row=}")
    return values


class _Reader(BaseModel):
    """A part of a task model, for inputs that the model has checked."""

    @property
    def _inputs_without_default(self):
        return ("packing",)

    def _check_ranges(self, x, y=None):
        pass

    def _reading(self, inputs):
        return packed_rows(inputs)


def _weights_of(dense):
    """The variables of a layer by name: `kernel` of a layer with LoRA is their sum."""
    return {weight.name: weight for weight in dense.weights}


def _kind(model):
    """The kind of linear model whose loss is the loss of the model."""
    if model._kind_of_head == "linear" and getattr(model.loss, "from_logits", False):
        return _KINDS_OF_LOGITS.get(type(model.loss), "linear")
    return model._kind_of_head


def _targets(model, y, kind):
    targets = np.asarray(y, "float64").reshape(len(y), -1)
    units = model.logits_dense.units
    if kind == "softmax" and targets.shape[1] == 1:
        targets = (targets == np.arange(units)).astype("float64")
    smoothing = getattr(model.loss, "label_smoothing", 0.0)
    others = {"softmax": 1 / units, "sigmoid": 0.5, "linear": 0.0}[kind]
    return targets + smoothing * (others - targets) if smoothing and others else targets


def _weights(model, y, sample_weight, class_weight):
    """The weight of each row, 0 for rows that the loss ignores."""
    weights = np.ones(len(y)) if sample_weight is None else np.array(sample_weight, "float64")
    if weights.size != len(y):
        raise ValueError(
            f"`sample_weight` must have a weight for each of {len(y)} rows. Received: shape "
            f"{weights.shape}"
        )
    weights = weights.reshape(-1)
    if class_weight is not None:
        of_classes = model._weights_of_classes(class_weight)
        weights *= ops.convert_to_numpy(weights_by_class(of_classes, y, model._label_rank))
    if model.classes is not None:
        weights[model.classes.is_ignored(y)] = 0.0
    if (weights < 0).any() or not weights.any():
        raise ValueError(
            "`fit_head` needs weights of at least 0 that are not all 0, from `sample_weight`, "
            f"`class_weight` and ignored labels. Received: from {weights.min()} to {weights.max()}"
        )
    return weights


def head_values(model: Any) -> np.ndarray | None:
    """Returns a copy of the last matrix of the head of a task model, `None` if it has none."""
    of_backbone = {id(weight) for weight in model.backbone.weights}
    own = [w for w in model.weights if id(w) not in of_backbone and len(w.shape) > 1]
    if not own:
        return None
    try:
        with warnings.catch_warnings():
            # NumPy warns of how tensors become arrays.
            warnings.simplefilter("ignore", DeprecationWarning)
            return ops.convert_to_numpy(own[-1]).copy()
    except NotImplementedError:  # On the device `meta` of PyTorch, weights have no values.
        return None

"""Loads HDF5 files of the old package `keras-xlnet`."""

import json
import pathlib
import re
from typing import Any

from keras_xlnet.checkpoints.family import Family, loads
from keras_xlnet.checkpoints.hdf5_files import HDF5File
from keras_xlnet.checkpoints.opening import OpenCheckpoint, build
from keras_xlnet.checkpoints.tasks import TASKS, get_task
from keras_xlnet.checkpoints.weight_mapping import layer_prefixes, match_weights
from keras_xlnet.models.base_model import backbone_of
from keras_xlnet.models.weight_rows import Row
from keras_xlnet.preset_files import file_in
from keras_xlnet.preset_files.files import quoted
from keras_xlnet.preset_files.weights import View, model_weights
from keras_xlnet.types import PathLike

_SUFFIXES = (".h5", ".hdf5")
_LOGIT_BIAS = "Softmax/bias"
_MODEL = "model_weights/"
_SAVED = "written with `model.save`"
# Our weight, and their layer and weight.
_BIASES = {
    "content_bias": ("Relative-Bias", "bias_context"),
    "position_bias": ("Relative-Bias", "bias_relative"),
    "segment_bias": ("Segment-Bias", "bias_segment"),
}
# Settings of `build_xlnet` that other programs can change.
_FIXED = (
    *(("Attention-1", "activation", "linear"), ("Attention-1", "use_bias", False)),
    ("FeedForward-1", "use_bias", True),
)
_IN_LAYER = {
    "attention_add_and_norm/norm/gamma": "Attention-Normal-{number}/gamma",
    "attention_add_and_norm/norm/beta": "Attention-Normal-{number}/beta",
    "feed_forward/intermediate/kernel": "FeedForward-{number}/FeedForward-{number}_W1",
    "feed_forward/intermediate/bias": "FeedForward-{number}/FeedForward-{number}_b1",
    "feed_forward/output/kernel": "FeedForward-{number}/FeedForward-{number}_W2",
    "feed_forward/output/bias": "FeedForward-{number}/FeedForward-{number}_b2",
    "feed_forward_add_and_norm/norm/gamma": "FeedForward-Normal-{number}/gamma",
    "feed_forward_add_and_norm/norm/beta": "FeedForward-Normal-{number}/beta",
}


@loads
def load_keras_xlnet_h5(
    path: PathLike, task: str | None = None, *, num_heads: int | None = None, **overrides: Any
) -> Any:
    """Loads the weights of a model of the old package `keras-xlnet` (CyberZHG's, on PyPI).

    The sizes are found from the shapes of the weights, except the number of heads. A file of
    `model.save` also states the number of heads, dropout, activation, direction and the length of
    the memory; a file of `model.save_weights` does not: pass what differs from the defaults of
    `build_xlnet`.

    Args:
        path: Path of the `.h5` file.
        task: `None` for the encoder. `"permutation_lm"` for a model of `training=True`, which has
            a mask embedding and a softmax besides.
        num_heads: Int, the `num_head` of `build_xlnet`. Required for `save_weights`.
        **overrides: Arguments of `XLNetBackbone`, and of the task's model, that the weights do not
            fix, such as `attention_type`, `activation`, `memory_length` or `dropout`.

    Returns:
        An `XLNetBackbone` or an `XLNetPermutationLM`. The contents of its memory are not loaded. If
        the file has no mask embedding and softmax, these keep their initial weights, and a warning
        names them.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, no HDF5 or of another model, or an argument is missing
            or invalid. The message names the file and the weight.

    Example:

    >>> keras_xlnet.checkpoints.load_keras_xlnet_h5("none.h5", num_heads=2)
    Traceback (most recent call last):
    FileNotFoundError: none.h5 is missing

    Source: CyberZHG/keras-xlnet, `xlnet.py` and `attention.py`. Compared with what keras-xlnet
    0.20.0 computed.
    """
    get_task(task, KERAS_XLNET_H5)
    files = open_file(path)
    layers = _layers_of_config(files)
    fixed = {**_sizes(files), "num_heads": _num_heads(files, layers, num_heads)}
    defaults = _defaults(files, layers, overrides)
    model = build(task, fixed, overrides, {}, defaults, config_file=files, files=files)
    rows = keras_xlnet_rows(model)
    matches = match_weights(model_weights(model), rows, KERAS_XLNET_H5)
    return OpenCheckpoint(model, files, matches, layer_prefixes(rows, KERAS_XLNET_H5))


def open_file(path: PathLike) -> HDF5File:
    """Opens a file; weights are named after their layer, such as `Attention-1/kernel`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged or no HDF5.
    """
    path = pathlib.Path(path)
    return HDF5File(file_in(path.parent, path.name), _name_of)


def _name_of(path):
    """`"model_weights/Attention-1/Attention-1_1/kernel:0"` -> `"Attention-1/kernel"`."""
    layer, _, weight = path.removeprefix(_MODEL).rpartition("/")
    layer = layer.rpartition("/")[2]
    if path.startswith("optimizer_weights/") or layer.startswith("Memory-"):
        return None
    if not weight.endswith(":0"):
        return path  # Not written by Keras 2.
    # TensorFlow 1 numbers the layers of a second model in the same process.
    return f"{re.sub(r'_[0-9]+$', '', layer)}/{weight.removesuffix(':0')}"


def keras_xlnet_rows(model: Any) -> list[Row]:
    """Returns the rows of the weight mapping of a model.

    Args:
        model: An `XLNetBackbone` or an `XLNetPermutationLM`.
    """
    backbone = backbone_of(model)
    heads, size = backbone.num_heads, backbone.head_dim
    vector = View((heads * size,), (heads, size))
    segments = View((2, heads * size), (2, heads, size))
    names = {
        "token_embedding/embeddings": "Embed-Token/embeddings",
        "mask_embedding/embedding": "Embed-Mask/embeddings",
        "logits/bias": _LOGIT_BIAS,
    }
    for ours, theirs in _IN_LAYER.items():
        names[f"block_{{layer}}/{ours}"] = theirs
    rows = [Row(ours, keras_xlnet_h5=theirs) for ours, theirs in names.items()]
    for ours, (layer, weight) in _BIASES.items():
        # A model has the biases of one of these two lines.
        for path, name in (
            (f"attention_biases/{ours}", layer),
            (f"block_{{layer}}/attention/{ours}", f"{layer}-{{number}}"),
        ):
            rows.append(Row(path, keras_xlnet_h5=f"{name}/{weight}", keras_xlnet_h5_view=vector))
    rows.append(
        Row(
            "block_{layer}/attention/segment_embeddings",
            keras_xlnet_h5="Embed-Segment-{number}/embeddings",
            keras_xlnet_h5_view=segments,
        )
    )
    return rows + list(_kernel_rows(backbone.hidden_dim, heads, size))


def _kernel_rows(hidden, heads, size):
    """All kernels of attention are one array: `(hidden, 5 * hidden)`."""
    stored = hidden, 5 * heads * size
    for part, name in enumerate(("query", "key", "value", "position", "output")):
        yield Row(
            f"block_{{layer}}/attention/{name}/kernel",
            keras_xlnet_h5="Attention-{number}/kernel",
            # In the output projection, the rows are the heads.
            keras_xlnet_h5_view=View(
                stored,
                (heads, size, 5, hidden) if name == "output" else (hidden, 5, heads, size),
                (slice(None), slice(None), part) if name == "output" else (slice(None), part),
            ),
        )


# === Sizes ===


def _sizes(files):
    shapes = files.shapes
    numbers = [re.fullmatch(r"Attention-(\d{1,9})/kernel", name) for name in shapes]
    try:
        vocabulary_size, hidden_dim = shapes["Embed-Token/embeddings"]
        _, intermediate_dim = shapes["FeedForward-1/FeedForward-1_W1"]
    except (KeyError, ValueError) as error:
        example = f", but, for example, {min(shapes)!r}" if shapes else ""
        raise ValueError(
            f"{files} is not of a model of keras-xlnet: it has no weights "
            f"'Embed-Token/embeddings' and 'FeedForward-1/FeedForward-1_W1'{example}"
        ) from error
    return {
        "vocabulary_size": vocabulary_size,
        "num_layers": max((int(number[1]) for number in numbers if number), default=1),
        "hidden_dim": hidden_dim,
        "intermediate_dim": intermediate_dim,
        "head_dim": None,
        "tie_attention_biases": "Relative-Bias/bias_context" in shapes,
    }


def _num_heads(files, layers, given):
    stated = _entry(files, layers, "Attention-1", "num_head", int)
    if stated is None and given is None:
        raise ValueError(
            f"{files} does not state the number of heads: pass `num_heads`, the `num_head` of "
            f"`build_xlnet`. Only files {_SAVED} state it"
        )
    if None not in (stated, given) and stated != given:
        raise ValueError(f"{files} is of a model with num_heads={stated}. Received: {given}")
    return given if stated is None else stated


# === The configuration of the layers ===


def _layers_of_config(files):
    """Returns the configurations of the layers by name, `{}` for a file of `save_weights`."""
    text = files.attribute("model_config")
    if text is None:
        return {}
    layers: dict[str, dict[str, Any]] = {}

    def collect(entry):
        if isinstance(entry.get("name"), str) and "class_name" not in entry:
            layers.setdefault(entry["name"], entry)
        return entry

    try:
        json.loads(text, object_hook=collect)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"`model_config` in {files} is not JSON: {error}") from error
    return layers


def _entry(files, layers, layer, key, kind):
    """Returns an entry of the configuration of a layer, or `None` if it has no such entry."""
    value = layers.get(layer, {}).get(key)
    # A bool is an int.
    is_right = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if value is not None and not is_right:
        raise ValueError(f"{files} has `{key}` {quoted(value)} in the layer {layer!r}")
    return value


def _defaults(files, layers, overrides):
    """Returns the arguments of the backbone that the file suggests, or `build_xlnet` otherwise."""

    def entry(layer, key, kind):
        return _entry(files, layers, layer, key, kind)

    is_causal = entry("Embed-Pos", "directional", bool)
    clamp_length = entry("Embed-Pos", "clamp_len", int)
    if clamp_length is not None and not is_causal and "clamp_length" not in overrides:
        raise ValueError(
            f"{files} has `clamp_len` {clamp_length}, with which keras-xlnet takes all later "
            "tokens for distance 0, as no other implementation does. Pass `clamp_length`, or `None`"
        )
    for layer, key, expected in _FIXED:
        if entry(layer, key, type(expected)) not in (None, expected):
            raise ValueError(
                f"{files} has another `{key}` than {expected!r} in the layer {layer!r}"
            )
    activation = entry("FeedForward-1", "activation", str) or "gelu"
    return {
        "dropout": entry("FeedForward-1", "dropout_rate", (int, float)) or 0.0,
        "attention_dropout": entry("Attention-1", "attention_dropout", (int, float)) or 0.0,
        # Their function with this name is the tanh form.
        "activation": "gelu_tanh" if activation == "gelu" else activation,
        "attention_type": "uni" if is_causal else "bi",
        "memory_length": entry("Memory-0", "memory_len", int),
        "clamp_length": clamp_length,
        "layer_norm_epsilon": entry("Attention-Normal-1", "epsilon", float) or 1e-14,
    }


KERAS_XLNET_H5 = Family(
    "keras_xlnet_h5",
    owner="The old keras-xlnet",
    files="files of the old keras-xlnet",
    detect=lambda path: path.is_file() and path.suffix in _SUFFIXES,
    load=load_keras_xlnet_h5,
    detect_task=lambda path: "permutation_lm" if _LOGIT_BIAS in open_file(path).shapes else None,
    has_task=lambda task: task is TASKS["permutation_lm"],
    flags={"num_heads": int},
)

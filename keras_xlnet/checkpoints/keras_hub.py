"""Loads presets of KerasHub's XLNet."""

import dataclasses
from typing import Any

import keras

from keras_xlnet.checkpoints.family import Family, loads
from keras_xlnet.checkpoints.hdf5_files import HDF5File
from keras_xlnet.checkpoints.huggingface_config import check_required
from keras_xlnet.checkpoints.huggingface_tokenizer import read_if_there
from keras_xlnet.checkpoints.opening import OpenCheckpoint, build
from keras_xlnet.checkpoints.tasks import get_task
from keras_xlnet.checkpoints.weight_mapping import layer_prefixes, match_weights
from keras_xlnet.models.weight_rows import Row
from keras_xlnet.preset_files import file_in, local_directory
from keras_xlnet.preset_files.files import CONFIG, quoted, read_json
from keras_xlnet.preset_files.weights import FLOATS, model_weights
from keras_xlnet.types import PathLike

_WEIGHTS = "model.weights.h5"
_PACKAGE = "keras_hub>"
_NAME = f"{_PACKAGE}XLNetBackbone"
_SIZES = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim")
_OTHERS = (
    *("dropout", "activation", "kernel_initializer_range", "bias_initializer"),
    *("dtype", "name", "trainable"),
)

# Keras names a layer in the file after its class and its place, a variable by its number.
_ENCODER = "layers/xl_net_encoder"
_ATTENTION = "relative_attention"
_IN_LAYER = {
    "attention/content_bias": "vars/0",
    "attention/position_bias": "vars/1",
    "attention/segment_bias": "vars/2",
    "attention/segment_embeddings": "vars/3",
    "attention/query/kernel": f"{_ATTENTION}/query_dense/vars/0",
    "attention/key/kernel": f"{_ATTENTION}/key_dense/vars/0",
    "attention/value/kernel": f"{_ATTENTION}/value_dense/vars/0",
    "attention/position/kernel": f"{_ATTENTION}/_encoding_dense/vars/0",
    "attention_add_and_norm/norm/gamma": "layer_norm/vars/0",
    "attention_add_and_norm/norm/beta": "layer_norm/vars/1",
    "feed_forward/intermediate/kernel": "feedforward_intermediate_dense/vars/0",
    "feed_forward/intermediate/bias": "feedforward_intermediate_dense/vars/1",
    "feed_forward/output/kernel": "feedforward_output_dense/vars/0",
    "feed_forward/output/bias": "feedforward_output_dense/vars/1",
    "feed_forward_add_and_norm/norm/gamma": "layer_norm_ff/vars/0",
    "feed_forward_add_and_norm/norm/beta": "layer_norm_ff/vars/1",
}
ROWS = [
    Row(
        "token_embedding/embeddings",
        keras_hub="layers/content_and_query_embedding/word_embed/vars/0",
    ),
    *(
        Row(f"block_{{layer}}/{ours}", keras_hub=f"{_ENCODER}_{{layer}}/{theirs}")
        for ours, theirs in _IN_LAYER.items()
    ),
    Row(
        "block_{layer}/attention/output/kernel",
        keras_hub=f"{_ENCODER}_{{layer}}/{_ATTENTION}/output_dense/vars/0",
        keras_hub_axes=(1, 2, 0),
    ),
]


@loads
def load_keras_hub(directory: PathLike, task: str | None = None, **overrides: Any) -> Any:
    """Loads the XLNet encoder that KerasHub saved with `backbone.save_to_preset`.

    KerasHub 0.32 mixes the rows of a batch. The loaded model computes for each row what KerasHub
    computes for this row by itself.

    Args:
        directory: Directory with `config.json` and `model.weights.h5`, or `hf://owner/name`, which
            needs `huggingface_hub`.
        task: Only `None`, for the encoder: KerasHub has no task models of XLNet.
        **overrides: Arguments of `XLNetBackbone` that the files do not fix, such as `dropout`,
            `activation`, `memory_length` or `dtype`.

    Returns:
        An `XLNetBackbone`. KerasHub's mask embedding, which it never uses, is left out.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files are damaged, contradict each other or are of another model, or an
            argument is invalid. The message names the file and the weight.

    Example:

    >>> import tempfile
    >>> keras_xlnet.checkpoints.load_keras_hub(tempfile.mkdtemp())
    Traceback (most recent call last):
    FileNotFoundError: ...config.json is missing

    Source: keras-team/keras-hub, `models/xlnet`. Compared with what KerasHub 0.32 computed.
    """
    get_task(task, KERAS_HUB)
    directory = local_directory(directory, [CONFIG], [_WEIGHTS])
    config_file = file_in(directory, CONFIG)
    config = _read_config(config_file)
    files = HDF5File(file_in(directory, _WEIGHTS))
    defaults = {
        "dropout": config.get("dropout", 0.0),
        "attention_dropout": 0.0,
        "activation": _name(config.get("activation", "gelu")),
        "kernel_initializer": keras.initializers.RandomNormal(
            stddev=config.get("kernel_initializer_range", 0.02)
        ),
    }
    if defaults["activation"] is None and "activation" not in overrides:
        raise ValueError(
            f"{config_file} has the activation {quoted(config['activation'])}: pass `activation`"
        )
    model = build(
        None, _sizes(config), overrides, {}, defaults, config_file=config_file, files=files
    )
    model.trainable = bool(config.get("trainable", True))
    matches = match_weights(model_weights(model), ROWS, KERAS_HUB)
    return OpenCheckpoint(
        model,
        files,
        [_as_in_file(match) for match in matches],
        layer_prefixes(ROWS, KERAS_HUB),
        _declared_dtype(config.get("dtype")),
    )


def _read_config(file):
    config = read_json(file)
    if config.get("registered_name") != _NAME:
        raise ValueError(f"{file} is of {quoted(config.get('registered_name'))}, not {_NAME!r}")
    entries = config.get("config")
    config = entries if isinstance(entries, dict) else {}
    check_required(config, _SIZES, file)
    unknown = sorted(set(config) - {*_SIZES, *_OTHERS})
    if unknown:
        raise ValueError(f"{file} has {unknown}, which XLNetBackbone of KerasHub does not have")
    return config


def _sizes(config):
    fixed = {name: config[name] for name in _SIZES}
    hidden_dim, num_heads = fixed["hidden_dim"], fixed["num_heads"]
    # Values that are not positive ints are refused later, by name.
    if isinstance(hidden_dim, int) and isinstance(num_heads, int) and num_heads > 0:
        return {**fixed, "head_dim": hidden_dim // num_heads}
    return {**fixed, "head_dim": None}


def _name(entry):
    """Returns the name of a function of Keras from its config, `None` for another function."""
    if isinstance(entry, dict) and entry.get("module") == "builtins":
        entry = entry.get("config")
    return entry if isinstance(entry, str) else None


def _declared_dtype(entry):
    """Returns the dtype of the weights from the config of a dtype policy, or `None`."""
    if isinstance(entry, dict) and isinstance(entry.get("config"), dict):
        entry = entry["config"].get("name")
    return entry if entry in FLOATS else None


def _as_in_file(match):
    """Gives a match the name that its weight has in the file."""
    # Keras numbers the layers of a class from the second on.
    return dataclasses.replace(match, name=match.name.replace(f"{_ENCODER}_0/", f"{_ENCODER}/"))


def _is_keras_hub(path):
    return str(read_if_there(path, CONFIG).get("registered_name")).startswith(_PACKAGE)


KERAS_HUB = Family(
    "keras_hub",
    owner="KerasHub",
    files="presets of KerasHub",
    detect=_is_keras_hub,
    load=load_keras_hub,
)

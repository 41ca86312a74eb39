"""What a directory of sentence-transformers has beside the files of transformers.

Its modules are the encoder, a pooling, and a normalization to length 1: see `modules.json`.
"""

import pathlib
import warnings
from typing import Any

import keras

from keras_xlnet.checkpoints.huggingface_tokenizer import TOKENIZER_CONFIG, read_if_there
from keras_xlnet.preset_files import file_in
from keras_xlnet.preset_files.files import quoted, read_json, write_json

MODULES, _POOLING, _NORMALIZE = "modules.json", "1_Pooling", "2_Normalize"
_SETTINGS, _LENGTH = "config_sentence_transformers.json", "sentence_bert_config.json"
#: The files that sentence-transformers adds.
FILES = (MODULES, _SETTINGS, _LENGTH, f"{_POOLING}/config.json")
# The names of all releases: the newest one also reads them. `cls` is the first token there.
_TYPES = {
    name.lower(): f"sentence_transformers.models.{name}"
    for name in ("Transformer", "Pooling", "Normalize")
}
_POOLINGS = {"mean": "mean", "last": "lasttoken", "cls": "lasttoken", "first": "cls"}
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def is_sentence_transformer(directory: pathlib.Path) -> bool:
    """Returns whether a directory has the `modules.json` of sentence-transformers."""
    return (directory / MODULES).exists()


def check_embedder(model: keras.Model) -> None:
    """Raises `ValueError` if sentence-transformers has no pooling like that of an embedder."""
    if model.pooling not in _POOLINGS:
        raise ValueError(
            f"sentence-transformers has no pooling={model.pooling!r}, only {[*_POOLINGS]}"
        )


def write_modules(directory: pathlib.Path, model: keras.Model, length: int | None) -> None:
    """Writes the modules of an `XLNetTextEmbedder`, beside the files of transformers.

    Args:
        directory: Path of the directory.
        model: An `XLNetTextEmbedder`.
        length: The most tokens of a text, `None` if it is unknown.
    """
    paths = {"transformer": "", "pooling": _POOLING, "normalize": _NORMALIZE}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": _TYPES[kind]}
        for i, (kind, path) in enumerate(paths.items())
    ]
    mode = _POOLINGS[model.pooling]
    pooling = {"word_embedding_dimension": model.backbone.hidden_dim, "include_prompt": True}
    pooling |= {flag: of == mode for flag, of in _FLAGS.items()}
    (directory / _POOLING).mkdir(exist_ok=True)
    (directory / _NORMALIZE).mkdir(exist_ok=True)
    write_json(directory / _POOLING / "config.json", pooling)
    write_json(directory / _NORMALIZE / "config.json", {})
    write_json(directory / _LENGTH, {"max_seq_length": length, "do_lower_case": False})
    write_json(
        directory / _SETTINGS, {"prompts": model.prompts or {}, "similarity_fn_name": "cosine"}
    )
    write_json(directory / MODULES, modules)  # Last: it says that the others are there.


def read_modules(directory: pathlib.Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the arguments of an `XLNetTextEmbedder` and of its preprocessor.

    Raises:
        ValueError: If the modules are others than an encoder, a pooling and a normalization, or the
            pooling is one that the embedder lacks.
    """
    file = file_in(directory, MODULES)
    try:
        modules = [(each["type"], each["path"]) for each in read_json(file, list)]
        modules = [(kind.rsplit(".", 1)[-1].lower(), path) for kind, path in modules]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is damaged: {error!r}") from error
    if [kind for kind, _ in modules] != [*_TYPES] or modules[0][1]:
        raise ValueError(
            f"{file} must have the modules {[*_TYPES]}, the first one in the directory itself. "
            f"Received: {modules}"
        )
    file = file_in(directory, f"{modules[1][1]}/config.json")
    config = read_json(file)
    flags = [mode for flag, mode in _FLAGS.items() if config.get(flag)]
    mode = config.get("pooling_mode", flags[0] if len(flags) == 1 else flags)
    ours = next((ours for ours, theirs in _POOLINGS.items() if theirs == mode), None)
    if ours is None:
        raise ValueError(
            f"{file} has the pooling {quoted(mode)}, but only one of "
            f"{sorted({*_POOLINGS.values()})} is supported"
        )
    settings = read_if_there(directory, _SETTINGS)
    prompts = settings.get("prompts") or None
    if (
        not config.get("include_prompt", True)
        and isinstance(prompts, dict)
        and any(prompts.values())
    ):
        raise ValueError(f"{file} leaves prompts out of the pooling, which is not supported")
    for key, argument in (("default_prompt_name", "prompt_name"), ("truncate_dim", "truncate_dim")):
        if settings.get(key) is not None:
            warnings.warn(
                f"{file_in(directory, _SETTINGS)} has {key}={settings[key]!r}, which the embedder "
                f"does not take from it: pass `{argument}` to `embed`",
                stacklevel=4,
            )
    length = read_if_there(directory, _LENGTH).get("max_seq_length") or read_if_there(
        directory, TOKENIZER_CONFIG
    ).get("model_max_length")
    # Releases of transformers write 10^30 for no limit.
    is_limit = isinstance(length, int) and not isinstance(length, bool) and 3 <= length < 10**6
    side = "right" if ours == "first" else "left"
    preprocessing = {"padding_side": side, **({"sequence_length": length} if is_limit else {})}
    return {"pooling": ours, "prompts": prompts}, preprocessing
